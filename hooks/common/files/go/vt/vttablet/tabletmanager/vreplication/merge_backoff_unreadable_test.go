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
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMergeBackoffUnreadableRow shows that a row of _vt.vreplication which cannot
// be read counts as a peer, since nobody knows what it would write: the stream
// that conflicts waits, names it, and ends in Error 1062 once it is deleted.
func TestMergeBackoffUnreadableRow(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.createStream(1, mergeStream{})
		_, err := playerEngine.Exec("insert into _vt.vreplication (workflow, source, pos, max_tps, max_replication_lag, time_updated, transaction_timestamp, state, db_name, options)" +
			" values ('unreadable', 'no source at all', '', 0, 0, 0, 0, 'Running', '" + vrepldb + "', '{}')")
		require.Error(t, err)
		m.ids[0], err = strconv.Atoi(m.values("select id from _vt.vreplication where workflow='unreadable'")[0])
		require.NoError(t, err)

		m.run(m.mysqlConn(), "insert into vrepl.dst values (1, 10, 'a')")
		m.exec("insert into {1} values (2, 10, 'b')")
		message := m.waitBlocked(1)
		require.Contains(t, message, fmt.Sprintf("stream %d (unreadable", m.ids[0]))
		m.deleteStream(0)
		m.waitDuplicate(1)
	})
}
