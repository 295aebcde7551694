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
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// merge is a world in a synctest bubble: time is virtual, and nothing polls.
type merge struct {
	*World
	t *testing.T
}

func newMerge(t *testing.T, streams int, table *TableDef) *merge {
	m := &merge{World: NewWorld(streams, table), t: t}
	m.Beat = time.Second
	return m
}

// inMerge runs a test with so many streams, whose players batch or do not.
func inMerge(t *testing.T, streams int, test func(m *merge)) {
	t.Helper()
	for name, batches := range map[string]bool{"batching": true, "statement by statement": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, err := ParseTable("t", "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))")
				require.NoError(t, err)
				m := newMerge(t, streams, table)
				m.Prepare = func(p *Player) { p.Batches = batches }
				test(m)
				for _, s := range m.Streams {
					s.Cancel()
				}
				assert.Empty(t, m.DB.Wrong())
			})
		})
	}
}

// sql commits one transaction on a source, which reaches a running stream at once.
func (m *merge) sql(source int, statements ...string) {
	m.t.Helper()
	_, err := m.Streams[source].SQL(statements...)
	require.NoError(m.t, err)
	_, duplicate := m.Union()
	require.Empty(m.t, duplicate, "the history is not valid")
	m.Streams[source].Send()
}

// start starts streams, with all that their sources have committed.
func (m *merge) start(streams ...int) {
	for _, i := range streams {
		m.Streams[i].Start()
		m.Streams[i].Send()
	}
}

func (m *merge) startAll() {
	for i := range m.Streams {
		m.start(i)
	}
}

// sync waits until the target equals the union of the sources, and returns how
// long that took.
func (m *merge) sync() time.Duration {
	m.t.Helper()
	begun := time.Now()
	missing := ""
	for time.Since(begun) < 30*time.Second {
		synctest.Wait()
		if missing = m.Converged(); missing == "" {
			return time.Since(begun)
		}
		for _, s := range m.Streams {
			if s.Player != nil && !s.Running() && !errors.Is(s.Err, io.EOF) && !errors.Is(s.Err, context.Canceled) {
				require.NoError(m.t, s.Err, "stream %d has ended", s.ID)
			}
		}
		time.Sleep(time.Millisecond)
	}
	for _, s := range m.Streams {
		m.t.Logf("stream %d: %+v, counted %+v", s.ID, m.DB.Stream(s.ID), m.Hub.Counts(s.ID))
	}
	require.Empty(m.t, missing, "the streams are stuck")
	return 0
}

// settle lets everything happen that happens within a time.
func (m *merge) settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (m *merge) resolved(by mergebackoff.Resolution) (n int64) {
	for _, s := range m.Streams {
		n += m.Hub.Counts(s.ID).Resolutions[by]
	}
	return n
}

// blocked makes stream 1 wait for a value that stream 0, which is stopped, has
// yet to release.
func (m *merge) blocked() {
	m.t.Helper()
	m.sql(0, "insert into {0} values (1,10,'a')")
	m.startAll()
	m.sync()
	m.Streams[0].Stop()
	m.sql(0, "delete from {0} where id=1")
	m.sql(1, "insert into {1} values (2,10,'b')")
	m.settle(time.Second)
	require.True(m.t, m.Hub.Counts(2).Blocked)
}

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
				_, duplicate := m.Union()
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

