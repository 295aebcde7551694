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

	vttablet "vitess.io/vitess/go/vt/vttablet/common"
)

// TestMergeBackoffAhead shows that a stream which meets a value that a peer has
// yet to release waits for it and goes on. On stock the stream ends in Error
// 1062.
func TestMergeBackoffAhead(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		m.start(0)
		m.waitConverged()
	})
}

// TestMergeBackoffGroupedDeadlock shows that a commit which grouping put off is
// made before its stream waits: the release is in front of the blocked
// transaction, in the same group, and the peer waits for it in turn. On stock
// the stream ends in Error 1062.
func TestMergeBackoffGroupedDeadlock(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (2, 20, 'b')")
		m.waitConverged()
		m.stop(0)
		m.stop(1)
		m.exec(
			"update {0} set uid=null where id=1", // releases 10
			"update {1} set uid=10 where id=2",   // needs it, and releases 20
			"update {0} set uid=20 where id=1",   // needs that
		)
		m.start(0)
		m.start(1)
		m.waitConverged()
	})
}

// TestMergeBackoffPeerAppears shows that a stream which has run alone finds a
// peer that is created later. On stock the stream ends in Error 1062.
func TestMergeBackoffPeerAppears(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.createStream(1, mergeStream{})
		m.exec("insert into {1} values (4, 40, 'd')")
		m.waitConverged()
		m.createStream(0, mergeStream{})
		m.block()
		m.start(0)
		m.waitConverged()
	})
}

// TestMergeBackoffPeerAppearsAtConflict shows that a stream which met a conflict
// while it was alone looks for peers again before it ends: one was created
// between its fetch and its conflict. On stock the stream ends in Error 1062.
func TestMergeBackoffPeerAppearsAtConflict(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching, mergeRetryDelay(100*time.Millisecond))
		m.setLockWaitTimeout(50)
		m.exec("insert into {0} values (1, 10, 'a')")
		m.createStream(1, mergeStream{})

		// The row of stream 0 is on the target, but not committed: stream 1 has
		// fetched its events, and stands at a row lock.
		conn := m.mysqlConn()
		m.run(conn, "begin", "insert into vrepl.dst values (1, 10, 'a')")
		m.exec("insert into {1} values (2, 10, 'b')")
		m.waitLocked()
		m.createStream(0, mergeStream{})
		m.run(conn, "commit")

		m.waitBlocked(1)
		m.exec("delete from {0} where id=1")
		m.waitConverged()
	})
}

// TestMergeBackoffSingleStreamFails shows that a stream without peers fails at a
// duplicate key as fast as on stock: no release can come.
func TestMergeBackoffSingleStreamFails(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 1, mergeDDL, batching)
		m.startAll()
		m.run(m.mysqlConn(), "insert into vrepl.dst values (1, 10, 'a')")
		m.quickly(3*time.Second, "failing", func() {
			m.exec("insert into {0} values (2, 10, 'b')")
			m.waitDuplicate(0)
		})
	})
}

// TestMergeBackoffOnlineDDLFails shows that an Online DDL fails at a unique
// violation as fast as on stock, even if another stream writes the same table:
// the violation is the migration's own.
func TestMergeBackoffOnlineDDLFails(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.createStream(0, mergeStream{})
		m.createStream(1, mergeStream{onlineDDL: true})
		m.exec("insert into {0} values (1, 10, 'a')")
		m.waitConverged()
		m.quickly(3*time.Second, "failing", func() {
			m.exec("insert into {1} values (2, 10, 'b')")
			m.waitDuplicate(1)
		})
		state, message := m.stream(0)
		require.Equal(t, "Running", state, message)
	})
}

// TestMergeBackoffSwitchedOff shows that a workflow can switch merge backoff off
// in its config overrides, and then fails as on stock.
func TestMergeBackoffSwitchedOff(t *testing.T) {
	const off = `{"config": {"` + experimentalFlagsName + `": "7"}}`
	m := newMergeTest(t, 2, mergeDDL)
	m.startAll()
	m.exec("insert into {0} values (1, 10, 'a')")
	m.waitConverged()
	m.stop(0)
	m.vreplication("update _vt.vreplication set options='%s' where id=%d", off, m.ids[1])
	m.quickly(3*time.Second, "failing", func() {
		m.exec("delete from {0} where id=1", "insert into {1} values (2, 10, 'b')")
		m.waitDuplicate(1)
	})
}

// TestMergeBackoffSameStatements shows that a stream without peers sends to the
// target the very statements that it sends with merge backoff switched off.
func TestMergeBackoffSameStatements(t *testing.T) {
	transactions := [][]string{
		{"insert into {0} values (1, 10, 'a')"},
		{"insert into {0} values (2, 20, 'b'), (3, 30, 'c'), (4, 40, 'd')"}, // bulk
		{"update {0} set uid=11 where id=1"},
		{"update {0} set id=8 where id=1"}, // another primary key
		{"insert into {0} values (5, 50, 'e')", "update {0} set uid=51 where id=5", "delete from {0} where id=2"},
		{"delete from {0} where id > 2"}, // bulk
	}
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		sent := make(map[bool][]string)
		for _, on := range []bool{false, true} {
			t.Run(fmt.Sprintf("merge backoff %t", on), func(t *testing.T) {
				m := newMergeTest(t, 1, mergeDDL, batching, mergeFlag(vttablet.VReplicationExperimentalFlagMergeBackoff, on))
				m.startAll()
				m.exec("insert into {0} values (9, 90, 'i')")
				m.waitConverged()
				sent[on] = m.sent(transactions)
			})
		}
		require.NotEmpty(t, sent[false])
		require.Equal(t, sent[false], sent[true])
	})
}
