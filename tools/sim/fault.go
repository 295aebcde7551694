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
)

type (
	// Fault is something that comes in front of a step.
	Fault struct {
		Step int
		Kind Kind
		// Stream is whom it happens to, if not all.
		Stream int
		// Done has a COMMIT that is under way go through.
		Done bool
	}

	// Coverage counts, by the kind of a fault, the calls at which it has struck.
	Coverage map[Kind]map[string]int
)

// strike has a fault happen.
func (r *run) strike(f *Fault) {
	r.mu.Lock()
	for _, p := range r.parked {
		if i := int(p.id) - 1; i == f.Stream || f.Kind == Crash || f.Kind == Outage || f.Kind == Close {
			r.result.Struck = append(r.result.Struck, p.call)
		}
	}
	r.mu.Unlock()
	r.result.Faulted = true
	r.trace("FAULT: %+v", *f)
	s, sr := r.Streams[f.Stream], r.runs[f.Stream]
	switch f.Kind {
	case Crash, Outage:
		r.breakAll()
		for _, sr := range r.runs {
			sr.done = f.Done
		}
		if f.Kind == Crash {
			r.endAll()
		}
	case Close:
		r.close()
	case Lose:
		sr.breaks(s, f.Done)
	case Stop:
		started, pos := sr.started, sr.stopPos
		r.stop(f.Stream)
		if started && r.failed == "" {
			sr.nextStop = pos
			r.start(f.Stream)
		}
	}
}

// faults are all that can happen at a step, by who stands where.
func faults(step int, standing []parked) (all []*Fault) {
	committing := false
	for _, p := range standing {
		i := int(p.id) - 1
		all = append(all, &Fault{Step: step, Kind: Lose, Stream: i}, &Fault{Step: step, Kind: Stop, Stream: i})
		if p.call == "COMMIT" {
			committing = true
			all = append(all, &Fault{Step: step, Kind: Lose, Stream: i, Done: true})
		}
	}
	all = append(all, &Fault{Step: step, Kind: Crash}, &Fault{Step: step, Kind: Outage}, &Fault{Step: step, Kind: Close})
	if committing {
		all = append(all, &Fault{Step: step, Kind: Crash, Done: true}, &Fault{Step: step, Kind: Outage, Done: true})
	}
	return all
}

// Everywhere runs a history once, and then once more for each step and for each
// fault that can come there. It returns the first that fails, or nil.
func (s *Summary) Everywhere(t *testing.T, h *History, seed uint64) *Failure {
	var steps [][]parked
	how := How{Seed: seed, standing: &steps}
	if result := s.Add(Run(t, h, how), seed); result.Failure != "" {
		return &Failure{History: h, How: How{Seed: seed}, What: result.Failure}
	}
	for step, standing := range steps {
		for _, fault := range faults(step, standing) {
			how := How{Seed: seed, Fault: fault}
			result := s.Add(Run(t, h, how), seed)
			if result.Failure != "" {
				return &Failure{History: h, How: how, What: result.Failure}
			}
			if !result.Faulted {
				return &Failure{History: h, How: how, What: "the fault did not come"}
			}
			for _, call := range result.Struck {
				s.addFault(fault.Kind, callName(call), 1)
			}
		}
	}
	return nil
}

func (s *Summary) addFault(kind Kind, call string, n int) {
	if s.Faults == nil {
		s.Faults = make(Coverage)
	}
	if s.Faults[kind] == nil {
		s.Faults[kind] = make(map[string]int)
	}
	s.Faults[kind][call] += n
}

// String says where the faults of each kind came.
func (c Coverage) String() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%s at", kind)
		for i, call := range slices.Sorted(maps.Keys(c[kind])) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s %d", call, c[kind][call])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// callName is a call without what it is about.
func callName(call string) string {
	if rest, ok := strings.CutPrefix(call, "Exec "); ok {
		verb, _, _ := strings.Cut(rest, " ")
		return "Exec " + verb
	}
	return call
}
