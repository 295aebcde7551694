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
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/binlog/binlogplayer"
)

// atOnce is how long a waiting stream may take to obey. It is to take 100 ms; the
// rest is for the statements on _vt.vreplication, on a busy machine.
const atOnce = 500 * time.Millisecond

// The streams of these tests wait for a value of a stopped peer. On stock there
// is no wait: each of them ends in Error 1062.

// TestMergeBackoffStop shows that a stream which waits stops at once, and that
// nothing is lost when it is started again.
func TestMergeBackoffStop(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		pos := m.column(1, "pos")
		m.quickly(atOnce, "stopping", func() { m.stop(1) })
		require.Equal(t, pos, m.column(1, "pos"))
		m.start(0)
		m.waitApplied(0)
		require.Empty(t, m.values("select id from vrepl.dst"))
		m.start(1)
		m.waitConverged()
		_, message := m.stream(1)
		require.Empty(t, message)
	})
}

// TestMergeBackoffDelete shows that a stream which waits can be deleted at once,
// and that its peers go on without it.
func TestMergeBackoffDelete(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		m.quickly(atOnce, "deleting", func() { m.deleteStream(1) })
		m.exec("insert into {0} values (7, 70, 'g')")
		m.start(0)
		m.waitApplied(0)
		require.Equal(t, []string{"7"}, m.values("select id from vrepl.dst"))
	})
}

// TestMergeBackoffEngineClose shows that the engine closes at once while a stream
// waits, as in a reparent, and that the streams take up again where they were
// when it opens.
func TestMergeBackoffEngineClose(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		func() {
			defer playerEngine.Open(context.Background())
			m.quickly(atOnce, "closing the engine", playerEngine.Close)
		}()
		m.waitBlocked(1)
		m.start(0)
		m.waitConverged()
		_, message := m.stream(1)
		require.Empty(t, message)
	})
}

// TestMergeBackoffStopPos shows that a stream which reaches its stop position
// while it resolves a conflict stops there exactly, with the rows that belong to
// that position; and so does one that reaches it just before.
func TestMergeBackoffStopPos(t *testing.T) {
	type history struct {
		before, behind []string // the stop position lies between the two
		rows           []string // on the target in the end, by id
	}
	for name, h := range map[string]history{
		"at the blocked transaction": {
			before: []string{"insert into {1} values (2, 10, 'b')"},
			behind: []string{"insert into {1} values (3, 30, 'c')", "insert into {1} values (4, 40, 'd')"},
			rows:   []string{"2"},
		},
		"behind the blocked transaction": {
			before: []string{"insert into {1} values (2, 10, 'b')", "insert into {1} values (3, 30, 'c')"},
			behind: []string{"insert into {1} values (4, 40, 'd')"},
			rows:   []string{"2", "3"},
		},
		"in front of the blocked transaction": {
			before: []string{"insert into {1} values (3, 30, 'c')"},
			behind: []string{"insert into {1} values (2, 10, 'b')"},
			rows:   []string{"3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			forMergeBatching(t, func(t *testing.T, batching mergeOption) {
				m := newMergeTest(t, 2, mergeDDL, batching)
				m.startAll()
				m.exec("insert into {0} values (1, 10, 'a')")
				m.waitConverged()
				m.stop(0)
				m.stop(1)
				m.exec("delete from {0} where id=1")
				m.exec(h.before...)
				stopPos := primaryPosition(t)
				m.exec(h.behind...)
				m.vreplication("%s", binlogplayer.StartVReplicationUntil(int32(m.ids[1]), stopPos))
				if name != "in front of the blocked transaction" {
					m.waitBlocked(1)
				}
				m.start(0)
				m.waitState(1, "Stopped")
				require.Equal(t, stopPos, m.column(1, "pos"))
				m.waitFor("stream 0 has applied its delete", func() (bool, string) {
					return len(m.values("select id from vrepl.dst where id=1")) == 0, ""
				})
				require.Equal(t, h.rows, m.values("select id from vrepl.dst order by id"))

				m.vreplication("update _vt.vreplication set state='Running', stop_pos=NULL, message='' where id=%d", m.ids[1])
				m.waitConverged()
			})
		})
	}
}
