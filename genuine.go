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
	"sync/atomic"
	"time"
)

// grace is how far past the first sight of a conflict every stream must have
// read before the conflict is held to be a genuine duplicate. It covers the whole
// seconds of event timestamps, the skew between the sources' clocks, and the lag
// of a replica that is streamed from, for its heartbeats carry its own time.
const grace = 4 * time.Second

// silentLag is how far a stream may be behind that does not say how far it is.
const silentLag = 30 * time.Second

// meter is the source's time, in nanoseconds of this host's clock, up to which a
// stream has applied everything or, while it stands still, up to which its window
// holds everything. Zero is not known.
type meter struct {
	ns atomic.Int64
	// conflict is when the stream last met a conflict, in nanoseconds of this
	// host's clock.
	conflict atomic.Int64
}

// suspicion is a conflict that may be a genuine duplicate, since no stream that
// stands still has a release to offer.
//
// The union of the sources is unique at every instant. If two rows want one value
// then, at the instant at which the conflict was seen, one of the two had already
// given it up on its source. So once every stream, this one included, has read
// past that instant, somebody holds the release, or there is none.
type suspicion struct {
	// what tells one conflict from another.
	what string
	// since is when it was first seen.
	since time.Time
	// verdict is the proof, in words; empty while there is none.
	verdict string
}

// suspect notes that an attempt has failed with the conflict. The meters must
// have been read before the attempt: what a stream commits, or reads, after that
// is not covered by it.
func (s *suspicion) suspect(what string, now time.Time, readings readings) {
	if s.what != what {
		*s = suspicion{what: what, since: now}
		return
	}
	if readings.past(s.since.Add(grace)) {
		s.verdict = fmt.Sprintf("it is a genuine duplicate: all these streams have read more than %v past %s, when it was first seen, and none releases it",
			grace, s.since.UTC().Format(time.RFC3339))
	}
}

// readings are how far this stream and its peers had read at one moment.
type readings []int64

func (r readings) past(t time.Time) bool {
	for _, ns := range r {
		if ns <= t.UnixNano() {
			return false
		}
	}
	return len(r) > 1
}

// readMeters reads the meters of a stream's peers; own is how far it has read
// itself. One that cannot move without an operator has not read anything.
func (h *Hub) readMeters(own int64, peers []Stream) readings {
	r := readings{own}
	for _, peer := range peers {
		if !peer.CanMove() {
			return append(r, 0)
		}
		if peer.Silent {
			// It is taken to be near its source.
			r = append(r, time.Now().Add(-silentLag).UnixNano())
			continue
		}
		r = append(r, h.meter(peer.ID).ns.Load())
	}
	return r
}

// suspicion returns what is remembered of a stream's conflict from run to run.
func (h *Hub) suspicion(id int32) *suspicion {
	s, _ := h.suspicions.LoadOrStore(id, &suspicion{})
	return s.(*suspicion)
}

// meter returns the meter of a stream. It lives as long as the hub.
func (h *Hub) meter(id int32) *meter {
	m, ok := h.meters.Load(id)
	if !ok {
		m, _ = h.meters.LoadOrStore(id, &meter{})
	}
	return m.(*meter)
}
