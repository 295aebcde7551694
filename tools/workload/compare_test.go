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

package workload

import (
	"strings"
	"testing"
)

// rows is a set of rows by primary key.
type rows = map[int64]Row

// TestDiff shows that each kind of difference is found, and counted once.
func TestDiff(t *testing.T) {
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
		d := Diff(want, test.have)
		if d.Equal() != test.equal || !strings.Contains(d.String(), test.text) {
			t.Errorf("%s: got %s", name, d)
		}
	}
}

// TestUnion shows that a value or a key that two sources hold is not accepted:
// the comparison would otherwise hide that the history was not valid.
func TestUnion(t *testing.T) {
	all, err := Union([]rows{{1: {Email: "a"}, 2: {Email: ""}}, {3: {Email: "b"}, 4: {Email: ""}}})
	if err != nil || len(all) != 4 {
		t.Errorf("got %v, %v, want four rows", all, err)
	}
	for name, sources := range map[string][]rows{
		"primary key": {{1: {Email: "a"}}, {1: {Email: "b"}}},
		"email":       {{1: {Email: "a"}}, {2: {Email: "a"}}},
	} {
		if all, err := Union(sources); err == nil {
			t.Errorf("%s twice: got %v, want an error", name, all)
		}
	}
}