// TestGenuine: two sources hold one value. The stream ends in MySQL's error,
// which names both rows, within ten seconds; the row that stood is kept.
func TestGenuine(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.startAll()
		m.sync()
		_, err := m.Streams[1].SQL("insert into {1} values (2,10,'b')")
		require.NoError(t, err)
		m.Streams[1].Send()
		m.settle(10 * time.Second)
		require.False(t, m.Streams[1].Running())
		err = m.Streams[1].Err
		var sqlErr *sqlerror.SQLError
		require.ErrorAs(t, sqlerror.NewSQLErrorFromError(err), &sqlErr)
		assert.Equal(t, sqlerror.ERDupEntry, sqlErr.Number())
		for _, want := range []string{"genuine", "'10'", "t.uid_uk", "('2')", "('1')", "stream 1 (merge, source ks/shard1)"} {
			assert.ErrorContains(t, err, want)
		}
		assert.Equal(t, Row{"1", "10", "a"}, m.DB.Rows()["t(1)"])
		assert.Empty(t, m.DB.Stream(2).Pos)
		assert.Equal(t, int64(1), m.Hub.Counts(2).Resolutions[mergebackoff.GivenUp])
		assert.False(t, m.Hub.Counts(2).Blocked)

		// Once an operator has repaired the source, it goes on.
		m.sql(0, "update {0} set uid=11 where id=1")
		m.start(1)
		m.sync()
	})
}

// TestNothingIsProvenWhileAPeerIsStopped: the release may be in what it has yet
// to read.
func TestNothingIsProvenWhileAPeerIsStopped(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.blocked()
		m.settle(10 * time.Minute)
		require.True(t, m.Streams[1].Running())
		m.start(0)
		m.sync()
	})
}

// TestNothingIsProvenByTheClocksOfAReplica: a replica lags by more than any grace.
// While it has nothing to send its heartbeats carry the present time, though the
// release is in what it has yet to apply.
func TestNothingIsProvenByTheClocksOfAReplica(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.startAll()
		m.sync()
		_, err := m.Streams[0].SQL("update {0} set uid=11 where id=1")
		require.NoError(t, err)
		m.sql(1, "insert into {1} values (2,10,'b')")
		m.settle(time.Minute)
		require.True(t, m.Streams[1].Running(), "ended with: %v", m.Streams[1].Err)
		m.Streams[0].Send()
		m.sync()
	})
}

// TestGenuineNeedsAnAnswer: while a source cannot be asked how far it is, nothing
// is proven. Once it can the stream ends.
func TestGenuineNeedsAnAnswer(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		sources := &unreachable{Sources: m.World}
		sources.away.Store(true)
		m.Hub.Sources = sources
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.startAll()
		m.sync()
		_, err := m.Streams[1].SQL("insert into {1} values (2,10,'b')")
		require.NoError(t, err)
		m.Streams[1].Send()
		m.settle(time.Minute)
		require.True(t, m.Streams[1].Running())
		assert.Contains(t, m.DB.Stream(2).Message, "ks/shard1 could not be asked: no primary")
		sources.away.Store(false)
		m.settle(5 * time.Second)
		assert.ErrorContains(t, m.Streams[1].Err, "genuine duplicate")
		assert.Empty(t, m.DB.Stream(2).Pos)
	})
}

// unreachable are sources whose primaries are away for a time.
type unreachable struct {
	mergebackoff.Sources
	away atomic.Bool
}

func (u *unreachable) Position(ctx context.Context, stream mergebackoff.Stream) (string, error) {
	if u.away.Load() && stream.ID == 1 {
		return "", errors.New("no primary")
	}
	return u.Sources.Position(ctx, stream)
}

// TestStuckInOrder: two streams block each other in transactions that nobody can
// reorder. One of them ends, with the reason; nothing is lost.
func TestStuckInOrder(t *testing.T) {
	inMerge(t, 3, func(m *merge) {
		m.Tables["t"].Refuse = "it has a foreign key"
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sql(1, "insert into {1} values (2,20,'b')")
		m.startAll()
		m.sync()
		for i, takes := range []string{
			"insert into {0} values (3,20,'a')", "insert into {1} values (4,10,'b')",
		} {
			_, err := m.Streams[i].SQL(takes)
			require.NoError(t, err)
			_, err = m.Streams[i].SQL("delete from {" + id(i-1) + "} where id=" + id(i))
			require.NoError(t, err)
		}
		_, duplicate := m.Union()
		require.Empty(t, duplicate)
		m.Streams[0].Send()
		m.Streams[1].Send()
		m.settle(20 * time.Second)
		ended := 0
		for _, s := range m.Streams[:2] {
			if !s.Running() {
				ended++
				assert.ErrorContains(t, s.Err, "could not be reordered: table t: it has a foreign key")
			}
		}
		assert.Positive(t, ended)
		assert.Len(t, m.DB.Rows(), 2)
	})
}

