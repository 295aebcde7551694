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
	"slices"
	"testing"
)

// Valid reports whether a history can happen: every statement finds its rows, and
// the sources are unique after each action.
func (h *History) Valid() bool {
	tables, err := h.tables()
	n := len(h.Actions)
	if err != nil || h.Genuine && (n == 0 || h.Actions[n-1].Kind != Transaction) {
		return false
	}
	g := &generator{world: NewWorld(h.Streams, tables...)}
	for i, action := range h.Actions {
		if action.Kind != Transaction {
			continue
		}
		duplicate := h.Genuine && i == n-1
		parts := append([]Action{action}, action.And...)
		if g.attempt(!duplicate, parts...) == nil {
			return false
		}
	}
	return true
}

// Shrink looks for a shorter history that fails, with any of some seeds, and
// returns it with its seed. It tries at most budget runs.
func Shrink(t *testing.T, h *History, seed uint64, budget int) (*History, uint64) {
	fails := func(candidate *History) (uint64, bool) {
		if !candidate.Valid() {
			return 0, false
		}
		for i := range uint64(40) {
			if budget--; budget < 0 {
				return 0, false
			}
			if Run(t, candidate, seed+i, false).Failure != "" {
				return seed + i, true
			}
		}
		return 0, false
	}
	for size := len(h.Actions) / 2; size > 0 && budget > 0; {
		shrunk := false
		for from := 0; from+size <= len(h.Actions) && budget > 0; {
			candidate := *h
			candidate.Actions = slices.Delete(slices.Clone(h.Actions), from, from+size)
			if with, ok := fails(&candidate); ok {
				h, seed, shrunk = &candidate, with, true
			} else {
				from += size
			}
		}
		if !shrunk || size > len(h.Actions) {
			size /= 2
		}
	}
	return h, seed
}
