/*
Copyright 2026 The Vitess Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package vreplication

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle/throttlerapp"
)

// mergeThrottler is a throttleChecker that denies the streams of one workflow,
// and counts how often it did.
type mergeThrottler struct {
	workflow string
	deny     atomic.Bool
	denials  atomic.Int64
}

func (mt *mergeThrottler) ThrottleCheckOKOrWaitAppName(ctx context.Context, appName throttlerapp.Name) (*throttle.CheckResult, bool) {
	checker := &fakeThrottleChecker{}
	if mt.deny.Load() && strings.Contains(appName.String(), mt.workflow) {
		checker.deny.Store(true)
		mt.denials.Add(1)
	}
	return checker.ThrottleCheckOKOrWaitAppName(ctx, appName)
}

// TestMergeBackoffThrottled shows that the throttler is asked before each attempt
// of a stream that waits: while it denies, the stream makes none, although the
// value was released; and it can be stopped at once.
func TestMergeBackoffThrottled(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		throttler := &mergeThrottler{workflow: "denied"}
		before := playerEngine.throttlerClient
		playerEngine.throttlerClient = throttler
		t.Cleanup(func() { playerEngine.throttlerClient = before })
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.createStream(0, mergeStream{})
		m.createStream(1, mergeStream{workflow: "denied"})
		m.block()

		throttler.deny.Store(true)
		m.start(0)
		m.waitFor("the value is released", func() (bool, string) {
			rows := m.values("select id from vrepl.dst where uid=10")
			return len(rows) == 0, fmt.Sprint(rows)
		})
		// An attempt would come with the first denial at the latest.
		denials := throttler.denials.Load() + 5
		m.waitFor("the throttler has denied several attempts", func() (bool, string) {
			return throttler.denials.Load() >= denials, strconv.FormatInt(throttler.denials.Load(), 10)
		})
		require.Empty(t, m.values("select id from vrepl.dst"))
		m.quickly(500*time.Millisecond, "stopping", func() { m.stop(1) })
		m.start(1)

		throttler.deny.Store(false)
		m.waitConverged()
	})
}
