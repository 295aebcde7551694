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
	// deedWait is to sleep until a peer commits, or the delay is over.
	deedWait
	// deedDone is to go back to vplayer's own way: everything is applied again.
	deedDone
	// deedGiveUp is to end the stream with the conflict's error.
	deedGiveUp
)

// step is one decision of the ladder.
type step struct {
	do deed
	// units is how many units a replay takes; the ladder expects to be told
	// with replayed or conflicted.
	units int
	// delay is the longest time to wait. It is a fallback: a peer's commit ends
	// the wait at once.
	delay time.Duration
	// why says in words why the stream gives up.
	why string
}

const (
	// The wait for a peer starts at minDelay and doubles up to maxDelay. The
	// announcements make the timer a fallback for what nobody announces, such
	// as an operator who deletes the row that is in the way.
	minDelay = 20 * time.Millisecond
	maxDelay = 5 * time.Second
	// A deadlock or a lock wait timeout is over as soon as the other transaction
	// is: half a second is long.
	maxLockDelay = 500 * time.Millisecond
)

// ladder decides how a stream gets over a conflict: it isolates the source
// transaction that is blocked, and waits. It does nothing itself, and reads no
// clock: the driver does each step, tells what came of it, and passes the time.
//
// A unit is a source transaction, or what has arrived of the last one. The
// replay starts with half the units, since all of them together have just
// failed; every success doubles the next attempt and every failure halves it.
// A unit that fails alone is blocked.
type ladder struct {
	// left is the number of units that are not applied yet.
	left int
	// open is set when the last unit has not arrived whole. It is replayed by
	// itself: the units in front of it are committed, and it stays open.
	open bool
	// size is the number of units that the next replay takes.
	size int
	// last is the conflict that the last replay met, if it met one.
	last conflict
	// wait is set when the next step is to wait before another attempt.
	wait bool
	// tries counts the failed attempts since the last success.
	tries int
	// blockedSince is when the unit in front was first found to be blocked;
	// zero while none is.
	blockedSince time.Time
	// limit is how long a unit may be blocked; zero is for ever.
	limit time.Duration
	// jitter returns a number in [0, 1). Streams that block each other would
	// else try again at the same instants.
	jitter func() float64
}

// newLadder starts a ladder over units that failed together with a conflict.
func newLadder(units int, open bool, cause conflict, now time.Time, limit time.Duration, jitter func() float64) *ladder {
	l := &ladder{left: units, open: open, size: units, limit: limit, jitter: jitter}
	if units > 1 {
		l.size = units / 2
		l.last = cause
		l.wait = cause.kind == lockConflict
		return l
	}
	// With one unit in hand it is that one which is blocked.
	l.conflicted(cause, now)
	return l
}

// blocked reports whether the unit in front conflicts by itself.
func (l *ladder) blocked() bool {
	return !l.blockedSince.IsZero()
}

// next returns the next step. havePeers tells whether any other stream could
// still release what this one waits for.
func (l *ladder) next(now time.Time, havePeers bool) step {
	if l.left == 0 {
		return step{do: deedDone}
	}
	if l.blocked() && l.last.kind == duplicateKey {
		if !havePeers {
			return step{do: deedGiveUp, why: "no other stream that could release it writes this table"}
		}
		if l.limit > 0 && now.Sub(l.blockedSince) >= l.limit {
			return step{do: deedGiveUp, why: "it was not released within " + l.limit.String() + " (vreplication-max-time-to-retry-on-error)"}
		}
	}
	if l.wait {
		return step{do: deedWait, delay: l.delay()}
	}
	return step{do: deedReplay, units: l.attempt()}
}

// attempt is the number of units that the next replay takes.
func (l *ladder) attempt() int {
	if l.open && l.size >= l.left && l.left > 1 {
		return l.left - 1
	}
	return min(l.size, l.left)
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

// replayed tells that the units of the last replay are applied.
func (l *ladder) replayed(units int) {
	l.left -= units
	l.size = 2 * units
	l.tries = 0
	l.wait = false
	l.blockedSince = time.Time{}
}

// conflicted tells that the last replay met a conflict and was rolled back.
func (l *ladder) conflicted(c conflict, now time.Time) {
	l.last = c
	l.tries++
	if n := l.attempt(); n > 1 {
		l.size = n / 2
		l.wait = c.kind == lockConflict
		return
	}
	l.wait = true
	if c.kind == duplicateKey && !l.blocked() {
		l.blockedSince = now
	}
}

// waited tells that the wait is over, for whatever reason.
func (l *ladder) waited() {
	l.wait = false
}
