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
	"time"
)

// deed is what a ladder wants done next.
type deed int

const (
	// deedReplay is to apply the next units in one target transaction.
	deedReplay deed = iota
	// deedCombine is to commit the blocked unit together with what it needs: of
	// its own stream, and of others that stand still.
	deedCombine
	// deedWait is to sleep until a peer commits, own events arrive, or the delay
	// is over.
	deedWait
	// deedDone is to go back to vplayer's own way: everything is applied again.
	deedDone
	// deedGiveUp is to end the stream with the conflict's error.
	deedGiveUp
)

type (
	// step is one decision of the ladder.
	step struct {
		do deed
		// units is how many units a replay takes; the ladder expects to be told
		// with progressed or conflicted.
		units int
		// delay is the longest time to wait. It is a fallback: a peer's commit
		// ends the wait at once.
		delay time.Duration
		// why says in words why the stream gives up.
		why string
	}

	// situation is what the ladder has to know to decide.
	situation struct {
		now time.Time
		// units is the number of units that were handed to vplayer and are not
		// committed. A unit is a source transaction, or what has arrived of the
		// last one; open says that it is the latter.
		units int
		open  bool
		// havePeers tells whether any other stream could release what this one
		// waits for.
		havePeers bool
		// foldable tells whether the front unit has arrived whole and can be
		// folded.
		foldable bool
		// genuine is the proof that no stream holds a release; empty while there
		// is none.
		genuine string
	}
)

const (
	// The wait for a peer starts at minDelay and doubles up to maxDelay. The
	// announcements make the timer a fallback for what nobody announces, such
	// as an operator who deletes the row that is in the way.
	minDelay = 20 * time.Millisecond
	maxDelay = time.Second
	// A deadlock or a lock wait timeout is over as soon as the other transaction
	// is.
	maxLockDelay = 250 * time.Millisecond
	// firstReplay is how many units a replay begins with. The conflict may be
	// anywhere in a group of thousands; growing from here finds it for about twice
	// what the units in front of it cost.
	firstReplay = 16
)

// ladder decides how a stream gets over a conflict. It does nothing itself, and
// reads no clock: the driver does each step, tells what came of it, and passes
// the time.
//
// The replay starts with few units, since all of them together have just failed;
// every success doubles the next attempt and every failure halves it. A
// unit that fails alone is blocked: it is tried again together with what it
// needs, and the stream waits between two attempts.
type ladder struct {
	// size is the number of units that the next replay takes.
	size int
	// last is the conflict that the last attempt met, if it met one.
	last conflict
	// wait is set when the next step is to wait before another attempt.
	wait bool
	// tries counts the failed attempts since the last success.
	tries int
	// blockedSince is when the unit in front was first found to be blocked;
	// zero while none is.
	blockedSince time.Time
	// assumed is set while the unit in front is only taken to be blocked.
	assumed bool
	// limit is how long a unit may be blocked; zero is for ever.
	limit time.Duration
	// jitter returns a number in [0, 1). Streams that block each other would
	// else try again at the same instants.
	jitter func() float64
}

// newLadder starts a ladder over units that failed together with a conflict. Where
// conflicts are frequent the unit in front is taken to be blocked.
func newLadder(s situation, cause conflict, frequent bool, limit time.Duration, jitter func() float64) *ladder {
	l := &ladder{size: min(s.units, 2*firstReplay), limit: limit, jitter: jitter}
	l.conflicted(cause, s)
	if frequent {
		l.assumed, l.blockedSince, l.wait = true, s.now, false
	}
	return l
}

// blocked reports whether the unit in front conflicts by itself.
func (l *ladder) blocked() bool {
	return !l.blockedSince.IsZero()
}

// next returns the next step.
func (l *ladder) next(s situation) step {
	if s.units == 0 {
		return step{do: deedDone}
	}
	if l.blocked() && !l.assumed && l.last.kind == duplicateKey {
		switch {
		case !s.havePeers:
			return step{do: deedGiveUp, why: "no other stream that could release it writes this table"}
		case s.genuine != "":
			return step{do: deedGiveUp, why: s.genuine}
		case l.limit > 0 && s.now.Sub(l.blockedSince) >= l.limit:
			return step{do: deedGiveUp, why: "it was not released within " + l.limit.String() + " (vreplication-max-time-to-retry-on-error)"}
		}
	}
	switch {
	case l.wait:
		return step{do: deedWait, delay: l.delay()}
	case l.blocked() && s.foldable:
		return step{do: deedCombine}
	}
	return step{do: deedReplay, units: l.attempt(s)}
}

// attempt is the number of units that the next replay takes. One that has not
// arrived whole is replayed by itself, and stays open.
func (l *ladder) attempt(s situation) int {
	switch {
	case l.blocked():
		return 1
	case s.open && l.size >= s.units && s.units > 1:
		return s.units - 1
	}
	return max(1, min(l.size, s.units))
}

// delay grows with every failed try, and is spread over its upper half.
func (l *ladder) delay() time.Duration {
	longest := maxDelay
	if l.last.kind == lockConflict {
		longest = maxLockDelay
	}
	d := minDelay << min(max(l.tries-1, 0), 16)
	d = min(d, longest)
	return d/2 + time.Duration(l.jitter()*float64(d/2))
}

// progressed tells that the units of the last attempt are applied. Where
// conflicts are frequent the next unit is taken to be blocked.
func (l *ladder) progressed(units int, frequent bool, now time.Time) {
	l.size = 2 * units
	l.tries = 0
	l.wait = false
	l.blockedSince = time.Time{}
	l.assumed = frequent
	if l.assumed {
		l.blockedSince = now
	}
}

// conflicted tells that the last attempt met a conflict and was rolled back. s
// is the situation in which the attempt was decided.
func (l *ladder) conflicted(c conflict, s situation) {
	n := l.attempt(s)
	l.last = c
	l.tries++
	if n > 1 {
		l.size = n / 2
		l.wait = c.kind == lockConflict
		return
	}
	if c.kind == duplicateKey && (!l.blocked() || l.assumed) {
		l.blockedSince = s.now
		// A replay has found the unit to be blocked: it may combine at once.
		l.wait = l.assumed
		l.assumed = false
		return
	}
	l.wait = true
}

// waited tells that the wait is over, for whatever reason.
func (l *ladder) waited() {
	l.wait = false
}
