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

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
)

type (
	// Summary adds up the results of many runs.
	Summary struct {
		Runs, Steps      int
		Conflicts        int64
		Errors, Remedied int
		Lifted           int
		Resolutions      map[mergebackoff.Resolution]int64
		// Slowest is the longest that a run took, in virtual time, to do what was
		// expected, and SlowestSeed its seed.
		Slowest     time.Duration
		SlowestSeed uint64
		// Faults are those that came at a step that was asked for.
		Faults Coverage
	}

	// Failure is a run that failed.
	Failure struct {
		History *History
		How     How
		What    string
	}
)

// Try runs a history, and returns what failed.
func (s *Summary) Try(t *testing.T, h *History, seed uint64) *Failure {
	how := How{Seed: seed}
	if result := s.Add(Run(t, h, how), seed); result.Failure != "" {
		return &Failure{History: h, How: how, What: result.Failure}
	}
	return nil
}

// Variants are the history with each kind of images and batches, unless it says
// with which it is to be run.
func (h *History) Variants() (all []*History) {
	if h.Options != (Options{}) {
		return []*History{h}
	}
	for _, batches := range []bool{false, true} {
		for _, images := range []Images{{}, {PartialJSON: true}, {NoBlob: true}, {NoBlob: true, PartialJSON: true}} {
			variant := *h
			variant.Options = Options{Batches: batches, Images: images}
			all = append(all, &variant)
		}
	}
	return all
}

// Add adds a result.
func (s *Summary) Add(result *Result, seed uint64) *Result {
	s.Runs++
	s.Steps += result.Steps
	s.Conflicts += result.Conflicts
	s.Errors += result.Errors
	s.Remedied += result.Remedied
	if result.Lifted {
		s.Lifted++
	}
	s.addResolutions(result.Resolutions)
	if result.Longest > s.Slowest {
		s.Slowest, s.SlowestSeed = result.Longest, seed
	}
	return result
}

// Merge adds another summary.
func (s *Summary) Merge(other *Summary) {
	s.Runs += other.Runs
	s.Steps += other.Steps
	s.Conflicts += other.Conflicts
	s.Errors += other.Errors
	s.Remedied += other.Remedied
	s.Lifted += other.Lifted
	s.addResolutions(other.Resolutions)
	for kind, calls := range other.Faults {
		for call, n := range calls {
			s.addFault(kind, call, n)
		}
	}
	if other.Slowest > s.Slowest {
		s.Slowest, s.SlowestSeed = other.Slowest, other.SlowestSeed
	}
}

func (s *Summary) addResolutions(more map[mergebackoff.Resolution]int64) {
	if s.Resolutions == nil {
		s.Resolutions = make(map[mergebackoff.Resolution]int64)
	}
	for resolution, n := range more {
		s.Resolutions[resolution] += n
	}
}

func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d steps, %d conflicts", s.Runs, s.Steps, s.Conflicts)
	for _, resolution := range slices.Sorted(maps.Keys(s.Resolutions)) {
		fmt.Fprintf(&b, ", %s %d", resolution, s.Resolutions[resolution])
	}
	fmt.Fprintf(&b, "; %d ended in Error, %d of them for a limit; %d stood at limits until those were lifted; the slowest took %v (seed %d)", s.Errors, s.Remedied, s.Lifted, s.Slowest, s.SlowestSeed)
	return b.String()
}

func (f *Failure) String() string {
	fault := ""
	if f.How.Fault != nil {
		fault = fmt.Sprintf(", with the fault %+v", *f.How.Fault)
	}
	return fmt.Sprintf("FAILED with seed %d%s: %s", f.How.Seed, fault, f.What)
}

// Report shrinks the failure, and returns it as a scenario, and a report of it with
// what the scheduler did.
func (f *Failure) Report(t *testing.T) (report, scenario string) {
	h, how := Shrink(t, f.History, f.How, f.What, 4000)
	how.Trace = true
	result := Run(t, h, how)
	for range 20 {
		// Two things that come at one instant have no order that a seed decides.
		if result.Failure != "" {
			break
		}
		result = Run(t, h, how)
	}
	scenario = h.Scenario(how.Seed)
	failed := &Failure{How: How{Seed: f.How.Seed, Fault: how.Fault}, What: f.What}
	report = fmt.Sprintf("%s\nShrunk: %s\n\n%s\n%s\n", failed, result.Failure, scenario, strings.Join(middleOut(result.Trace), "\n"))
	return report, scenario
}

// middleOut cuts the middle out of a long trace.
func middleOut(trace []string) []string {
	const most = 150
	if len(trace) <= 2*most {
		return trace
	}
	cut := fmt.Sprintf("          ... %d lines ...", len(trace)-2*most)
	return slices.Concat(trace[:most], []string{cut}, trace[len(trace)-most:])
}
