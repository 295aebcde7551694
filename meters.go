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
	"math"
	"slices"
	"sync/atomic"
	"time"
)

type (
	// meter is how far a stream has got in its source.
	meter struct {
		// ns is the source's time, in nanoseconds of this host's clock, up to which
		// everything is applied. Zero is not known.
		ns atomic.Int64
		// position is the position that belongs to it; nil is not known.
		position atomic.Pointer[string]
		// hand is how far a stream has got that stands still: everything up to there
		// was in its window when its last attempt failed, where others could take it.
		// It is nil once the stream goes on by itself.
		hand atomic.Pointer[mark]
		// conflict is when the stream last met a conflict, in nanoseconds of this
		// host's clock.
		conflict atomic.Int64
		// often is set while the stream meets conflicts frequently.
		often atomic.Bool
		// stuck is whether the stream is blocked, and does not move before another
		// does; barred whether, besides, nobody can take in what it has yet to apply.
		stuck, barred atomic.Int32
	}

	// mark is a place in a source.
	mark struct {
		ns       int64
		position string
	}

	// reading is what the meter of a stream said at one moment.
	reading struct {
		id int32
		// ns is the meter's; math.MaxInt64 if nothing that the stream has yet to
		// read could help.
		ns       int64
		position string
		// silent is set for a stream that has merge backoff switched off.
		silent bool
		// stuck is whether what the stream has yet to read has to wait until another
		// stream moves.
		stuck int32
	}

	// readings are how far a stream, which comes first, and its peers had got at
	// one moment.
	readings []reading
)

const (
	// blocked is a stream whose last attempt has failed.
	blocked int32 = iota + 1
	// stuck is one that only such streams could release: every other has read past
	// the conflict.
	stuck
)

// set sets the meter to the source's time and position.
func (m *meter) set(ns int64, position *string) {
	m.hand.Store(nil)
	m.position.Store(position)
	m.ns.Store(ns)
}

// hold notes what the stream holds in its window.
func (m *meter) hold(ns int64, position string) {
	m.hand.Store(&mark{ns: ns, position: position})
}

// read is up to when the stream has read, whether it has applied that or not.
func (m *meter) read() int64 {
	if hand := m.hand.Load(); hand != nil {
		return max(hand.ns, m.ns.Load())
	}
	return m.ns.Load()
}

// block notes that the stream is blocked.
func (m *meter) block(level int32, barred bool) {
	m.stuck.Store(level)
	if !barred {
		level = 0
	}
	m.barred.Store(level)
}

// moves notes that the stream is not blocked.
func (m *meter) moves() {
	m.block(0, true)
}

// read returns what the meter says; taking is as for readMeters. A peer that cannot
// move without an operator has not read anything.
func (h *Hub) read(peer Stream, taking bool) reading {
	r := reading{id: peer.ID, silent: peer.Silent}
	switch {
	case !peer.canMove():
	case peer.Silent:
		// It is taken to be near its source.
		r.ns = time.Now().Add(-silentLag).UnixNano()
	default:
		m := h.meter(peer.ID)
		r.ns, r.stuck = m.ns.Load(), m.stuck.Load()
		if position := m.position.Load(); position != nil {
			r.position = *position
		}
		if !taking {
			break
		}
		r.stuck = m.barred.Load()
		if hand := m.hand.Load(); hand != nil {
			r.ns, r.position = hand.ns, hand.position
		}
	}
	return r
}

// readMeters reads the meters of a stream's peers before an attempt. taking says
// whether the attempt can take in what they hold.
func (h *Hub) readMeters(own reading, peers []Stream, taking bool) readings {
	all := make(readings, 1, 1+len(peers))
	all[0] = own
	for _, peer := range peers {
		all = append(all, h.read(peer, taking))
	}
	return all
}

// past reports whether every stream has read past a moment, or is stuck at least
// that much.
func (all readings) past(t time.Time, level int32) bool {
	for _, r := range all {
		if r.ns <= t.UnixNano() && r.stuck < level {
			return false
		}
	}
	return len(all) > 1
}

// stuck returns the streams that are stuck.
func (all readings) stuck() (ids []int32) {
	for _, r := range all {
		if r.stuck >= stuck && !slices.Contains(ids, r.id) {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// reached reports whether every stream has read up to its target, a position, or
// is stuck at least that much. A target that is empty is none.
func (all readings) reached(targets map[int32]string, sources Sources, level int32) (bool, error) {
	for _, r := range all {
		if r.ns == math.MaxInt64 || r.silent || r.stuck >= level {
			continue
		}
		target, known := targets[r.id]
		switch {
		case known && target == "":
			continue
		case !known || r.position == "":
			return false, nil
		}
		reached, err := sources.AtLeast(r.position, target)
		if err != nil || !reached {
			return false, err
		}
	}
	return true, nil
}

// meter returns the meter of a stream. It lives as long as the hub.
func (h *Hub) meter(id int32) *meter {
	m, ok := h.meters.Load(id)
	if !ok {
		m, _ = h.meters.LoadOrStore(id, &meter{})
	}
	return m.(*meter)
}
