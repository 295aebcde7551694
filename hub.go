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
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// Hub is where the streams of one target database meet: it knows which streams
// there are, and passes on word of their commits. One engine has one hub; every
// peer of a stream is in the same process, so nothing is polled.
//
// The hub has a lock of its own, and calls nothing while it holds it. It may
// therefore be used under the engine's mutex, and by a stream that the engine
// waits for.
//
// The zero value is an empty hub, ready for use.
type Hub struct {
	// Sources, if it is set, is asked before a duplicate is held to be genuine. It
	// is to be set before there are streams.
	Sources Sources

	// generation counts the changes of the set of streams.
	generation atomic.Uint64
	// commits counts the target commits of all streams.
	commits atomic.Uint64
	// waiting is the number of streams that wait. While it is zero an
	// announcement costs one addition.
	waiting atomic.Int64

	mu      sync.Mutex
	streams map[int32]Stream
	// wake is closed at the next announcement; nil while nobody waits.
	wake chan struct{}

	counters counters
	seats    seats
	// meters has a *meter for the id of each stream.
	meters sync.Map
	// suspicions has the *suspicion of a stream that has to read a transaction
	// again, by its id.
	suspicions sync.Map
}

// Put adds a stream or replaces what is known of it. Streams that wait look
// again at who their peers are.
func (h *Hub) Put(s Stream) {
	h.change(func() {
		if h.streams == nil {
			h.streams = make(map[int32]Stream)
		}
		h.streams[s.ID] = s
	})
}

// SetState notes the state of a stream, if it is known.
func (h *Hub) SetState(id int32, state binlogdatapb.VReplicationWorkflowState) {
	h.mu.Lock()
	s, ok := h.streams[id]
	h.mu.Unlock()
	if !ok || s.State == state {
		return
	}
	h.change(func() {
		if s, ok := h.streams[id]; ok {
			s.State = state
			h.streams[id] = s
		}
	})
}

// Remove forgets a stream.
func (h *Hub) Remove(id int32) {
	h.change(func() { delete(h.streams, id) })
}

// Reset forgets all streams, as when the engine closes.
func (h *Hub) Reset() {
	h.change(func() { clear(h.streams) })
}

func (h *Hub) change(f func()) {
	h.mu.Lock()
	f()
	h.generation.Add(1)
	h.mu.Unlock()
	h.announce()
}

// Streams returns the known streams by id.
func (h *Hub) Streams() []Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.streams), func(a, b Stream) int { return int(a.ID) - int(b.ID) })
}

// withPeers returns a stream, if it is known, and its peers.
func (h *Hub) withPeers(id int32, peers []Stream) []Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.streams[id]; ok {
		return append([]Stream{s}, peers...)
	}
	return peers
}

// name names a stream for people.
func (h *Hub) name(id int32) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.streams[id]; ok {
		return s.String()
	}
	return fmt.Sprintf("stream %d", id)
}

// peers returns the peers of stream id, see peersAmong. A stream that the hub does
// not know has none.
func (h *Hub) peers(id int32, tables []string) ([]Stream, error) {
	streams := h.Streams()
	i := slices.IndexFunc(streams, func(s Stream) bool { return s.ID == id })
	if i < 0 {
		return nil, nil
	}
	return peersAmong(streams[i], streams, tables)
}

// Merges reports whether a stream has peers now, or may have: it is the other one of
// a row that cannot be read.
func (h *Hub) Merges(id int32, tables []string) bool {
	peers, err := h.peers(id, tables)
	return err != nil || len(peers) > 0
}

// announce tells all that wait that a target transaction was committed.
func (h *Hub) announce() {
	h.commits.Add(1)
	if h.waiting.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wake != nil {
		close(h.wake)
		h.wake = nil
	}
}

// nudge tells all others that stand still that a stream which does so as well has
// read on: it may now have the release that they need.
func (h *Hub) nudge(own *seat) {
	if len(h.seats.others(own)) > 0 {
		h.announce()
	}
}

// ticket is to be taken before an attempt: a commit that comes after it, even
// while the attempt is still running, ends the wait that follows.
func (h *Hub) ticket() uint64 {
	return h.commits.Load()
}

// wait returns a channel that is closed once a commit was announced after the
// ticket was taken. release is to be called when the caller no longer waits.
func (h *Hub) wait(ticket uint64) (announced <-chan struct{}, release func()) {
	// The count goes up before the ticket is compared, and announce counts its
	// commit before it looks for waiters: one of the two sees the other.
	h.waiting.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	release = sync.OnceFunc(func() { h.waiting.Add(-1) })
	if h.commits.Load() != ticket {
		done := make(chan struct{})
		close(done)
		return done, release
	}
	if h.wake == nil {
		h.wake = make(chan struct{})
	}
	return h.wake, release
}
