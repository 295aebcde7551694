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

package cluster

import (
	"os"
	"strings"
	"testing"
)

// read returns a file of testdata.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestParseWorkflowShow shows that the streams of a merge are read from the
// output of a real vtctldclient.
func TestParseWorkflowShow(t *testing.T) {
	streams, err := parseWorkflowShow(read(t, "workflow_show.json"), "merge")
	if err != nil {
		t.Fatal(err)
	}
	if len(streams) != 2 {
		t.Fatalf("got %d streams, want 2", len(streams))
	}
	for i, want := range []string{"-80", "80-"} {
		got := streams[i]
		if got.SourceShard != want || got.TargetShard != "-" || got.Tablet != "zone1-102" {
			t.Errorf("stream %d: got %+v, want source shard %s", i, got, want)
		}
		if got.State != "Running" || got.Copying || !strings.Contains(got.Position, ":1-") {
			t.Errorf("stream %d: got %+v, want it running, with a position", i, got)
		}
	}
}

// TestParseWorkflowShowBad shows that missing streams are an error, never an
// empty success.
func TestParseWorkflowShowBad(t *testing.T) {
	for _, in := range []string{``, `{}`, `{"workflows":[]}`, `{"workflows":[{"name":"other"}]}`, `not json`} {
		if streams, err := parseWorkflowShow([]byte(in), "merge"); err == nil {
			t.Errorf("%q: got %v, want an error", in, streams)
		}
	}
}

// TestParseVDiffShow shows that a clean and a failing VDiff are told apart.
func TestParseVDiffShow(t *testing.T) {
	clean, err := parseVDiffShow(read(t, "vdiff_clean.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !clean.Clean() || clean.RowsCompared == 0 {
		t.Errorf("got %+v, want it clean", clean)
	}
	dirty, err := parseVDiffShow(read(t, "vdiff_mismatch.json"))
	if err != nil {
		t.Fatal(err)
	}
	if dirty.Clean() || !dirty.HasMismatch || !strings.Contains(dirty.String(), "only in the target") {
		t.Errorf("got %s, want a mismatch", dirty)
	}
}

// TestVDiffNotClean shows that only an ended, errorless VDiff is clean.
func TestVDiffNotClean(t *testing.T) {
	for _, in := range []string{
		`{"State":"started","HasMismatch":false}`,
		`{"State":"error","HasMismatch":false}`,
		`{"State":"completed","HasMismatch":true}`,
		`{"State":"completed","Errors":{"-":"boom"}}`,
	} {
		if diff, err := parseVDiffShow([]byte(in)); err != nil || diff.Clean() {
			t.Errorf("%s: got clean or error %v", in, err)
		}
	}
	for _, in := range []string{``, `{}`, `[]`} {
		if _, err := parseVDiffShow([]byte(in)); err == nil {
			t.Errorf("%q: want an error", in)
		}
	}
}

// TestSourceShard shows that the shard is found in the stored text of a source.
func TestSourceShard(t *testing.T) {
	for text, want := range map[string]string{
		`keyspace:"ks" shard:"-80" filter:{rules:{match:"/.*" filter:"-"}}`:  "-80",
		`keyspace:"ks"  shard:"80-"  filter:{rules:{match:"/.*"}}`:           "80-",
		`keyspace:"ks"  shard: "-"  filter:{rules:{match:"t" filter:"-80"}}`: "-",
	} {
		if got := sourceShard.FindStringSubmatch(text); got == nil || got[1] != want {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
	}
}

// TestVars shows that counters with labels, without, and missing ones are read.
func TestVars(t *testing.T) {
	vars := Vars{"plain": []byte("7"), "labelled": []byte(`{"merge.1": 2, "merge.2": 3}`)}
	for name, want := range map[string]int64{"plain": 7, "labelled": 5, "missing": 0} {
		if got := vars.Int(name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
	if got := vars.Map("labelled")["merge.2"]; got != 3 {
		t.Errorf("got %d, want 3", got)
	}
}

// TestPorts shows that no port is handed out twice.
func TestPorts(t *testing.T) {
	var p ports
	list, err := p.nextN(50)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, port := range list {
		if seen[port] || port < lowestPort || port >= highestPort {
			t.Errorf("port %d is outside the range, or given twice", port)
		}
		seen[port] = true
	}
}