// TestLimit: a value that is not released within the limit ends the stream.
func TestLimit(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.Config.Limit = 20 * time.Second
		m.blocked()
		m.settle(15 * time.Second)
		require.True(t, m.Streams[1].Running())
		m.settle(10 * time.Second)
		require.False(t, m.Streams[1].Running())
		assert.ErrorContains(t, m.Streams[1].Err, "vreplication-max-time-to-retry-on-error")
	})
}

// TestStopInEveryRung: a stream that is stopped ends within 100 ms, wherever it
// is, and the others go on.
func TestStopInEveryRung(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		// Whatever rung the stream is on when the n-th call after its conflict
		// begins, it is stopped there.
		for n := range 60 {
			w := newMerge(t, 2, m.Tables["t"])
			prepare := m.Prepare
			calls, stopped := 0, time.Time{}
			w.Prepare = func(p *Player) {
				prepare(p)
				p.Enter = func(string) (error, bool) {
					if p.ID == 1 && w.Hub.Counts(1).Conflicts > 0 && stopped.IsZero() {
						if calls++; calls > n {
							stopped = time.Now()
							w.Streams[0].Cancel()
						}
					}
					return nil, false
				}
			}
			w.startAll()
			w.Streams[0].Stop()
			w.sql(0, "insert into {0} values (1,10,'a')")
			w.sql(0, "update {0} set val='x' where id=1")
			w.sql(1, "insert into {1} values (3,30,'a')")
			w.settle(time.Second)
			w.sql(0, "delete from {0} where id=1")
			w.sql(1, "insert into {1} values (2,10,'b')")
			w.settle(time.Second)
			w.start(0)
			w.settle(time.Second)
			if !stopped.IsZero() {
				require.False(t, w.Streams[0].Running(), "call %d", n)
			}
			w.Streams[0].Stop()
			w.start(0)
			w.sync()
			for _, s := range w.Streams {
				s.Stop()
			}
			assert.Empty(t, w.DB.Wrong())
		}
	})
}

// TestStopWhileWaiting: a stream that waits is stopped at once.
func TestStopWhileWaiting(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.blocked()
		begun := time.Now()
		m.Streams[1].Stop()
		assert.Less(t, time.Since(begun), 100*time.Millisecond)
		assert.False(t, m.Hub.Counts(2).Blocked)
		m.start(1)
		m.start(0)
		m.sync()
	})
}

// TestNil: a nil Backoff is one that is switched off.
func TestNil(t *testing.T) {
	var b *mergebackoff.Backoff
	assert.Nil(t, b.Leftover())
	assert.False(t, b.Skip())
	require.NoError(t, b.Fetched(nil))
	require.NoError(t, b.HoldBack(t.Context()))
	assert.True(t, b.Group(&binlogdatapb.VEvent{}))
}

