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

import "testing"

// TestReadConflicts shows that the counters of this workflow are summed over
// its streams, and that a tablet without them is told apart from one without
// conflicts.
func TestReadConflicts(t *testing.T) {
	patched := ReadConflicts(Vars{
		conflictVar: []byte(`{"ks.-80.merge.Reshard.1": 2, "ks.80-.merge.Reshard.2": 3, "ks.-80.other.Reshard.3": 90}`),
		resolutionVar: []byte(`{"ks.-80.merge.Reshard.1.wait": 1, "ks.80-.merge.Reshard.2.wait": 2, "ks.-80.merge.Reshard.1.isolate": 1,
			"ks.-80.other.Reshard.3.wait": 90, "ks.-80.merge.Reshard.1.new_rung": 4}`),
		blockedVar: []byte(`{"ks.-80.merge.Reshard.1": 1, "ks.80-.merge.Reshard.2": 0}`),
	}, "merge")
	if got, want := patched.String(), "5 (isolate 1, wait 3, new rung 4), 1 blocked"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A vttablet that was started again counts from zero.
	again := ReadConflicts(Vars{conflictVar: []byte(`{"ks.-80.merge.Reshard.1": 1}`), resolutionVar: []byte(`{"ks.-80.merge.Reshard.1.wait": 1}`)}, "merge")
	if got, want := again.Plus(patched).String(), "6 (isolate 1, wait 4, new rung 4)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	quiet := ReadConflicts(Vars{conflictVar: []byte(`{}`)}, "merge")
	if got := quiet.String(); got != "0" {
		t.Errorf("got %s, want 0", got)
	}
	stock := ReadConflicts(Vars{}, "merge")
	if got := stock.String(); got != "not counted" {
		t.Errorf("got %s, want not counted", got)
	}
}
