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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// TestMergeBackoffLockWaitTimeout shows that a stream of a merge gets over
// MySQL's 1205 without a restart. On stock a stream that batches fails, and is
// restarted after the retry delay.
func TestMergeBackoffLockWaitTimeout(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')")
		m.waitConverged()
		conn := m.mysqlConn()
		m.run(conn, "begin", "select * from vrepl.dst where id=1 for update")
		before, timeouts := m.logged(0), m.lockTimeouts()
		m.exec("update {0} set val='a2' where id=1", "insert into {0} values (2, 20, 'b')")
		// The lock is held for longer than innodb_lock_wait_timeout, which is 1 s.
		m.waitFor("two attempts have timed out", func() (bool, string) {
			n := m.lockTimeouts() - timeouts
			return n >= 2, fmt.Sprintf("%d timeouts", n)
		})
		m.run(conn, "rollback")
		m.waitConverged()
		require.Equal(t, before, m.logged(0), "the stream was restarted")
	})
}

// TestMergeBackoffDeadlock shows that a stream of a merge gets over MySQL's 1213
// without a restart. On stock a stream that batches fails, and is restarted after
// the retry delay.
func TestMergeBackoffDeadlock(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a'), (2, 20, 'b'), (11, null, 'x'), (12, null, 'x'), (13, null, 'x'), (14, null, 'x')")
		m.waitConverged()
		before := m.logged(0)
		conn := m.mysqlConn()
		// MySQL rolls back the transaction that has changed fewer rows.
		m.run(conn, "begin", "update vrepl.dst set val='y' where id > 10", "update vrepl.dst set val='y' where id=2")
		m.tx("update {0} set val='a2' where id=1", "update {0} set val='b2' where id=2")
		m.waitLocked()
		m.run(conn, "update vrepl.dst set val='y' where id=1", "rollback")
		m.waitConverged()
		require.Equal(t, before, m.logged(0), "the stream was restarted")
	})
}

// TestMergeBackoffConnectionLost shows that a stream which loses its connection
// in the middle of a resolution starts again after the retry delay, by itself,
// and loses nothing. On stock it has ended in Error 1062 before.
func TestMergeBackoffConnectionLost(t *testing.T) {
	// The test's own connections have no database.
	const connections = "select id from information_schema.processlist where db='vrepl'"
	for name, replays := range map[string]bool{"while it waits": false, "while it replays": true} {
		t.Run(name, func(t *testing.T) {
			forMergeBatching(t, func(t *testing.T, batching mergeOption) {
				m := newMergeTest(t, 2, mergeDDL, batching, mergeRetryDelay(100*time.Millisecond))
				m.startAll()
				m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (5, 50, 'e')")
				m.waitConverged()
				m.stop(0)
				m.exec("delete from {0} where id=1")
				m.tx("update {1} set val='e2' where id=5", "insert into {1} values (2, 10, 'b')")
				m.waitBlocked(1)
				killed, conn := "", m.mysqlConn()
				if replays {
					// At a lock on a row in front of the conflict.
					m.run(conn, "begin", "select * from vrepl.dst where id=5 for update")
					killed = m.waitLocked()
				} else {
					killed = m.values(connections)[0]
				}
				m.run(m.mysqlConn(), "kill "+killed)
				m.run(conn, "rollback")
				m.waitFor("the stream has connected again", func() (bool, string) {
					now := m.values(connections)
					return len(now) > 0 && !slices.Contains(now, killed), fmt.Sprintf("connections %q, killed %s", now, killed)
				})
				m.exec("insert into {1} values (3, 30, 'c')")
				m.start(0)
				m.waitConverged()
			})
		})
	}
}

// TestMergeBackoffDDLWhileWaiting shows that a DDL behind the blocked transaction
// is treated as the workflow wants it treated, once the conflict is resolved. On
// stock the stream ends in Error 1062.
func TestMergeBackoffDDLWhileWaiting(t *testing.T) {
	for action, test := range map[binlogdatapb.OnDDLAction]struct {
		state string // of the stream in the end
		width string // of the target's column in the end
	}{
		binlogdatapb.OnDDLAction_IGNORE: {state: "Running", width: "varchar(64)"},
		binlogdatapb.OnDDLAction_EXEC:   {state: "Running", width: "varchar(80)"},
		binlogdatapb.OnDDLAction_STOP:   {state: "Stopped", width: "varchar(64)"},
	} {
		t.Run(action.String(), func(t *testing.T) {
			forMergeBatching(t, func(t *testing.T, batching mergeOption) {
				m := newMergeTest(t, 2, mergeDDL, batching)
				// The DDL names the source's table, so the target gets one as well.
				execStatements(t, []string{"create table vrepl.src_1 " + mergeDDL})
				t.Cleanup(func() { execStatements(t, []string{"drop table vrepl.src_1"}) })
				m.createStream(0, mergeStream{})
				m.createStream(1, mergeStream{onDDL: action})
				m.block()
				execStatements(t, []string{"alter table src_1 modify val varchar(80)"})
				m.exec("insert into {1} values (4, 40, 'd')")
				m.start(0)
				message := m.waitState(1, test.state)
				if test.state == "Stopped" {
					require.Contains(t, message, "Stopped at DDL")
					require.Equal(t, []string{"2", "3"}, m.values("select id from vrepl.dst order by id"))
					m.start(1)
				}
				m.waitConverged()
				require.Equal(t, []string{test.width}, m.values("select column_type from information_schema.columns"+
					" where table_schema='vrepl' and table_name='src_1' and column_name='val'"))
			})
		})
	}
}
