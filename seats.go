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

package mergebackoff

import (
	"maps"
	"slices"
	"sync"
)

type (
	// seats are the streams that are blocked and stand still, each with its
	// window, so that one of them can commit for all. It belongs to a hub.
	seats struct {
		// A blocked stream makes an attempt, or reads on in its own window, only with
		// the turn: so while one tries, the windows of all others stay as they are.
		turn turn

		mu    sync.Mutex
		taken map[int32]*seat
		// swept is the source's second of the last sweep that failed.
		swept int64
		// committing is open while a leader's COMMIT is under way, and nil
		// otherwise.
		committing chan struct{}
	}

	// seat is the place of one blocked stream. But for withdrawn it is read and
	// written with the turn only.
	seat struct {
		id     int32
		player Player
		window *window
		meter  *meter
		// applied is the source's second up to which the stream has applied its
		// transactions, in front of its window.
		applied int64
		// committed is how many units of the window a leader has committed, which
		// the stream has not taken over yet.
		committed int
		// rung is the one that those units were committed on.
		rung Resolution
		// swept is set if that was a sweep.
		swept bool
		// unknown is set when the outcome of a leader's COMMIT is not known: only
		// the saved position tells.
		unknown error
		// withdrawn is set when the stream has left. It is guarded by seats.mu.
		withdrawn bool
	}
)

// sit adds a seat. It needs the turn.
func (s *seats) sit(one *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = make(map[int32]*seat)
	}
	s.taken[one.id] = one
}

// leave takes a seat away. It does not need the turn, since a stream must be able
// to leave at once: a leader that has the seat in its attempt notices before it
// commits. Only a COMMIT that is under way is waited for, for the position that
// the stream would otherwise be started from again is about to change.
func (s *seats) leave(seat *seat) {
	s.mu.Lock()
	seat.withdrawn = true
	if s.taken[seat.id] == seat {
		delete(s.taken, seat.id)
	}
	committing := s.committing
	s.mu.Unlock()
	if committing != nil {
		<-committing
	}
}

// others returns the seats besides one, by their streams' ids.
func (s *seats) others(own *seat) []*seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.SortedFunc(maps.Values(s.taken), func(a, b *seat) int { return int(a.id) - int(b.id) })
	return slices.DeleteFunc(all, func(s *seat) bool { return s == own })
}

// commit runs a COMMIT for these seats, unless one of them has left.
func (s *seats) commit(members []*seat, run func() error) (all bool, err error) {
	s.mu.Lock()
	for _, member := range members {
		if member.withdrawn {
			s.mu.Unlock()
			return false, nil
		}
	}
	done := make(chan struct{})
	s.committing = done
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.committing = nil
		s.mu.Unlock()
		close(done)
	}()
	return true, run()
}
