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
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
