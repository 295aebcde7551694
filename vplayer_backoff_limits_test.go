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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	plainTable = "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))"
	// refusedTable is one whose changes cannot be folded.
	refusedTable = "(id bigint, uid bigint, primary key(id), unique key uid_uk(uid), foreign key (uid) references elsewhere(id))"
)

// inMergeOf runs a test with two streams of two tables, t and t_f.
func inMergeOf(t *testing.T, test func(m *merge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		plain, err := ParseTable("t", plainTable)
		require.NoError(t, err)
		refused, err := ParseTable("t_f", refusedTable)
		require.NoError(t, err)
		m := &merge{World: NewWorld(2, plain, refused), t: t}
		m.Beat = time.Second
		defer func() {
			for _, s := range m.Streams {
				s.Cancel()
			}
			assert.Empty(t, m.DB.Wrong())
		}()
		test(m)
	})
}

// ends waits until one of two streams has ended with a duplicate that is not called
// genuine.
func (m *merge) ends(limit string) {
	m.t.Helper()
	s := m.Streams[0]
	select {
	case <-m.Streams[0].Done:
	case <-m.Streams[1].Done:
		s = m.Streams[1]
	case <-time.After(time.Minute):
		require.Fail(m.t, "the streams wait for ever", "%+v", m.DB.Stream(s.ID))
	}
	require.ErrorContains(m.t, s.Err, "errno 1062")
	assert.ErrorContains(m.t, s.Err, limit)
	assert.NotContains(m.t, s.Err.Error(), "genuine")
}

// TestTwoThatCannotBeFolded: each of two transactions that cannot be folded waits
// for the other. Neither has read what would be read past, yet both end.
func TestTwoThatCannotBeFolded(t *testing.T) {
	inMergeOf(t, func(m *merge) {
		m.startAll()
		m.sql(0, "insert into {0}_f values (1,10)")
		m.sql(1, "insert into {1}_f values (2,20)")
		m.sync()
		m.Streams[0].Stop()
		m.Streams[1].Stop()
		for i, sql := range [][]string{
			{"update {0}_f set uid=null where id=1", "update {0}_f set uid=20 where id=1"},
			{"update {1}_f set uid=null where id=2", "update {1}_f set uid=10 where id=2"},
		} {
			_, err := m.Streams[i].SQL(sql...)
			require.NoError(t, err)
		}
		m.startAll()
		m.ends("the transaction could not be reordered: table t_f: it has a foreign key")
	})
}

// TestReleaseBehindARefusal: the value was overtaken, and the stream's own release
// is behind a transaction that cannot be folded.
func TestReleaseBehindARefusal(t *testing.T) {
	inMergeOf(t, func(m *merge) {
		m.sql(0, "insert into {0} values (1,20,'a')")
		m.sql(0, "insert into {0}_f values (1,10)")
		m.sql(0, "update {0} set uid=30 where id=1")
		m.start(1)
		m.sql(1, "insert into {1} values (2,20,'b')")
		m.settle(time.Second)
		m.start(0)
		m.ends("its release is in, or behind, a transaction of this stream that could not be reordered: table t_f")
	})
}

// TestReleaseTooFarAhead: the value was overtaken, and the stream's own release lies
// further ahead than it may look.
func TestReleaseTooFarAhead(t *testing.T) {
	inMergeOf(t, func(m *merge) {
		m.Config.Retained = 40
		m.start(1)
		m.sql(0, "insert into {0} values (1,20,'a')")
		m.sql(0, "insert into {0} values (3,30,'"+strings.Repeat("x", 40)+"')")
		m.sql(0, "update {0} set uid=40 where id=1")
		m.sql(1, "insert into {1} values (2,20,'b')")
		m.settle(time.Second)
		s := m.Streams[0]
		s.Start()
		for ; s.Sent < len(s.Log); s.Sent++ {
			// It has time to stop reading when it holds enough.
			s.Player.Relay.Send(s.Events(s.Log[s.Sent])...)
			m.settle(100 * time.Millisecond)
		}
		m.ends("could look no further ahead than 40 bytes")
	})
}

// TestPackOfTwoStatements: the rows of a window take two statements, of which the
// second meets a duplicate. What the first has inserted is no duplicate of itself.
func TestPackOfTwoStatements(t *testing.T) {
	inMergeOf(t, func(m *merge) {
		m.Prepare = func(p *Player) { p.MaxBatch = 20 }
		m.startAll()
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sync()
		_, err := m.Streams[1].SQL("insert into {1} values (2,null,'b'),(3,10,'c')")
		require.NoError(t, err)
		m.Streams[1].Send()
		select {
		case <-m.Streams[1].Done:
		case <-time.After(time.Minute):
		}
		require.ErrorContains(t, m.Streams[1].Err, "giving up on the value '10' of key t.uid_uk, held by the row with primary key ('1')")
		assert.ErrorContains(t, m.Streams[1].Err, "genuine duplicate")
	})
}

// TestGenuinePrimaryKey: two sources hold one primary key. The row that wants it is
// not named as the one that has it.
func TestGenuinePrimaryKey(t *testing.T) {
	inMergeOf(t, func(m *merge) {
		m.startAll()
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sync()
		_, err := m.Streams[1].SQL("insert into {1} values (1,20,'b')")
		require.NoError(t, err)
		m.Streams[1].Send()
		select {
		case <-m.Streams[1].Done:
		case <-time.After(time.Minute):
		}
		require.ErrorContains(t, m.Streams[1].Err, "held by the row with primary key ('1') of stream 1 (")
		assert.ErrorContains(t, m.Streams[1].Err, "wanted by the row with primary key ('1') of stream 2 (")
	})
}