// TestWithoutPeers: a stream without peers makes the calls that it makes without
// merge backoff, and fails at once.
func TestWithoutPeers(t *testing.T) {
	inMerge(t, 1, func(m *merge) {
		var calls [2][]string
		prepare := m.Prepare
		for i := range calls {
			w := newMerge(t, 1, m.Tables["t"])
			w.Prepare = func(p *Player) {
				prepare(p)
				p.Record = true
			}
			s := w.Streams[0]
			w.Off = i == 1
			w.start(0)
			w.sql(0, "insert into {0} values (1,10,'a')")
			w.sync()
			w.sql(0, "update {0} set uid=20 where id=1")
			w.sync()
			w.sql(0, "insert into {0} values (2,30,'a')", "insert into {0} values (3,40,'a')")
			w.sync()
			// The target has a row that no source knows of.
			tx := w.DB.Begin(9)
			_, err := w.DB.Exec(tx, w.DB.register(statement{text: "x", table: w.Tables["t"], insert: Row{"9", "90", "z"}}))
			require.NoError(t, err)
			tx.Commit()
			begun := time.Now()
			w.sql(0, "insert into {0} values (4,90,'a')")
			<-s.Done
			require.ErrorContains(t, s.Err, "Duplicate entry '90'")
			assert.NotContains(t, s.Err.Error(), mergebackoff.MessagePrefix)
			assert.Less(t, time.Since(begun), 2*time.Second)
			calls[i] = s.Player.Calls
		}
		own := calls[0][:0:0]
		for _, call := range calls[0] {
			if call != "Rollback" {
				own = append(own, call)
			}
		}
		assert.Equal(t, calls[1], own)
	})
}

// TestPeerAppears: the stream had no peer when it fetched. Its conflict must not
// be terminal before the peers are looked up again.
func TestPeerAppears(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.Hub.Remove(1)
		m.Hub.Remove(2)
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.start(0)
		m.sync()
		m.Streams[0].Stop()
		m.Hub.Remove(1)
		m.sql(0, "delete from {0} where id=1")
		appear := false
		prepare := m.Prepare
		m.Prepare = func(p *Player) {
			prepare(p)
			p.Enter = func(call string) (error, bool) {
				if call == "Apply ROW" && p.ID == 2 && !appear {
					appear = true
					m.Hub.Put(m.Streams[0].stream(binlogdatapb.VReplicationWorkflowState_Stopped))
				}
				return nil, false
			}
		}
		m.start(1)
		m.sql(1, "insert into {1} values (2,10,'b')")
		m.settle(time.Second)
		if !m.Streams[1].Running() {
			// The controller would start it again.
			require.ErrorContains(t, m.Streams[1].Err, "is read again")
			assert.NotContains(t, m.Streams[1].Err.Error(), "Duplicate entry")
			m.start(1)
		}
		m.settle(time.Second)
		m.start(0)
		m.sync()
	})
}

// TestPeersVanish: nobody is left who could release the value.
func TestPeersVanish(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.blocked()
		begun := time.Now()
		m.Hub.Remove(1)
		<-m.Streams[1].Done
		assert.Less(t, time.Since(begun), 100*time.Millisecond)
		require.ErrorContains(t, m.Streams[1].Err, "Duplicate entry '10'")
		assert.ErrorContains(t, m.Streams[1].Err, "no other stream")
	})
}

// TestThrottled: nothing is attempted while the throttler denies, and a stream
// that is throttled can be stopped.
func TestThrottled(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		var throttled atomic.Bool
		var attempts atomic.Int64
		prepare := m.Prepare
		m.Prepare = func(p *Player) {
			prepare(p)
			if p.ID != 2 {
				return
			}
			p.Throttle = func() bool {
				if throttled.Load() {
					time.Sleep(250 * time.Millisecond)
				}
				return throttled.Load()
			}
			p.Enter = func(call string) (error, bool) {
				if throttled.Load() && (strings.HasPrefix(call, "Apply ROW") || call == "Begin") {
					attempts.Add(1)
				}
				return nil, false
			}
		}
		m.blocked()
		throttled.Store(true)
		m.settle(2 * time.Second)
		attempts.Store(0)
		m.start(0)
		m.settle(5 * time.Second)
		assert.Zero(t, attempts.Load())
		require.True(t, m.Streams[1].Running())
		begun := time.Now()
		m.Streams[1].Stop()
		assert.LessOrEqual(t, time.Since(begun), 250*time.Millisecond, "the throttler's client does not look at the context")
		throttled.Store(false)
		m.start(1)
		m.sync()
	})
}

