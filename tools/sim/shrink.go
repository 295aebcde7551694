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
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Valid reports whether a history can happen: every statement finds its rows, and
// the sources are unique after each action, unless it is about what they are not.
func (h *History) Valid() bool {
	candidate := *h
	return candidate.repair() && candidate.runs() && len(candidate.Actions) == len(h.Actions)
}

// repair leaves out the transactions that cannot happen, and reports whether the
// history is valid without them.
func (h *History) repair() bool {
	tables, err := h.Defined()
	n := len(h.Actions)
	if err != nil || n == 0 {
		return false
	}
	world := NewWorld(h.Streams, tables...)
	var kept []Action
	genuine := h.genuine()
	gone := make(map[int]bool)
	for i, action := range h.Actions {
		if slices.ContainsFunc(action.parts(), func(a Action) bool { return gone[a.Stream] && a.changesSource() }) {
			continue
		}
		switch action.Kind {
		case Go:
			if len(world.Streams[action.Stream].Rows()) > 0 {
				continue
			}
			gone[action.Stream] = true
		case Transaction:
			// The one that makes the duplicate is the last in front of what is
			// expected of it.
			mayDuplicate := genuine && i+1 < n && h.Actions[i+1].Kind == ExpectError
			if !action.happens(world, mayDuplicate) {
				continue
			}
		case ExpectError:
			if world.Duplicate() == "" {
				return false
			}
		case Converge:
			if world.Duplicate() != "" {
				return false
			}
		}
		kept = append(kept, action)
	}
	h.Actions = kept
	last := kept[len(kept)-1].Kind
	return last == Converge || last == ExpectError
}

func (a Action) changesSource() bool {
	return a.Kind == Transaction || a.Kind == DDL || a.Kind == Other
}

// happens makes an action's transactions, all or none of them.
func (a Action) happens(world *World, mayDuplicate bool) bool {
	before := world.Duplicate()
	done := 0
	for _, part := range a.parts() {
		if _, err := world.Streams[part.Stream].Execute(part.SQL); err != nil {
			break
		}
		done++
	}
	after := world.Duplicate()
	if done == len(a.parts()) && (after == "" || mayDuplicate || after == before) {
		return true
	}
	for _, part := range slices.Backward(a.parts()[:done]) {
		world.Streams[part.Stream].Revert()
	}
	return false
}

// runs reports whether all streams have been started when something is expected of
// them.
func (h *History) runs() bool {
	running := make(map[int]bool)
	for _, action := range h.Actions {
		switch action.Kind {
		case Start, StopAt, Come:
			running[action.Stream] = true
		case Stop:
			delete(running, action.Stream)
			if action.At != "" {
				// It may be another that is stopped.
				clear(running)
			}
		case Converge, ExpectError:
			if len(running) < h.Streams {
				return false
			}
			// Whoever ended in Error has to be started again.
			if action.Kind == ExpectError {
				clear(running)
			}
		}
	}
	return true
}

// shrinker looks for a shorter history that fails.
type shrinker struct {
	t      *testing.T
	h      *History
	how    How
	what   string
	budget int
	// until is when it stops in any case: the runs may be long.
	until time.Time
}

// sort is a failure without what it is about.
func sort(failure string) string {
	text, _, _ := strings.Cut(failure, ":")
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return '#'
		}
		return c
	}, text)
}

// seedsTried is how many seeds a shorter history is tried with.
const seedsTried = 40

// shrinkTime is for how long a shorter history is looked for.
const shrinkTime = time.Minute

// Shrink looks for a shorter history that fails in the same way, with any of some
// seeds, and returns it with how it is run. It tries at most budget runs.
func Shrink(t *testing.T, h *History, how How, what string, budget int) (*History, How) {
	if how.Fault != nil {
		// With another history the fault would come at another moment.
		return h, how
	}
	s := &shrinker{t: t, h: h, how: how, budget: budget, what: sort(what), until: time.Now().Add(shrinkTime)}
	for {
		size := len(s.h.Actions)
		s.actions()
		s.statements()
		s.options()
		if len(s.h.Actions) == size || s.budget <= 0 {
			return s.h, s.how
		}
	}
}

// try takes a candidate if it fails.
func (s *shrinker) try(candidate *History) bool {
	if !candidate.repair() {
		return false
	}
	for i := range uint64(seedsTried) {
		if s.budget--; s.budget < 0 || time.Now().After(s.until) {
			s.budget = 0
			return false
		}
		how := How{Seed: s.how.Seed + i}
		if failure := Run(s.t, candidate, how).Failure; failure != "" && sort(failure) == s.what && (s.what != "stuck" || candidate.runs()) {
			s.h, s.how = candidate, how
			return true
		}
	}
	return false
}

// actions leaves out actions, in halves, quarters and so on.
func (s *shrinker) actions() {
	for size := len(s.h.Actions) / 2; size > 0 && s.budget > 0; {
		shrunk := false
		for from := 0; from+size <= len(s.h.Actions) && s.budget > 0; {
			candidate := *s.h
			candidate.Actions = slices.Delete(slices.Clone(s.h.Actions), from, from+size)
			if s.try(&candidate) {
				shrunk = true
			} else {
				from += size
			}
		}
		if !shrunk || size > len(s.h.Actions) {
			size /= 2
		}
	}
}

// statements leaves out single statements.
func (s *shrinker) statements() {
	for i := len(s.h.Actions) - 1; i >= 0 && s.budget > 0; i-- {
		for k := len(s.h.Actions[i].SQL) - 1; k >= 0 && len(s.h.Actions[i].SQL) > 1; k-- {
			candidate := *s.h
			candidate.Actions = slices.Clone(s.h.Actions)
			candidate.Actions[i].SQL = slices.Delete(slices.Clone(s.h.Actions[i].SQL), k, k+1)
			s.try(&candidate)
		}
	}
}

// options leaves out what need not be.
func (s *shrinker) options() {
	for _, plain := range []func(*History){
		func(h *History) { h.Images.NoBlob = false },
		func(h *History) { h.Images.PartialJSON = false },
		func(h *History) { h.Batches = false },
		func(h *History) { h.Blind = false },
		func(h *History) { h.Opaque = false },
		func(h *History) { h.Throttled = false },
		func(h *History) { h.LockErrors = false },
		func(h *History) { h.Stranger = false },
		func(h *History) { h.Unasked = false },
		func(h *History) { h.Retained = 0 },
		func(h *History) { h.OnDDL = 0 },
		(*History).dropUnusedTables,
		(*History).dropUnusedStreams,
	} {
		candidate := *s.h
		plain(&candidate)
		if candidate.Options != s.h.Options || len(candidate.Tables) != len(s.h.Tables) || candidate.Streams != s.h.Streams {
			s.try(&candidate)
		}
	}
}

func (h *History) dropUnusedTables() {
	used := make(map[string]bool)
	for _, action := range h.Actions {
		for _, part := range action.parts() {
			for _, sql := range part.SQL {
				used["t"+sourceName.ReplaceAllString(sql.Table, "")] = true
			}
		}
	}
	h.Tables = maps.Clone(h.Tables)
	maps.DeleteFunc(h.Tables, func(name, _ string) bool { return !used[name] })
}

// dropUnusedStreams leaves out the last streams, if their sources never have
// anything.
func (h *History) dropUnusedStreams() {
	last := 1
	for _, action := range h.Actions {
		for _, part := range action.parts() {
			if part.changesSource() {
				last = max(last, part.Stream)
			}
		}
	}
	h.Streams = last + 1
	h.Actions = slices.DeleteFunc(slices.Clone(h.Actions), func(a Action) bool { return a.Stream > last })
}
