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
		Runs, Steps int
		Conflicts   int64
		Resolutions map[mergebackoff.Resolution]int64
		// Slowest is the longest that a run took, in virtual time, from the last
		// action to the end, and SlowestSeed its seed.
		Slowest     time.Duration
		SlowestSeed uint64
	}

	// Failure is a run that failed.
	Failure struct {
		Seed    uint64
		History *History
		What    string
	}
)

// Try runs the history of a seed, and returns what failed.
func (s *Summary) Try(t *testing.T, seed uint64, genuine bool) *Failure {
	h, err := Generate(seed, genuine)
	if err != nil {
		return &Failure{Seed: seed, History: &History{}, What: err.Error()}
	}
	result := Run(t, h, seed, false)
	s.Runs++
	s.Steps += result.Steps
	s.Conflicts += result.Conflicts
	if s.Resolutions == nil {
		s.Resolutions = make(map[mergebackoff.Resolution]int64)
	}
	for resolution, n := range result.Resolutions {
		s.Resolutions[resolution] += n
	}
	if result.Last > s.Slowest {
		s.Slowest, s.SlowestSeed = result.Last, seed
	}
	if result.Failure != "" {
		return &Failure{Seed: seed, History: h, What: result.Failure}
	}
	return nil
}

func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d steps, %d conflicts", s.Runs, s.Steps, s.Conflicts)
	for _, resolution := range slices.Sorted(maps.Keys(s.Resolutions)) {
		fmt.Fprintf(&b, ", %s %d", resolution, s.Resolutions[resolution])
	}
	fmt.Fprintf(&b, "; the slowest took %v (seed %d)", s.Slowest, s.SlowestSeed)
	return b.String()
}

// Report shrinks the failure, and tells it as a scenario, with what the scheduler
// did.
func (f *Failure) Report(t *testing.T) string {
	h, seed := Shrink(t, f.History, f.Seed, 4000)
	result := Run(t, h, seed, true)
	return fmt.Sprintf("seed %d: %s\nshrunk, with scheduler seed %d: %s\n\n%s\n%s\n",
		f.Seed, f.What, seed, result.Failure, h.Scenario(), strings.Join(result.Trace, "\n"))
}
