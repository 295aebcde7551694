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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	vttablet "vitess.io/vitess/go/vt/vttablet/common"
)

// The streams of these tests wait for a value of a stopped peer. On stock there
// is no wait: each of them ends in Error 1062 before it could be looked at.

// TestMergeBackoffMessage shows that a stream which waits says for what and for
// whom, and takes that back when it goes on.
func TestMergeBackoffMessage(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		_, message := m.stream(1)
		require.Contains(t, message, "value '10' of key dst.uid_uk")
		require.Contains(t, message, fmt.Sprintf("once it is started again, stream %d (merge, source vttest/0, Stopped)", m.ids[0]))
		require.NotContains(t, message, "\n")
		m.start(0)
		m.waitConverged()
		_, message = m.stream(1)
		require.Empty(t, message)
	})
}

// TestMergeBackoffHeartbeat shows that a stream which waits goes on to record
// that it lives: time_updated and time_heartbeat move.
func TestMergeBackoffHeartbeat(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		for _, column := range []string{"time_updated", "time_heartbeat"} {
			seconds := func() int {
				n, err := strconv.Atoi(m.column(1, column))
				require.NoError(t, err)
				return n
			}
			// Twice, so that it is not what the blocked attempt has left behind.
			for range 2 {
				before := seconds()
				m.waitFor(column+" moves", func() (bool, string) { return seconds() > before, strconv.Itoa(before) })
			}
		}
		require.True(t, m.isBlocked(1))
	})
}

// TestMergeBackoffHoldsNoLock shows that a stream which waits has no transaction
// open and no row locked: a row that it conflicts with, and one that it has
// written in the transaction it rolled back, can be changed at once.
func TestMergeBackoffHoldsNoLock(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (5, 50, 'e')")
		m.waitConverged()
		m.stop(0)
		m.tx("update {1} set val='e2' where id=5", "insert into {1} values (2, 10, 'b')")
		m.waitBlocked(1)

		m.waitFor("no transaction is open", func() (bool, string) {
			open := m.query("select t.processlist_id, e.state from performance_schema.events_transactions_current e" +
				" join performance_schema.threads t using (thread_id)" +
				" where e.state='ACTIVE' and t.processlist_db='" + vrepldb + "'")
			return len(open) == 0, strings.Join(open, "; ")
		})
		m.waitFor("no row is locked", func() (bool, string) {
			locks := m.query("select index_name, lock_mode, lock_data from performance_schema.data_locks where object_name='dst'")
			return len(locks) == 0, strings.Join(locks, "; ")
		})
		conn := m.mysqlConn()
		m.quickly(500*time.Millisecond, "changing the rows", func() {
			m.run(conn, "begin", "update vrepl.dst set val='x' where id in (1, 5)", "rollback")
		})
		require.True(t, m.isBlocked(1))
	})
}

// TestMergeBackoffLimit shows that vreplication-max-time-to-retry-on-error bounds
// the wait, which then ends as on stock, in Error 1062.
func TestMergeBackoffLimit(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		const limit = 3 * time.Second
		start := time.Now()
		m := newBlockedMerge(t, batching, func(config *vttablet.VReplicationConfig) { config.MaxTimeToRetryError = limit })
		message := m.waitDuplicate(1)
		require.Contains(t, message, "merge backoff: ")
		require.Contains(t, message, "vreplication-max-time-to-retry-on-error")
		require.GreaterOrEqual(t, time.Since(start), limit)
		// The row that stood is still there, and nothing behind it was applied.
		require.Equal(t, []string{"1"}, m.values("select id from vrepl.dst"))
	})
}
