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
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	vttablet "vitess.io/vitess/go/vt/vttablet/common"
)

// TestMergeBackoffIsNoStall shows that a stream which waits for longer than the
// relay log lets an applier take, while its source goes on writing, is not taken
// for one that is stalled. On stock it has ended in Error 1062 by then; a relay log
// that nobody drained would end it with "progress stalled".
func TestMergeBackoffIsNoStall(t *testing.T) {
	deadline := vplayerProgressDeadline
	vplayerProgressDeadline = time.Second
	defer func() { vplayerProgressDeadline = deadline }()
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		small := func(config *vttablet.VReplicationConfig) { config.RelayLogMaxItems = 5 }
		m := newBlockedMerge(t, batching, small)
		begun := time.Now()
		for id := 1000; time.Since(begun) < 3*vplayerProgressDeadline; id++ {
			m.exec("insert into {1} values (" + strconv.Itoa(id) + ", " + strconv.Itoa(id) + ", 'x')")
		}
		state, message := m.stream(1)
		require.Equal(t, "Running", state)
		require.Contains(t, message, "merge backoff: waiting since")
		stalled := m.query("select count(*) from _vt.vreplication_log where vrepl_id=" + strconv.Itoa(m.ids[1]) + " and message like '%stalled%'")
		require.Equal(t, []string{"INT64(0)"}, stalled)
		m.start(0)
		m.waitConverged()
	})
}
