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
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/binlog/binlogplayer"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// TestMergeBackoffStopMessage shows that a stream which waits at its stop
// position is not taken for stopped, and that its message says where it stopped
// once it has.
func TestMergeBackoffStopMessage(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')")
		m.waitConverged()
		m.stop(0)
		m.stop(1)
		m.exec("delete from {0} where id=1", "insert into {1} values (2, 10, 'b')")
		stopPos := primaryPosition(t)
		m.exec("insert into {1} values (3, 30, 'c')")
		m.vreplication("%s", binlogplayer.StartVReplicationUntil(int32(m.ids[1]), stopPos))
		m.waitBlocked(1)
		for _, s := range playerEngine.mergeHub.Streams() {
			if int(s.ID) == m.ids[1] {
				require.Equal(t, binlogdatapb.VReplicationWorkflowState_Running, s.State)
			}
		}
		m.start(0)
		message := m.waitState(1, "Stopped")
		require.Contains(t, message, "Stopped at position")
	})
}
