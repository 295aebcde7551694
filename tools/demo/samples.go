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
	"encoding/json"
	"maps"
	"os"
	"time"
)

type (
	// Samples is the progress of a run, as a program may want to draw it.
	Samples struct {
		Seed      uint64 `json:"seed"`
		Clients   int    `json:"clients"`
		HotValues int    `json:"hot_values"`
		BulkRows  int    `json:"bulk_rows"`
		// StormBegin and StormEnd are when the hot load began and when all writes
		// ended, in seconds since the first sample's zero.
		StormBegin float64  `json:"storm_begin"`
		StormEnd   float64  `json:"storm_end"`
		Samples    []Sample `json:"samples"`
	}

	// Sample is what one line of the progress says.
	Sample struct {
		Seconds    float64 `json:"seconds"`
		Statements int64   `json:"statements"`
		// Lag is the largest lag of each stream since the sample before, in seconds,
		// by the source's shard. A stream that has applied nothing yet has none.
		Lag       map[string]float64 `json:"lag"`
		Conflicts int64              `json:"conflicts"`
		Resolved  map[string]int64   `json:"resolved"`
		Blocked   int64              `json:"blocked"`
	}
)

// sample notes what the streams and the counters say now.
func (m *Monitor) sample(statements int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.counts.Plus(m.earlier)
	m.samples = append(m.samples, Sample{
		Seconds:    time.Since(m.begin).Seconds(),
		Statements: statements,
		Lag:        m.worst,
		Conflicts:  counts.Met,
		Resolved:   counts.Resolved,
		Blocked:    counts.Blocked,
	})
	m.worst = make(map[string]float64)
}

// Note takes a sample now, outside of the seconds.
func (m *Monitor) Note(ctx context.Context) {
	m.count(ctx)
	m.sample(m.stats.Statements.Load())
}

// Samples returns what was seen, second by second.
func (m *Monitor) Samples() Samples {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Samples{Samples: append([]Sample(nil), m.samples...)}
	if !m.stormBegin.IsZero() {
		s.StormBegin = m.stormBegin.Sub(m.begin).Seconds()
	}
	if !m.stormEnd.IsZero() {
		s.StormEnd = m.stormEnd.Sub(m.begin).Seconds()
	}
	for i := range s.Samples {
		s.Samples[i].Lag = maps.Clone(s.Samples[i].Lag)
	}
	return s
}

// writeSamples writes the run's progress as JSON.
func (r *run) writeSamples(path string) error {
	s := r.monitor.Samples()
	s.Seed, s.BulkRows, s.HotValues = r.cfg.Seed, r.cfg.BulkRows, r.cfg.HotValues
	s.Clients = min(r.cfg.Clients, r.cfg.HotValues)
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
