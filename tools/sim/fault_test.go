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

package sim

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calls are all calls of a player at which a fault can come.
var calls = []string{
	"Apply BEGIN", "Apply COMMIT", "Apply FIELD", "Apply GTID", "Apply HEARTBEAT", "Apply ROW",
	"Begin", "COMMIT", "Drain", "Exec delete", "Exec insert", "Exec select", "Exec update", "Fetch",
	"KeepAlive", "Rollback", "SavePosition", "SetBatching", "SetMessage", "Throttled", "after a lock",
}

// TestFaultsEverywhere runs histories once more for each step that the scheduler
// takes, with each fault that can come there: the end of the process, of mysqld and
// of the engine, the loss of a stream's connection and the stop of a stream, and
// with a COMMIT under way both done and not. It is exhaustive: every call that a
// player makes in those histories is interrupted in each of these ways.
func TestFaultsEverywhere(t *testing.T) {
	deterministic(t)
	type one struct {
		h    *History
		seed uint64
	}
	var histories []one
	for _, name := range []string{"cycle-of-two.txt", "overtaken-by-update.txt", "text-swap-within-a-shard.txt"} {
		h, _, err := Read(filepath.Join("..", "..", "testdata", name))
		require.NoError(t, err)
		for _, variant := range []int{0, len(h.Variants()) - 1} {
			histories = append(histories, one{h.Variants()[variant], *seed})
		}
	}
	n := *everywhere
	if testing.Short() {
		histories, n = histories[:1], 0
	}
	for i := range uint64(n) {
		h, err := Generate(*seed+i, i%10 == 9)
		require.NoError(t, err)
		histories = append(histories, one{h, *seed + i})
	}
	summary := &Summary{}
	for _, one := range histories {
		reportFailure(t, summary.Everywhere(t, one.h, one.seed))
	}
	for _, kind := range []Kind{Crash, Outage, Close, Lose, Stop} {
		assert.NotEmpty(t, summary.Faults[kind], "no %s", kind)
		if testing.Short() {
			continue
		}
		for _, call := range calls {
			assert.Positive(t, summary.Faults[kind][call], "no %s at %s; there were some at %v", kind, call, slices.Sorted(maps.Keys(summary.Faults[kind])))
		}
	}
	t.Logf("%d histories: %s", len(histories), summary)
}