// TestConnectionLost: the connection breaks at any call of a resolution. The run
// ends, and the next one finds rows and position together, whether or not the
// last COMMIT went through.
func TestConnectionLost(t *testing.T) {
	inMerge(t, 3, func(m *merge) {
		for _, done := range []bool{false, true} {
			for n := range 40 {
				w := newMerge(t, 3, m.Tables["t"])
				prepare := m.Prepare
				var mu sync.Mutex
				calls, broken := 0, false
				w.Prepare = func(p *Player) {
					prepare(p)
					p.Enter = func(call string) (error, bool) {
						mu.Lock()
						defer mu.Unlock()
						conflicts := w.Hub.Counts(1).Conflicts + w.Hub.Counts(2).Conflicts + w.Hub.Counts(3).Conflicts
						if conflicts == 0 || broken || (done && call != "COMMIT") {
							return nil, false
						}
						if calls++; calls <= n {
							return nil, false
						}
						broken = true
						return errLost, done
					}
				}
				for i := range 3 {
					w.sql(i, "insert into {0} values "+row(i, i))
				}
				w.startAll()
				w.sync()
				for i := range 3 {
					w.Streams[i].Stop()
				}
				for i := range 3 {
					_, err := w.Streams[i].SQL("update {0} set uid=null where id="+id(i), "update {0} set uid="+id((i+1)%3)+" where id="+id(i))
					require.NoError(t, err)
				}
				w.startAll()
				for range 4 {
					w.settle(5 * time.Second)
					for i, s := range w.Streams {
						if !s.Running() {
							assert.NotErrorIs(t, s.Err, io.EOF)
							assert.NotContains(t, s.Err.Error(), "Duplicate")
							w.start(i)
						}
					}
				}
				w.sync()
				for _, s := range w.Streams {
					s.Stop()
				}
				assert.Empty(t, w.DB.Wrong(), "done %v, call %d", done, n)
			}
		}
	})
}

// TestStopPosition: the position at which a stream is to stop is reached while it
// resolves a conflict.
func TestStopPosition(t *testing.T) {
	inMerge(t, 2, func(m *merge) {
		m.startAll()
		m.Streams[0].Stop()
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sql(0, "update {0} set uid=30 where id=1")
		m.sql(0, "insert into {0} values (7,70,'late')")
		m.sql(1, "insert into {1} values (2,10,'b')")
		prepare := m.Prepare
		m.Prepare = func(p *Player) {
			prepare(p)
			if p.ID == 1 {
				p.StopPos = m.Streams[0].Log[1].GTID
			}
		}
		m.start(0)
		m.settle(3 * time.Second)
		require.False(t, m.Streams[0].Running())
		require.ErrorIs(t, m.Streams[0].Err, io.EOF)
		assert.Equal(t, "Stopped", m.DB.Stream(1).State)
		assert.Equal(t, m.Streams[0].Log[1].GTID, m.DB.Stream(1).Pos)
		assert.Equal(t, Row{"1", "30", "a"}, m.DB.Rows()["t(1)"])
		assert.Nil(t, m.DB.Rows()["t(7)"])
		m.Prepare = prepare
		m.start(0)
		m.sync()
	})
}

// TestDDL: the release lies behind a DDL. One that is ignored may be passed; one
// that is executed ends the window, and the stream waits for its peer.
func TestDDL(t *testing.T) {
	for name, executes := range map[string]bool{"ignored": false, "executed": true} {
		t.Run(name, func(t *testing.T) {
			inMerge(t, 2, func(m *merge) {
				prepare := m.Prepare
				m.Prepare = func(p *Player) {
					prepare(p)
					p.ExecutesDDL = executes
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
				if executes {
					assert.NotEmpty(t, m.Converged())
					m.sql(1, "delete from {1} where id=2")
				}
				m.sync()
			})
		})
	}
}
