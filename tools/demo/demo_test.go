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

// rows is a set of rows by primary key.
type rows = map[int64]workload.Row

// TestDiffRows shows that each kind of difference is found, and counted once.
func TestDiffRows(t *testing.T) {
	want := rows{1: {Email: "a", Val: "x"}, 2: {Email: "", Val: "x"}, 3: {Email: "c", Val: "x"}}
	for name, test := range map[string]struct {
		have  rows
		equal bool
		text  string
	}{
		"equal":   {rows{1: {Email: "a", Val: "x"}, 2: {Email: "", Val: "x"}, 3: {Email: "c", Val: "x"}}, true, "equal, 3 rows"},
		"missing": {rows{1: {Email: "a", Val: "x"}, 2: {Email: "", Val: "x"}}, false, "1 are missing and 0 differ; 0 rows"},
		"extra":   {rows{1: {Email: "a", Val: "x"}, 2: {}, 3: {Email: "c", Val: "x"}, 4: {}}, false, "0 are missing and 1 differ; 1 rows"},
		"empty":   {rows{}, false, "3 are missing and 0 differ; 0 rows"},
	} {
		d := diffRows(want, test.have)
		if d.Equal() != test.equal || !strings.Contains(d.String(), test.text) {
			t.Errorf("%s: got %s", name, d)
		}
	}
}

// TestUnion shows that a value or a key that two sources hold is not accepted:
// the comparison would otherwise hide that the history was not valid.
func TestUnion(t *testing.T) {
	all, err := union([]rows{{1: {Email: "a"}, 2: {Email: ""}}, {3: {Email: "b"}, 4: {Email: ""}}})
	if err != nil || len(all) != 4 {
		t.Errorf("got %v, %v, want four rows", all, err)
	}
	for name, sources := range map[string][]rows{
		"primary key": {{1: {Email: "a"}}, {1: {Email: "b"}}},
		"email":       {{1: {Email: "a"}}, {2: {Email: "a"}}},
	} {
		if all, err := union(sources); err == nil {
			t.Errorf("%s twice: got %v, want an error", name, all)
		}
	}
}

// TestReadConflicts shows that the counters of this workflow are summed over
// its streams, and that a tablet without them is told apart from one without
// conflicts.
func TestReadConflicts(t *testing.T) {
	patched := readConflicts(cluster.Vars{
		conflictVar: []byte(`{"ks.-80.merge.Reshard.1": 2, "ks.80-.merge.Reshard.2": 3, "ks.-80.other.Reshard.3": 90}`),
		resolutionVar: []byte(`{"ks.-80.merge.Reshard.1.wait": 1, "ks.80-.merge.Reshard.2.wait": 2, "ks.-80.merge.Reshard.1.isolate": 1,
			"ks.-80.other.Reshard.3.wait": 90, "ks.-80.merge.Reshard.1.new_rung": 4}`),
		blockedVar: []byte(`{"ks.-80.merge.Reshard.1": 1, "ks.80-.merge.Reshard.2": 0}`),
	}, "merge")
	if got, want := patched.String(), "5 (isolate 1, wait 3, new rung 4), 1 blocked"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A vttablet that was started again counts from zero.
	again := readConflicts(cluster.Vars{conflictVar: []byte(`{"ks.-80.merge.Reshard.1": 1}`), resolutionVar: []byte(`{"ks.-80.merge.Reshard.1.wait": 1}`)}, "merge")
	if got, want := again.plus(patched).String(), "6 (isolate 1, wait 4, new rung 4)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	quiet := readConflicts(cluster.Vars{conflictVar: []byte(`{}`)}, "merge")
	if got := quiet.String(); got != "0" {
		t.Errorf("got %s, want 0", got)
	}
	stock := readConflicts(cluster.Vars{}, "merge")
	if got := stock.String(); got != "not counted" {
		t.Errorf("got %s, want not counted", got)
	}
}

// TestLine shows the progress line, with a stream that waits.
func TestLine(t *testing.T) {
	var stats workload.Stats
	m := NewMonitor(nil, "merge", &stats, nil)
	m.streams = []cluster.Stream{
		{ID: 1, SourceShard: "-80", State: "Running", Applied: time.Now().Add(-3500 * time.Millisecond)},
		{ID: 2, SourceShard: "80-", State: "Running", Message: "waits for\n'hot-1'"},
	}
	m.counts = Conflicts{Exported: true, Met: 1, Blocked: 1}
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
	m.earlier = Conflicts{Met: 3, Resolved: map[string]int64{"wait": 2}}
	m.counts = Conflicts{Met: 1, Resolved: map[string]int64{"wait": 1, "joint": 1}, Blocked: 1}
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
