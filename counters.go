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

// Resolution names the rung of the ladder on which a conflict was resolved, or
// the verdict that it cannot be. It is a label of the exported counters.
type Resolution string

const (
	// ResolvedByIsolation is a conflict that was gone once the source
	// transactions were replayed in smaller target transactions.
	ResolvedByIsolation Resolution = "isolate"
	// ResolvedByWaiting is a conflict that was gone after a peer's commit.
	ResolvedByWaiting Resolution = "wait"
	// ResolvedByNetEffect is a conflict that was gone once the stream's own later
	// transactions were committed together with the blocked one.
	ResolvedByNetEffect Resolution = "net_effect"
	// ResolvedByJoint is a conflict that was gone once several streams were
	// committed in one target transaction.
	ResolvedByJoint Resolution = "joint"
	// GivenUp is a conflict that ended the stream.
	GivenUp Resolution = "give_up"
)

// height orders the rungs of the ladder.
func (r Resolution) height() int {
	return slices.Index([]Resolution{ResolvedByIsolation, ResolvedByWaiting, ResolvedByNetEffect, ResolvedByJoint, GivenUp}, r)
}

// counters counts what happened to each stream, by its id. They live as long as
// the hub does: a stream that is restarted goes on counting.
type counters struct {
	mu      sync.Mutex
	streams map[int32]*Counts
}

func (c *counters) change(id int32, f func(counts *Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.streams[id]
	if counts == nil {
		counts = &Counts{Resolutions: make(map[Resolution]int64)}
		if c.streams == nil {
			c.streams = make(map[int32]*Counts)
		}
		c.streams[id] = counts
	}
	f(counts)
}

func (c *counters) conflict(id int32) {
	c.change(id, func(counts *Counts) { counts.Conflicts++ })
}

func (c *counters) resolution(id int32, r Resolution) {
	c.change(id, func(counts *Counts) { counts.Resolutions[r]++ })
}

// genuine counts a conflict that was proven to be a genuine duplicate.
func (c *counters) genuine(id int32) {
	c.change(id, func(counts *Counts) { counts.Genuine++ })
}

func (c *counters) setBlocked(id int32, blocked bool) {
	c.change(id, func(counts *Counts) { counts.Blocked = blocked })
}

// Counts is what the hub counted for one stream since the process started.
type Counts struct {
	// Conflicts is the number of conflicts met: each counts once, however often
	// it was tried again.
	Conflicts int64
	// Resolutions is what became of them.
	Resolutions map[Resolution]int64
	// Genuine is the number of conflicts that were proven to be genuine duplicates.
	// They are among those given up.
	Genuine int64
	// Blocked tells whether the stream is waiting for a peer now.
	Blocked bool
}

// Counts returns what was counted for a stream.
func (h *Hub) Counts(id int32) Counts {
	c := &h.counters
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.streams[id]
	if counts == nil {
		return Counts{}
	}
	copied := *counts
	copied.Resolutions = maps.Clone(counts.Resolutions)
	return copied
}
