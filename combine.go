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
	if err := r.hub.seats.takeTurn(ctx); err != nil {
		return io.EOF
	}
	defer r.hub.seats.endTurn()
	if done, err := r.takeOver(); done || err != nil {
		return err
	}
	if err := r.sit(); err != nil {
		return err
	}
	r.ticket = r.hub.Ticket()
	window := r.seat.window
	if len(window.units) == 0 || window.units[0].refuse != "" {
		return r.cannotFold(s)
	}
	readings := r.hub.readMeters(r.lookedUntil(), r.peers)
	swept, err := r.sweep(ctx)
	if swept {
		return r.committed(err)
	}
	if err != nil {
		return err
	}
	j := newJoint(&r.hub.seats, r.seat)
	if err := j.extend(j.leader, 1); err != nil {
		r.unfoldable = err.Error()
		return nil
	}
	c, err := j.run(ctx)
	if err != nil && r.seat.committed == 0 {
		return err
	}
	if c != nil {
		r.collision = c
		if c.kind == duplicateKey && c.member == j.leader && !c.open {
			r.suspicion.suspect(c.what()+string(c.row.row)+string(c.holder.row), time.Now(), readings)
		}
		r.ladder.conflicted(c.conflict, s)
		return nil
	}
	return r.committed(err)
}

// committed goes on from what the stream has committed itself, as a leader. end
// is io.EOF if it ends there.
func (r *resolution) committed(end error) error {
	r.hub.Announce()
	if _, err := r.takeOver(); err != nil {
		return err
	}
	r.standUp()
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
		r.seat = &seat{id: r.config.ID, player: r.player, window: r.window}
		r.hub.seats.sit(r.seat)
	}
	read := r.window.read
	if err := r.window.extend(r.queue.events); err != nil {
		return err
	}
	if r.window.closed == "" {
		r.meter.ns.Store(r.readUntil)
	}
	if r.window.read > read {
		// Others that stand still may have waited for just this.
		r.hub.nudge(r.seat)
	}
	return nil
}

// lookedUntil is how far the stream has looked for a release of its own. Behind
// what closes its window none could help it.
func (r *resolution) lookedUntil() int64 {
	if r.window.closed != "" {
		return math.MaxInt64
	}
	return r.readUntil
}

// getUp leaves the seat before the stream goes on by itself. It first takes over
// what a leader has committed, which must not be applied again.
func (r *resolution) getUp(ctx context.Context) (tookOver bool, err error) {
	if r.seat == nil {
		return false, nil
	}
	if err := r.hub.seats.takeTurn(ctx); err != nil {
		return false, io.EOF
	}
	defer r.hub.seats.endTurn()
	tookOver, err = r.takeOver()
	r.standUp()
	return tookOver, err
}

// standUp leaves the seat. It needs the turn, unless the run ends and the
// position is read again.
func (r *resolution) standUp() {
	r.hub.counters.setBlocked(r.config.ID, false)
	if r.seat != nil {
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
	r.frequent = r.seat.swept
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
	return r.queue.size < maxRetained
}
