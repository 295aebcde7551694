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
	}

	// Failure is a run that failed.
	Failure struct {
		Seed    uint64
		History *History
		How     How
		What    string
	}
)

// Try runs the history of a seed, and returns what failed.
func (s *Summary) Try(t *testing.T, seed uint64, genuine bool) *Failure {
	h, err := Generate(seed, genuine)
	if err != nil {
		return &Failure{Seed: seed, History: &History{}, What: err.Error()}
	}
	how := How{Seed: seed}
	if result := s.Add(Run(t, h, how), seed); result.Failure != "" {
		return &Failure{Seed: seed, History: h, How: how, What: result.Failure}
	}
	return nil
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
	if s.Resolutions == nil {
		s.Resolutions = make(map[mergebackoff.Resolution]int64)
	}
	for resolution, n := range result.Resolutions {
		s.Resolutions[resolution] += n
	}
	if result.Longest > s.Slowest {
		s.Slowest, s.SlowestSeed = result.Longest, seed
	}
	return result
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

// Report shrinks the failure, and tells it as a scenario, with what the scheduler
// did.
func (f *Failure) Report(t *testing.T) string {
	h, how := Shrink(t, f.History, f.How, f.What, 4000)
	how.Trace = true
	result := Run(t, h, how)
	return fmt.Sprintf("seed %d: %s\nshrunk: %s\n\n%s\n%s\n", f.Seed, f.What, result.Failure, h.Scenario(how.Seed), strings.Join(middleOut(result.Trace), "\n"))
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
