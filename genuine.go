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
	"context"
	"fmt"
	"time"
)

const (
	// grace is how far past the first sight of a conflict every stream must have
	// read, by the clocks, before the conflict is taken for a genuine duplicate. It
	// covers the whole seconds of event timestamps, and the skew between the
	// sources' clocks.
	grace = 4 * time.Second
	// silentLag is how far a stream may be behind that does not say how far it is.
	silentLag = 30 * time.Second
	// Sources are asked for at most askTimeout, which ends at once when the stream
	// is stopped, and again after askInterval.
	askTimeout  = 3 * time.Second
	askInterval = time.Second
)

type (
	// Sources knows the sources of the streams. Clocks alone prove nothing where a
	// replica is streamed from, which may lag: its heartbeats carry the present
	// time, whatever it has yet to apply.
	Sources interface {
		// Position returns a position that the primary of the stream's source shard
		// has reached by now. It is empty if the source is no shard of Vitess, so
		// that there is nobody to ask.
		Position(ctx context.Context, stream Stream) (string, error)
		// AtLeast reports whether a position has reached another.
		AtLeast(position, other string) (bool, error)
	}

	// suspicion is a conflict that may be a genuine duplicate, since no stream that
	// stands still has a release to offer.
	//
	// The union of the sources is unique at every instant. If two rows want one
	// value then, at the instant at which the conflict was seen, one of the two had
	// already given it up on its source. So once every stream, this one included,
	// has read past that instant, somebody holds the release, or there is none.
	//
	// That they have is first taken from their clocks, which costs nothing. Before
	// it is final the primaries of all sources are asked for their positions, and
	// every stream must have read up to these.
	suspicion struct {
		// what tells one conflict from another.
		what string
		// since is when it was first seen.
		since time.Time
		// due is set once the clocks say that all have read past it.
		due bool
		// targets are, by stream, positions that the sources' primaries had reached
		// at a moment behind since; nil until they were asked.
		targets map[int32]string
		// asked is when they were asked last, and trouble what came of it if that
		// was no answer.
		asked   time.Time
		trouble string
		// level is whether the stream is stuck: blocked, or stuck if all others have
		// read past the conflict but those that are blocked themselves.
		level int32
		// barred are the streams by which the proof goes although they have not read
		// past the conflict.
		barred []int32
		// verdict is the proof, in words; empty while there is none.
		verdict string
	}
)

// genuine begins the proof of a duplicate, unless a limit kept a stream from looking
// everywhere.
const genuine = "it is a genuine duplicate: "

// suspect notes that an attempt has failed with the conflict. The meters must
// have been read before the attempt: what a stream commits, or reads, after that
// is not covered by it. Unless the attempt is conclusive it is no more than blocked.
func (s *suspicion) suspect(what string, now time.Time, readings readings, sources Sources, conclusive bool) {
	if s.what != what {
		*s = suspicion{what: what, since: now, level: blocked}
		return
	}
	s.level = blocked
	if s.proven(readings, sources, blocked) {
		s.level = stuck
	}
	if !conclusive || !s.proven(readings, sources, stuck) {
		return
	}
	s.barred = readings.stuck()
	s.verdict = fmt.Sprintf(genuine+"all these streams have read more than %v past %s, when it was first seen, and none releases it",
		grace, s.since.UTC().Format(time.RFC3339))
}

// proven reports whether every stream has read past the conflict, or is stuck at
// least that much.
func (s *suspicion) proven(readings readings, sources Sources, level int32) bool {
	if !readings.past(s.since.Add(grace), level) {
		return false
	}
	if sources == nil {
		return true
	}
	s.due = true
	reached, err := readings.reached(s.targets, sources, level)
	if err != nil {
		s.trouble = err.Error()
	}
	return reached
}

// ask asks the sources' primaries for their positions, if it is time to.
func (s *suspicion) ask(ctx context.Context, sources Sources, streams []Stream) {
	if sources == nil || !s.due || time.Since(s.asked) < askInterval || s.answered(streams) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	targets := make(map[int32]string, len(streams))
	bySource := make(map[string]string, len(streams))
	s.trouble = ""
	for _, stream := range streams {
		if stream.Silent || !stream.canMove() {
			continue
		}
		source := stream.Source.GetExternalCluster() + ":" + stream.Source.GetExternalMysql() + ":" + stream.source()
		position, known := bySource[source]
		if !known {
			var err error
			if position, err = sources.Position(ctx, stream); err != nil {
				s.trouble = "the primary of " + stream.source() + " could not be asked: " + err.Error()
				break
			}
			bySource[source] = position
		}
		targets[stream.ID] = position
	}
	s.asked = time.Now()
	if s.trouble == "" {
		s.targets = targets
	}
}

// answered reports whether the positions of all these streams are known.
func (s *suspicion) answered(streams []Stream) bool {
	for _, stream := range streams {
		if _, known := s.targets[stream.ID]; !known && stream.canMove() && !stream.Silent {
			return false
		}
	}
	return s.trouble == ""
}

// outlook is how far all streams had got before an attempt, and again how far they
// have by now.
type outlook struct {
	readings readings
	again    func() readings
}

// readMeters reads the meters before an attempt, see [Hub.readMeters].
func (r *resolution) readMeters(own reading, taking bool) outlook {
	read := func() readings { return r.hub.readMeters(own, r.peers, taking) }
	return outlook{readings: read(), again: read}
}

// suspect notes that an attempt has failed with a conflict. What a peer held before
// the attempt proves nothing if the peer has left its seat since. barred says that
// nobody can take in what this stream has yet to apply.
func (r *resolution) suspect(what string, before outlook, conclusive, barred bool) {
	r.suspicion.suspect(what, time.Now(), append(before.readings, before.again()...), r.hub.Sources, conclusive)
	r.meter.block(r.suspicion.level, barred)
}

// suspicion returns what is remembered of a stream's conflict from run to run.
func (h *Hub) suspicion(id int32) *suspicion {
	s, _ := h.suspicions.LoadOrStore(id, &suspicion{})
	return s.(*suspicion)
}
