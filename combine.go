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
	"io"
	"math"
	"time"
)

// combine makes a joint attempt with the blocked transaction, and tells the
// ladder what came of it.
func (r *resolution) combine(ctx context.Context, s situation) error {
	if err := r.askThrottler(ctx); err != nil {
		return err
	}
	if err := r.batching.isolate(); err != nil {
		return err
	}
	if err := r.awaitTurn(ctx); err != nil {
		return err
	}
	defer r.hub.seats.turn.end()
	if done, err := r.takeOver(); done || err != nil {
		return err
	}
	if err := r.sit(); err != nil {
		return err
	}
	r.ticket = r.hub.ticket()
	window := r.seat.window
	if len(window.units) == 0 || window.units[0].refuse != "" {
		return r.cannotFold(s)
	}
	swept, err := r.sweep(ctx)
	if swept {
		return r.committed(err)
	}
	if err != nil {
		return err
	}
	if r.mayBeSweptSoon() {
		r.ladder.wait = true
		return nil
	}
	return r.join(ctx, s)
}

// join makes a joint attempt. It needs the turn, and a window whose front unit
// can be folded.
func (r *resolution) join(ctx context.Context, s situation) error {
	before := r.readMeters(r.looked(), true)
	j := newJoint(&r.hub.seats, r.seat)
	begin := 1
	if r.ladder.assumed {
		begin = max(1, j.foldable(j.leader, r.reach))
	}
	if err := j.extend(j.leader, begin); err != nil {
		r.unfoldable = err.Error()
		return nil
	}
	run := j.run
	if begin >= minBatched {
		// What is likely to go through is sent in batches. Where it fails is then
		// not known, and does not matter.
		if err := r.batching.restore(); err != nil {
			return err
		}
		j.sweeping = true
		run = j.try
	}
	c, err := run(ctx)
	r.attempted = time.Now()
	if err != nil && r.seat.committed == 0 {
		return err
	}
	switch {
	case c == nil && j.attempts == 1:
		r.reach = 2 * j.leader.units
		return r.committed(err)
	case c == nil:
		r.noteConflict()
		r.reach = 1
		return r.committed(err)
	case begin > 1:
		// Less may do.
		r.reach = 1
		return r.batching.isolate()
	}
	r.collision = c
	if c.kind == duplicateKey && !c.unfinished {
		// What is in the way of another's transaction is for that one to judge,
		// unless it needs one of this stream's that cannot be taken in.
		conclusive := (c.member == j.leader || c.behind != "") && !c.open
		r.suspect(c.what()+string(c.row.row)+string(c.holder.row), before, conclusive, r.looked().ns == math.MaxInt64)
	}
	if r.window.closed == "" {
		// What is in hand was of no use, but is there for others to take.
		r.meter.hold(r.readUntil, *r.readPosition)
	}
	r.conflicted(c.conflict, s)
	return nil
}

// minBatched is how many units an attempt takes at least to be sent in batches.
const minBatched = 8

// sweepPatience is how long a stream waits for its peers to read on, so that they
// can be swept, from one joint attempt to the next.
const sweepPatience = 50 * time.Millisecond

// mayBeSweptSoon reports whether conflicts are frequent and the streams only have
// not read far enough to be swept.
func (r *resolution) mayBeSweptSoon() bool {
	others := r.hub.seats.others(r.seat)
	return r.oftenInConflict() && r.roomLeft() && time.Since(r.attempted) < sweepPatience &&
		len(others) > 0 && r.peersReady(others, r.window.units[0].timestamp)
}

// awaitTurn waits for the turn, and reads on meanwhile.
func (r *resolution) awaitTurn(ctx context.Context) error {
	if ctx.Err() != nil {
		return io.EOF
	}
	turn := &r.hub.seats.turn
	place := turn.queue()
	for {
		come, err := r.readUntilTurn(ctx, place)
		if err != nil {
			turn.leave(place)
			return err
		}
		if come {
			return nil
		}
	}
}

// readUntilTurn reads on once something has arrived, unless the turn comes first.
func (r *resolution) readUntilTurn(ctx context.Context, place place) (come bool, err error) {
	select {
	case <-place:
		return true, nil
	default:
	}
	var arrived <-chan struct{}
	if r.roomLeft() {
		var release func()
		arrived, release = r.player.Arrived()
		defer release()
	}
	select {
	case <-ctx.Done():
		return false, io.EOF
	case <-place:
		return true, nil
	case <-arrived:
		return false, r.readOn()
	}
}

