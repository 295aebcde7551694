//go:build go1.25

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

package mergebackoff_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// TestAhead: the stream meets a value that a peer has yet to release. It goes on
// as soon as the peer has, without waiting for a timer.
func TestAhead(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.blocked()
		m.sql(1, "insert into {1} values (3,30,'c')")
		m.settle(5 * time.Second)
		m.start(0)
		assert.Less(t, m.sync(), 2*time.Millisecond)
		assert.Equal(t, int64(1), m.resolved(mergebackoff.ResolvedByWaiting))
		assert.Equal(t, int64(1), m.Hub.Counts(2).Conflicts)
	})
}

// TestGroupedDeadlock is what pull request 17074 dies of: each stream's release
// is in a transaction that grouping has put off.
func TestGroupedDeadlock(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sql(1, "insert into {1} values (2,20,'b')")
		m.startAll()
		m.sync()
		m.Streams[0].Stop()
		m.Streams[1].Stop()
		m.sql(0, "update {0} set uid=null where id=1")
		m.sql(1, "update {1} set uid=null where id=2")
		m.sql(0, "update {0} set uid=20 where id=1")
		m.sql(1, "update {1} set uid=10 where id=2")
		m.startAll()
		assert.Less(t, m.sync(), 2*time.Second)
	})
}

// TestOvertaken: a peer took the value in this stream's future, and keeps it.
// Waiting never helps; the stream's own later events do.
func TestOvertaken(t *testing.T) {
	releases := map[string]string{
		"by update":               "update {0} set uid=30 where id=1",
		"by delete":               "delete from {0} where id=1",
		"by a change of its key":  "update {0} set id=7, uid=30 where id=1",
		"by setting it to NULL":   "update {0} set uid=null where id=1",
		"by several transactions": "update {0} set val='x' where id=1",
	}
	for name, release := range releases {
		t.Run(name, func(t *testing.T) {
			inMerge(t, 2, func(m *merge) {
				m.startAll()
				m.Streams[0].Stop()
				m.sql(0, "insert into {0} values (1,10,'a')")
				m.sql(0, release)
				if name == "by several transactions" {
					m.sql(0, "update {0} set uid=40 where id=1")
					m.sql(0, "delete from {0} where id=1")
				}
				m.sql(1, "insert into {1} values (2,10,'b')")
				m.settle(time.Second)
				m.start(0)
				assert.Less(t, m.sync(), time.Second)
				assert.Equal(t, int64(1), m.resolved(mergebackoff.ResolvedByNetEffect))
			})
		})
	}
}

// TestOvertakenBeforeTheRelease: the release has not been sent yet when the stream
// meets the conflict. It goes on as soon as it has read it.
func TestOvertakenBeforeTheRelease(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.startAll()
		m.Streams[0].Stop()
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sql(0, "update {0} set uid=11 where id=1")
		m.sql(1, "insert into {1} values (2,10,'b')")
		m.settle(time.Second)
		s := m.Streams[0]
		s.Start()
		s.Player.Relay.Send(s.Events(s.Log[0])...)
		s.Sent++
		m.settle(3 * time.Second)
		assert.True(t, m.Hub.Counts(1).Blocked)
		s.Send()
		assert.Less(t, m.sync(), 2*time.Millisecond)
	})
}

// TestRowMoves: a row goes to another shard with its primary key, and the stream
// that gains it is ahead, or the one that loses it is late.
func TestRowMoves(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.sql(0, "insert into {0} values (1,10,'a'),(5,50,'e')")
		m.startAll()
		m.sync()
		m.Streams[0].Stop()
		m.sql(0, "delete from {0} where id=1")
		m.sql(1, "insert into {1} values (1,10,'b')")
		m.sql(1, "delete from {1} where id=1")
		m.sql(0, "insert into {0} values (1,10,'c')")
		m.sql(0, "delete from {0} where id=1")
		m.sql(1, "insert into {1} values (1,10,'d')")
		m.settle(2 * time.Second)
		m.start(0)
		m.sync()
	})
}

