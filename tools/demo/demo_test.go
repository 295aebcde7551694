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
	"bytes"
	"strings"
	"testing"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// TestLine shows the progress line, with a stream that waits.
func TestLine(t *testing.T) {
	var stats workload.Stats
	m := NewMonitor(nil, "merge", &stats, nil)
	m.streams = []cluster.Stream{
		{ID: 1, SourceShard: "-80", State: "Running", Applied: time.Now().Add(-3500 * time.Millisecond)},
		{ID: 2, SourceShard: "80-", State: "Running", Message: "waits for\n'hot-1'"},
	}
	m.counts = cluster.Conflicts{Exported: true, Met: 1, Blocked: 1}
	got := m.line(1234, 600)
	want := "   0s  sent   1234 ( 600/s)  | -80 Running lag 3s  | 80- Running lag ?  | conflicts 1, 1 blocked  | 80-: waits for 'hot-1'"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// What was said before is not said again, until it changes.
	if got := m.line(0, 0); !strings.Contains(got, "80-: as before") {
		t.Errorf("got %s", got)
	}
	// A stream that has reached its source's position has no lag, however old
	// the last transaction is.
	m.reached = map[int]bool{1: true}
	if got := m.line(0, 0); !strings.Contains(got, "-80 Running lag 0s") {
		t.Errorf("got %s", got)
	}
}

// TestSamples shows that a sample has the worst lag since the one before, and what
// the counters of all processes of the tablet add up to.
func TestSamples(t *testing.T) {
	m := NewMonitor(nil, "merge", new(workload.Stats), nil)
	m.earlier = cluster.Conflicts{Met: 3, Resolved: map[string]int64{"wait": 2}}
	m.counts = cluster.Conflicts{Met: 1, Resolved: map[string]int64{"wait": 1, "joint": 1}, Blocked: 1}
	m.worst["-80"] = 4
	m.sample(100)
	m.worst["80-"] = 1
	m.sample(200)
	m.Begin()
	s := m.Samples()
	if len(s.Samples) != 2 || s.StormBegin <= 0 || s.StormEnd != 0 {
		t.Fatalf("got %+v", s)
	}
	first, second := s.Samples[0], s.Samples[1]
	if first.Conflicts != 4 || first.Resolved["wait"] != 3 || first.Resolved["joint"] != 1 || first.Blocked != 1 || first.Statements != 100 {
		t.Errorf("got %+v", first)
	}
	if first.Lag["-80"] != 4 || len(second.Lag) != 1 || second.Lag["80-"] != 1 {
		t.Errorf("got the lags %v and %v", first.Lag, second.Lag)
	}
}

// TestShorten shows that a long message is cut between characters.
func TestShorten(t *testing.T) {
	if got := shorten("ääää ääää", 5); got != "ääää…" {
		t.Errorf("got %s", got)
	}
}

// TestSummary shows that what a run did not come to is named as such.
func TestSummary(t *testing.T) {
	var out bytes.Buffer
	(&Summary{Seed: 7, Stock: true}).Print(&out)
	for _, want := range []string{"stock, unpatched", "7", "not reached"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, out.String())
		}
	}
}
