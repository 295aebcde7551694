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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

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
		require.Empty(t, m.Duplicate())
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
			_, err := w.DB.Exec(tx, w.DB.register(statement{text: "x", table: w.Tables["t"], inserts: []Row{{"9", "90", "z"}}}))
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
