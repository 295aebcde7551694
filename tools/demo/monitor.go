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

package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// pollInterval is how often the streams are looked at; a line is printed once
// a second.
const pollInterval = 200 * time.Millisecond

// Monitor watches the streams of a workflow on one target tablet.
type Monitor struct {
	target   *cluster.Tablet
	workflow string
	stats    *workload.Stats
	print    func(format string, args ...any)

	mu       sync.Mutex
	begin    time.Time
	streams  []cluster.Stream
	counts   cluster.Conflicts
	earlier  cluster.Conflicts // of processes that have ended
	goal     map[string]string // source position to reach, by shard
	reached  map[int]bool
	underWay bool // the hot load has begun: lag counts
	maxLag   time.Duration
	moved    time.Time      // when a position last changed
	said     map[int]string // the message last printed, by stream

	samples              []Sample
	worst                map[string]float64 // lag since the last sample, by shard
	stormBegin, stormEnd time.Time
}

// NewMonitor returns a monitor; print receives its lines.
func NewMonitor(target *cluster.Tablet, workflow string, stats *workload.Stats, print func(string, ...any)) *Monitor {
	return &Monitor{
		target: target, workflow: workflow, stats: stats, print: print, begin: time.Now(), moved: time.Now(),
		said: make(map[int]string), worst: make(map[string]float64),
	}
}

// Run polls until ctx is done or a stream ends in state Error, which it
// returns as a cluster.StreamError at once.
func (m *Monitor) Run(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var next, printed time.Time
	var sent int64
	for {
		if err := m.poll(ctx); err != nil {
			m.count(ctx)
			m.print("%s\n%s\n", m.line(m.stats.Statements.Load(), 0), err)
			return err
		}
		if !time.Now().Before(next) {
			m.count(ctx)
			now := m.stats.Statements.Load()
			rate := 0.0
			if !printed.IsZero() {
				rate = float64(now-sent) / time.Since(printed).Seconds()
			}
			m.print("%s\n", m.line(now, rate))
			m.sample(now)
			printed, sent = time.Now(), now
			// One line a second, also when a poll took longer than its interval.
			next = m.begin.Add(time.Since(m.begin).Truncate(time.Second) + time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// poll reads the streams. A tablet that cannot be read just now is no error:
// it may be restarting.
func (m *Monitor) poll(ctx context.Context) error {
	m.mu.Lock()
	target, goal := m.target, m.goal
	m.mu.Unlock()
	streams, err := target.Streams(ctx, m.workflow)
	if err != nil {
		return nil
	}
	reached := make(map[int]bool)
	for _, stream := range streams {
		if goal[stream.SourceShard] != "" {
			ok, err := target.Contains(ctx, stream.Position, goal[stream.SourceShard])
			reached[stream.ID] = ok && err == nil
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, stream := range streams {
		if i >= len(m.streams) || m.streams[i].Position != stream.Position {
			m.moved = time.Now()
		}
	}
	m.streams, m.reached = streams, reached
	for _, stream := range streams {
		if lag, known := m.lag(stream); known {
			m.worst[stream.SourceShard] = max(m.worst[stream.SourceShard], lag.Seconds())
			if m.underWay {
				m.maxLag = max(m.maxLag, lag)
			}
		}
		if stream.State == "Error" {
			return &cluster.StreamError{Stream: stream}
		}
	}
	return nil
}

// lag is how old the last applied transaction of a stream is. While every
// source is written to all the time, that is how far the stream is behind. m.mu
// is held.
func (m *Monitor) lag(s cluster.Stream) (time.Duration, bool) {
	if m.reached[s.ID] {
		return 0, true
	}
	if s.Applied.IsZero() {
		return 0, false
	}
	return max(0, time.Since(s.Applied).Truncate(time.Second)), true
}

// count reads the counters of the vttablet; what it cannot read stays.
func (m *Monitor) count(ctx context.Context) {
	m.mu.Lock()
	target := m.target
	m.mu.Unlock()
	vars, err := target.Vars(ctx)
	if err != nil {
		return
	}
	counts := cluster.ReadConflicts(vars, m.workflow)
	m.mu.Lock()
	defer m.mu.Unlock()
	if counts.Met < m.counts.Met {
		m.earlier = m.counts.Plus(m.earlier)
	}
	m.counts = counts
}

// line is the progress in one line.
func (m *Monitor) line(sent int64, rate float64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "%4.0fs  sent %6d (%4.0f/s)", time.Since(m.begin).Seconds(), sent, rate)
	var waits []string
	for _, s := range m.streams {
		lag := "?"
		if d, known := m.lag(s); known {
			lag = fmt.Sprintf("%.0fs", d.Seconds())
		}
		fmt.Fprintf(&text, "  | %s %s lag %s", s.SourceShard, s.State, lag)
		switch message := shorten(s.Message, 160); {
		case message == "":
		case message == m.said[s.ID]:
			waits = append(waits, s.SourceShard+": as before")
		default:
			waits = append(waits, s.SourceShard+": "+message)
		}
		m.said[s.ID] = shorten(s.Message, 160)
	}
	fmt.Fprintf(&text, "  | conflicts %s", m.counts.Plus(m.earlier))
	if len(waits) > 0 {
		fmt.Fprintf(&text, "  | %s", strings.Join(waits, "; "))
	}
	return text.String()
}

// shorten makes a message fit in a line.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// SetTarget tells the monitor that another tablet runs the streams now, as
// after a reparent.
func (m *Monitor) SetTarget(target *cluster.Tablet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.target = target
}

// States returns the streams as last seen.
func (m *Monitor) States() []cluster.Stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streams
}

// Begin says that the hot load begins: from now on, lag counts.
func (m *Monitor) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.underWay, m.stormBegin = true, time.Now()
}

// MaxLag is the largest lag seen since Begin, in whole seconds.
func (m *Monitor) MaxLag() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.maxLag
}

// Conflicts returns the counters as last seen.
func (m *Monitor) Conflicts() cluster.Conflicts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts.Plus(m.earlier)
}

// running tells whether there are n streams, all of them past the copy phase.
func (m *Monitor) running(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.streams) != n {
		return false
	}
	for _, stream := range m.streams {
		if stream.State != "Running" || stream.Applied.IsZero() {
			return false
		}
	}
	return true
}

// Drain waits until every stream has applied what its source has at this
// moment. It gives up when no position moves for the given time.
func (m *Monitor) Drain(ctx context.Context, sources []*cluster.Tablet, stuck time.Duration) error {
	goal := make(map[string]string)
	for _, source := range sources {
		position, err := source.Executed(ctx)
		if err != nil {
			return err
		}
		goal[source.Shard] = position
	}
	m.mu.Lock()
	m.goal, m.reached, m.moved = goal, nil, time.Now()
	m.stormEnd = m.moved
	m.mu.Unlock()
	return m.until(ctx, stuck, "the streams to catch up", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		done := len(m.streams) == len(goal)
		for _, stream := range m.streams {
			done = done && m.reached[stream.ID]
		}
		return done
	})
}

// until waits for a condition of the polled state, as long as positions move.
func (m *Monitor) until(ctx context.Context, stuck time.Duration, what string, done func() bool) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !done() {
		m.mu.Lock()
		still := time.Since(m.moved)
		m.mu.Unlock()
		if still > stuck {
			return fmt.Errorf("waited for %s, but no stream has moved for %s", what, stuck)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}
