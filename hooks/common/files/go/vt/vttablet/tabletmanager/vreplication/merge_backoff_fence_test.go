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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql"
)

// leftBehind begins what a vttablet that was killed leaves on the server: a
// transaction that has been sent as a whole, commits whatever becomes of the client,
// and saves positions at its end. The connection holds the locks of these streams.
func (m *mergeTest) leftBehind(locks []string, statements ...string) *mysql.Conn {
	m.t.Helper()
	conn := m.mysqlConn()
	m.run(conn, "use "+vrepldb)
	for _, lock := range locks {
		qr, err := conn.ExecuteFetch(fmt.Sprintf("select get_lock('%s', 60)", lock), 1, false)
		require.NoError(m.t, err)
		require.Equal(m.t, "1", qr.Rows[0][0].ToString(), "the lock %s", lock)
	}
	m.run(conn, append([]string{"begin"}, statements...)...)
	return conn
}

// savePosition is the last statement of a transaction that was left behind.
func (m *mergeTest) savePosition(conn *mysql.Conn, i int, pos string) {
	m.t.Helper()
	m.run(conn, fmt.Sprintf("update _vt.vreplication set pos='%s' where id=%d", pos, m.ids[i]))
}

// lockWaits waits until so many connections wait for a lock by name.
func (m *mergeTest) lockWaits(n int) {
	m.t.Helper()
	m.waitFor("streams wait for what was left behind", func() (bool, string) {
		got := m.query("select count(*) from information_schema.processlist where state='User lock'")
		return got[0] == fmt.Sprintf("INT64(%d)", n), got[0]
	})
}

// TestMergeBackoffLeftBehind shows that a stream does not start from the position it
// had before a transaction that an earlier vttablet left on the server commits: it
// would apply again what that one has written. On stock it does, and ends in Error
// 1062 at its own row; with a transaction that only updates, nobody would notice.
func TestMergeBackoffLeftBehind(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (2, 20, 'b')")
		m.waitConverged()
		m.stop(0)
		m.exec("insert into {0} values (3, 30, 'c')", "update {0} set val='a1' where id=1")
		behind := primaryPosition(t)
		m.exec("update {0} set val='a2' where id=1", "insert into {0} values (4, 40, 'd')")
		conn := m.leftBehind([]string{mergeLock(int32(m.ids[0]))},
			"insert into dst values (3, 30, 'c')", "update dst set val='a1' where id=1")
		m.start(0)
		m.lockWaits(1)
		m.savePosition(conn, 0, behind)
		m.run(conn, "commit")
		conn.Close()
		m.waitConverged()
	})
}

// TestMergeBackoffLeftBehindJoint shows the same for a stream whose transactions were
// committed jointly, on the connection of another stream that was killed as well.
func TestMergeBackoffLeftBehindJoint(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (2, 20, 'b')")
		m.waitConverged()
		m.stop(0)
		m.stop(1)
		m.exec(
			"update {0} set uid=null where id=1", "update {1} set uid=10 where id=2",
			"insert into {0} values (3, 20, 'c')",
		)
		behind := primaryPosition(t)
		m.exec("update {0} set val='a2' where id=1", "update {1} set val='b2' where id=2")
		conn := m.leftBehind([]string{mergeLock(int32(m.ids[0])), mergeJointLock(int32(m.ids[1]))},
			"update dst set uid=null where id=1", "update dst set uid=10 where id=2", "insert into dst values (3, 20, 'c')")
		m.start(0)
		m.start(1)
		m.lockWaits(2)
		m.savePosition(conn, 0, behind)
		m.savePosition(conn, 1, behind)
		m.run(conn, "commit")
		conn.Close()
		m.waitConverged()
	})
}

// TestMergeBackoffLeftBehindIdle shows that a connection which an earlier vttablet has
// left, and of which the server does not know that nobody uses it, is ended: it has
// the stream's lock, and row locks perhaps.
func TestMergeBackoffLeftBehindIdle(t *testing.T) {
	patience := mergeFencePatience
	mergeFencePatience = 2 * time.Second
	t.Cleanup(func() { mergeFencePatience = patience })
	m := newMergeTest(t, 2, mergeDDL)
	m.startAll()
	m.exec("insert into {0} values (1, 10, 'a')")
	m.waitConverged()
	m.stop(0)
	m.exec("update {0} set val='a1' where id=1")
	conn := m.leftBehind([]string{mergeLock(int32(m.ids[0]))}, "update dst set val='left' where id=1")
	m.start(0)
	m.waitConverged()
	_, err := conn.ExecuteFetch("select 1", 1, false)
	require.Error(t, err, "the connection that was left behind")
}

// TestMergeBackoffFenceAlone shows that a stream without peers takes no lock: it sends
// what stock sends.
func TestMergeBackoffFenceAlone(t *testing.T) {
	m := newMergeTest(t, 1, mergeDDL)
	m.startAll()
	m.exec("insert into {0} values (1, 10, 'a')")
	m.waitConverged()
	free := m.query(fmt.Sprintf("select is_free_lock('%s')", mergeLock(int32(m.ids[0]))))
	require.Equal(t, "INT64(1)", free[0])
}
