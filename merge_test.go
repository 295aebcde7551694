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
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
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
	require.Empty(m.t, m.Duplicate(), "the history is not valid")
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