// committed goes on from what the stream has committed itself, as a leader. end
// is io.EOF if it ends there.
func (r *resolution) committed(end error) error {
	r.hub.announce()
	if end != nil {
		// The message says by now where the stream stopped.
		r.message = ""
	}
	if _, err := r.takeOver(); err != nil {
		return err
	}
	if !r.oftenInConflict() {
		r.standUp()
	}
	return end
}

// notWhole is why a transaction cannot be folded that may be once more of it has
// arrived. What is there is replayed.
const notWhole = "it has not arrived whole"

// cannotFold has the front transaction replayed as it is, from now on.
func (r *resolution) cannotFold(s situation) error {
	window := r.seat.window
	switch {
	case len(window.units) > 0:
		r.unfoldable = window.units[0].refuse
	case window.closed != "":
		r.unfoldable = "it ends at " + window.closed
	default:
		// It has not arrived whole, so there is nothing to try but what has.
		r.unfoldable = notWhole
	}
	return nil
}

// sit takes a seat, with all that has arrived in its window. It needs the turn.
func (r *resolution) sit() error {
	if err := r.readOn(); err != nil {
		return err
	}
	if r.seat == nil {
		if r.window == nil {
			r.window = newWindow(r.player)
		}
		r.seat = &seat{id: r.config.ID, player: r.player, window: r.window, meter: r.meter}
		r.hub.seats.sit(r.seat)
	}
	r.seat.applied = r.applied
	read := r.window.read
	if err := r.window.extend(r.queue.events); err != nil {
		return err
	}
	if r.window.read > read {
		// Others that stand still may have waited for just this.
		r.hub.nudge(r.seat)
	}
	return nil
}

// looked is how far the stream has looked for a release of its own. Behind what
// closes its window none could help it, and behind what it may keep none can be
// found.
func (r *resolution) looked() reading {
	if r.window.closed != "" || !r.roomLeft() {
		return reading{id: r.config.ID, ns: math.MaxInt64}
	}
	return reading{id: r.config.ID, ns: r.readUntil, position: *r.readPosition}
}

// getUp leaves the seat before the stream goes on by itself. It first takes over
// what a leader has committed, which must not be applied again.
func (r *resolution) getUp(ctx context.Context) (tookOver bool, err error) {
	if r.seat == nil {
		return false, nil
	}
	if err := r.hub.seats.turn.take(ctx); err != nil {
		return false, io.EOF
	}
	defer r.hub.seats.turn.end()
	tookOver, err = r.takeOver()
	r.standUp()
	return tookOver, err
}

// standUp leaves the seat. It needs the turn, unless the run ends and the
// position is read again.
func (r *resolution) standUp() {
	if r.seat != nil {
		r.meter.hand.Store(nil)
		r.hub.seats.leave(r.seat)
		r.seat = nil
	}
}

// takeOver takes over what was committed of the stream's window, by itself or by
// another leader. It needs the turn.
func (r *resolution) takeOver() (done bool, err error) {
	if r.seat == nil {
		return false, nil
	}
	if r.seat.unknown != nil {
		return true, reread("it is not known whether a joint commit went through: " + r.seat.unknown.Error())
	}
	units := r.seat.committed
	if units == 0 {
		return false, nil
	}
	r.climb(r.seat.rung)
	r.seat.committed = 0
	events := r.window.events(units)
	if err := r.player.Advance(r.queue.events[:events]); err != nil {
		return true, err
	}
	r.commit(events)
	if !r.seat.swept {
		r.frequency.committed(units)
	}
	return true, r.progressed(units)
}

// readOn drains the relay log into the queue, as far as there is room. The
// events are vplayer's to apply afterwards, unless a window takes them.
func (r *resolution) readOn() error {
	if !r.roomLeft() {
		return nil
	}
	items, err := r.player.Drain()
	if err != nil {
		return err
	}
	r.queue.add(items)
	r.leftover = append(r.leftover, items...)
	r.noteRead(items)
	return nil
}

func (r *resolution) roomLeft() bool {
	return r.queue.size < r.queue.most()
}
