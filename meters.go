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
	"sync/atomic"
	"time"
)

type (
	// meter is how far a stream has got in its source: everything up to there is
	// applied or, while the stream stands still, was in hand when its last attempt
	// failed. A stream that goes on by itself may have less in hand than it had, so
	// the meter may go back.
	meter struct {
		// ns is the source's time, in nanoseconds of this host's clock. Zero is not
		// known.
		ns atomic.Int64
		// position is the position that belongs to it; nil is not known.
		position atomic.Pointer[string]
		// conflict is when the stream last met a conflict, in nanoseconds of this
		// host's clock.
		conflict atomic.Int64
		// often is set while the stream meets conflicts frequently.
		often atomic.Bool
		// stuck is whether the stream is blocked in a transaction that nobody can
		// reorder.
		stuck atomic.Int32
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
		stuck  int32
	}

	// readings are how far a stream, which comes first, and its peers had got at
	// one moment.
	readings []reading
)

const (
	// blockedInOrder is a stream whose front transaction is blocked, and can
	// neither be folded by the stream nor be taken in by another.
	blockedInOrder int32 = iota + 1
	// stuckInOrder is one that only such streams could release: every other has
	// read past the conflict.
	stuckInOrder
)

// set sets the meter to the source's time and position.
func (m *meter) set(ns int64, position *string) {
	m.position.Store(position)
	m.ns.Store(ns)
}

// read returns what the meter says. A peer that cannot move without an operator
// has not read anything.
func (h *Hub) read(peer Stream) reading {
	r := reading{id: peer.ID, silent: peer.Silent}
	switch {
	case !peer.CanMove():
	case peer.Silent:
		// It is taken to be near its source.
		r.ns = time.Now().Add(-silentLag).UnixNano()
	default:
		m := h.meter(peer.ID)
		r.ns, r.stuck = m.ns.Load(), m.stuck.Load()
		if position := m.position.Load(); position != nil {
			r.position = *position
		}
	}
	return r
}

// readMeters reads the meters of a stream's peers.
func (h *Hub) readMeters(own reading, peers []Stream) readings {
	all := make(readings, 1, 1+len(peers))
	all[0] = own
	for _, peer := range peers {
		all = append(all, h.read(peer))
	}
	return all
}

// past reports whether every stream has read past a moment, or is stuck in order
// at least that much.
func (all readings) past(t time.Time, stuck int32) bool {
	for _, r := range all {
		if r.ns <= t.UnixNano() && r.stuck < stuck {
			return false
		}
	}
	return len(all) > 1
}

// reached reports whether every stream has read up to its target, a position, or
// is stuck in order at least that much. A target that is empty is none.
func (all readings) reached(targets map[int32]string, sources Sources, stuck int32) (bool, error) {
	for _, r := range all {
		if r.ns == math.MaxInt64 || r.silent || r.stuck >= stuck {
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