// TestCycles: each stream's transaction waits for another's, so none can go
// first. The sources' statements exchange the values within one transaction.
func TestCycles(t *testing.T) {
	for name, n := range map[string]int{"of two": 2, "of three": 3} {
		t.Run(name, func(t *testing.T) {
			inMerge(t, n, func(m *merge) {
				for i := range n {
					m.sql(i, "insert into {0} values "+row(i, i))
				}
				m.startAll()
				m.sync()
				for i := range n {
					m.Streams[i].Stop()
				}
				// One transaction of the application: on every source the row takes
				// the value that the next source's had.
				for i := range n {
					_, err := m.Streams[i].SQL("update {0} set uid=null where id="+id(i), "update {0} set uid="+id((i+1)%n)+" where id="+id(i))
					require.NoError(t, err)
				}
				duplicate := m.Duplicate()
				require.Empty(t, duplicate)
				m.startAll()
				// A player that does not batch sleeps for a second at a deadlock.
				assert.Less(t, m.sync(), 2*time.Second)
				assert.Positive(t, m.resolved(mergebackoff.ResolvedByJoint))
			})
		})
	}
}

func id(i int) string { return string(rune('1' + i)) }

func row(i, uid int) string { return "(" + id(i) + "," + id(uid) + ",'x')" }

// TestManyStreamsBehind: all streams start with a long backlog over a few hot
// values, which they hand round.
func TestManyStreamsBehind(t *testing.T) {
	inMerge(t, 3, func(m *merge) {
		for i := range 3 {
			m.sql(i, "insert into {0} values "+row(i, i))
		}
		for range 20 {
			for i := range 3 {
				m.sql(i, "update {0} set uid=null where id="+id(i))
			}
			for i := range 3 {
				m.sql(i, "update {0} set uid="+id((i+1)%3)+" where id="+id(i))
			}
			for i := range 3 {
				m.sql(i, "delete from {0} where id="+id(i))
			}
			for i := range 3 {
				m.sql(i, "insert into {0} values "+row(i, i))
			}
		}
		m.startAll()
		m.sync()
	})
}

// TestWaiting shows what is seen of a stream that waits: its message says in one
// line what for and is gone afterwards, its heartbeats go on, and it holds no
// lock.
func TestWaiting(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.blocked()
		waiting := m.DB.Stream(2)
		for _, want := range []string{mergebackoff.MessagePrefix, "'10'", "t.uid_uk", "stream 1 (merge, source ks/shard1, Stopped)"} {
			assert.Contains(t, waiting.Message, want)
		}
		assert.NotContains(t, waiting.Message, "\n")

		before := m.Streams[1].Player.Heartbeats.Load()
		m.settle(10 * time.Second)
		assert.GreaterOrEqual(t, m.Streams[1].Player.Heartbeats.Load()-before, int64(9))
		assert.False(t, m.Streams[1].Player.InTransaction())
		assert.Equal(t, waiting.Message, m.DB.Stream(2).Message, "it says since when")

		m.start(0)
		m.sync()
		synctest.Wait()
		assert.Empty(t, m.DB.Stream(2).Message)
		assert.False(t, m.Hub.Counts(2).Blocked)
	})
}

// TestDDL: the release lies behind a DDL. One that is ignored may be passed; one
// that is executed ends the window, and the stream waits for its peer.
func TestDDL(t *testing.T) {
	for _, onDDL := range []binlogdatapb.OnDDLAction{binlogdatapb.OnDDLAction_IGNORE, binlogdatapb.OnDDLAction_EXEC} {
		t.Run(onDDL.String(), func(t *testing.T) {
			inMerge(t, 2, func(m *merge) {
				prepare := m.Prepare
				m.Prepare = func(p *Player) {
					prepare(p)
					p.OnDDL = onDDL
				}
				m.startAll()
				m.Streams[0].Stop()
				m.sql(0, "insert into {0} values (1,10,'a')")
				m.Streams[0].Other(binlogdatapb.VEventType_DDL, "alter table t")
				m.sql(0, "update {0} set uid=30 where id=1")
				m.sql(1, "insert into {1} values (2,10,'b')")
				m.settle(time.Second)
				m.start(0)
				m.settle(3 * time.Second)
				if onDDL == binlogdatapb.OnDDLAction_EXEC {
					assert.NotEmpty(t, m.Converged())
					m.sql(1, "delete from {1} where id=2")
				}
				m.sync()
			})
		})
	}
}
