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
	mu          sync.Mutex
	conflicts   map[int32]int64
	resolutions map[int32]map[Resolution]int64
	blocked     map[int32]bool
	duplicates  map[int32]int64
}

func (c *counters) conflict(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conflicts == nil {
		c.conflicts = make(map[int32]int64)
	}
	c.conflicts[id]++
}

func (c *counters) resolution(id int32, r Resolution) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resolutions == nil {
		c.resolutions = make(map[int32]map[Resolution]int64)
	}
	if c.resolutions[id] == nil {
		c.resolutions[id] = make(map[Resolution]int64)
	}
	c.resolutions[id][r]++
}

// genuine counts a conflict that was proven to be a genuine duplicate.
func (c *counters) genuine(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.duplicates == nil {
		c.duplicates = make(map[int32]int64)
	}
	c.duplicates[id]++
}

func (c *counters) setBlocked(id int32, blocked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked == nil {
		c.blocked = make(map[int32]bool)
	}
	c.blocked[id] = blocked
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
	return Counts{
		Conflicts:   c.conflicts[id],
		Resolutions: maps.Clone(c.resolutions[id]),
		Genuine:     c.duplicates[id],
		Blocked:     c.blocked[id],
	}
}
