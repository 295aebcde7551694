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
	"strings"
	"time"
)

// keepAliveInterval is how often a stream that waits shows that it lives.
const keepAliveInterval = time.Second

// resolution is one climb of the ladder: it does what the ladder decides.
type resolution struct {
	*Backoff
	ladder *ladder
	// ticket was taken before the last attempt.
	ticket uint64
	// window is what the stream has in hand, as far as it was looked at.
	window *window
	// seat is where the stream stands still while it is blocked; nil before.
	seat *seat
	// unfoldable is why the front transaction cannot be folded; empty if it can,
	// or has not arrived whole.
	unfoldable string
	// collision is what the last joint attempt met.
	collision *collision
	suspicion suspicion
	// noted is set once the conflict of the front transaction was counted, and
	// unresolved as long as a conflict was counted whose resolution was not.
	noted, unresolved bool
	// reach is how many units an attempt begins with, while conflicts are
	// frequent and none is known.
	reach int
	// attempted is when the last joint attempt ended.
	attempted time.Time
	// how is the highest rung that was needed.
	how Resolution
	// block is the block of the front transaction; nil while it is not blocked.
	block *Block
	// message is what the stream's row says now, if the resolution wrote it.
	message string
	// alive ticks as long as the resolution lasts: one that is made of many
	// short waits has to show that it lives as well.
	alive *time.Ticker
}

// resolve gets the stream over a conflict: when it returns nil, every event
// that was handed to vplayer is applied again, and those of whole source
// transactions are committed.
func (b *Backoff) resolve(ctx context.Context, cause conflict) error {
	b.hub.counters.conflict(b.config.ID)
	b.meter.conflict.Store(time.Now().UnixNano())
	if err := b.player.Rollback(); err != nil {
		return err
	}
	if b.queue.truncated {
		return b.tooLarge(ctx, cause)
	}
	r := &resolution{
		Backoff: b,
		ticket:  b.hub.ticket(),
		how:     ResolvedByIsolation,
		alive:   time.NewTicker(keepAliveInterval),

		unresolved: true,
	}
	defer r.alive.Stop()
	defer r.standUp()
	defer r.unblock("")
	defer r.meter.moves()
	s, err := r.situation()
	if err != nil {
		return err
	}
	r.ladder = newLadder(s, cause, b.oftenInConflict(), b.config.Limit, b.config.Jitter)
	return r.run(ctx)
}

// tooLarge is for a conflict in a transaction whose events could not be kept. It
// is read again, after the controller's delay, until its peers have released the
// value, or could have.
func (b *Backoff) tooLarge(ctx context.Context, cause conflict) error {
	// Its own later transactions could not be folded with it anyway.
	readings := b.hub.readMeters(reading{id: b.config.ID, ns: math.MaxInt64}, b.peers, false)
	s := b.hub.suspicion(b.config.ID)
	s.suspect(cause.key+" "+cause.entry, time.Now(), readings, b.hub.Sources, true)
	s.ask(ctx, b.hub.Sources, b.peers)
	if cause.kind == duplicateKey {
		b.meter.block(s.level, true)
	}
	if cause.kind == duplicateKey && s.verdict != "" {
		b.hub.counters.resolution(b.config.ID, GivenUp)
		return giveUp(cause, givingUp+cause.what()+" in a transaction that is too large to be reordered: "+strings.TrimPrefix(s.verdict, genuine))
	}
	return reread("it met a conflict (" + cause.what() + ") in a transaction that is too large to be kept in memory")
}

func (r *resolution) run(ctx context.Context) error {
	for {
		s, err := r.situation()
		if err != nil {
			return err
		}
		next := r.ladder.next(s)
		if next.do == deedDone && r.goesOn() {
			continue
		}
		if next.do == deedReplay || next.do == deedDone || next.do == deedGiveUp {
			// A leader must not commit what the stream is about to apply itself,
			// and may just have resolved what it gives up on.
			tookOver, err := r.getUp(ctx)
			if err != nil {
				return err
			}
			if tookOver {
				continue
			}
		}
		switch next.do {
		case deedReplay:
			err = r.attempt(ctx, next.units, s)
		case deedCombine:
			err = r.combine(ctx, s)
		case deedWait:
			r.suspicion.ask(ctx, r.hub.Sources, r.hub.withPeers(r.config.ID, r.peers))
			err = r.wait(ctx, next.delay)
			r.ladder.waited()
			if r.unfoldable == notWhole {
				r.unfoldable = ""
			}
		case deedDone:
			r.countResolution()
			return nil
		case deedGiveUp:
			r.hub.counters.resolution(r.config.ID, GivenUp)
			if s.genuine != "" && r.limit() == "" {
				r.hub.counters.genuine(r.config.ID)
			}
			err := giveUp(r.ladder.last, r.verdict(next.why))
			if r.block != nil {
				r.block.Message = err.Error()
			}
			r.unblock(GivenUp)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// goesOn reports whether the resolution takes on what has arrived since: where
// conflicts are frequent the next one is near, and a stream that stands up keeps
// those from a sweep that still stand still.
func (r *resolution) goesOn() bool {
	return r.oftenInConflict() && !r.player.InTransaction() && r.queue.adopt()
}

// situation is the state of affairs as the ladder needs it.
func (r *resolution) situation() (situation, error) {
	if err := r.lookUpPeers(); err != nil {
		return situation{}, err
	}
	units, open := r.queue.units()
	if r.player.InTransaction() {
		// What has arrived of the last transaction was replayed just now. It
		// stays open, and there is nothing else left.
		units = 0
	}
	return situation{
		now:       time.Now(),
		units:     units,
		open:      open,
		havePeers: len(r.peers) > 0,
		foldable:  r.unfoldable == "",
		genuine:   r.suspicion.verdict,
	}, nil
}

// climb notes that a rung was needed.
func (r *resolution) climb(rung Resolution) {
	if rung.height() > r.how.height() {
		r.how = rung
	}
}

// progressed notes that units of the stream were committed.
func (r *resolution) progressed(units int) error {
	r.ladder.progressed(units, r.oftenInConflict(), time.Now())
	how := r.how
	if r.noted {
		r.countResolution()
	}
	r.noted = false
	r.collision = nil
	r.suspicion = suspicion{}
	r.unfoldable = ""
	r.meter.moves()
	r.unblock(how)
	if r.message == "" || r.player.InTransaction() {
		return nil
	}
	r.message = ""
	return r.player.SetMessage("")
}

// askThrottler returns once the throttler lets the stream go on.
func (r *resolution) askThrottler(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return io.EOF
		}
		if !r.player.Throttled(ctx) {
			return nil
		}
	}
}

// attempt replays units and tells the ladder what came of it.
func (r *resolution) attempt(ctx context.Context, units int, s situation) error {
	if err := r.askThrottler(ctx); err != nil {
		return err
	}
	r.ticket = r.hub.ticket()
	// What it has yet to read could not be folded with this, or be kept.
	before := r.readMeters(reading{id: r.config.ID, ns: math.MaxInt64}, false)
	err := r.replay(ctx, units)
	if err == nil {
		r.frequency.committed(units)
		return r.progressed(units)
	}
	c := classify(err)
	if c.kind == noConflict {
		return err
	}
	if err := r.player.Rollback(); err != nil {
		return err
	}
	if r.ladder.blocked() && c.kind == duplicateKey {
		if r.barred() {
			r.suspect(c.key+" "+c.entry, before, true, true)
		}
		if err := r.readOn(); err != nil {
			return err
		}
	}
	r.conflicted(c, s)
	return nil
}

// barred reports whether the front transaction can never be folded.
func (r *resolution) barred() bool {
	return r.unfoldable != "" && (r.unfoldable != notWhole || !r.roomLeft())
}

// conflicted tells the ladder of a conflict, and counts it if it is another one.
func (r *resolution) conflicted(c conflict, s situation) {
	r.ladder.conflicted(c, s)
	if r.ladder.blocked() {
		r.noteConflict()
	}
}

// noteConflict counts the conflict of the front transaction, once.
func (r *resolution) noteConflict() {
	if !r.noted {
		r.noted = true
		if !r.unresolved {
			r.unresolved = true
			r.hub.counters.conflict(r.config.ID)
		}
		r.frequency.conflict()
		r.noteFrequency()
	}
}

// countResolution counts the conflict that was counted last as resolved.
func (r *resolution) countResolution() {
	if r.unresolved {
		r.hub.counters.resolution(r.config.ID, r.how)
	}
	r.unresolved, r.how = false, ResolvedByIsolation
}

// wait sleeps until a peer has committed since the last attempt, own events have
// arrived, or the delay is over. No transaction is open.
func (r *resolution) wait(ctx context.Context, delay time.Duration) error {
	r.climb(ResolvedByWaiting)
	r.hub.counters.setBlocked(r.config.ID, r.ladder.blocked())
	announced, release := r.hub.wait(r.ticket)
	defer release()
	var arrived <-chan struct{}
	if r.ladder.blocked() && r.roomLeft() {
		var unwatch func()
		arrived, unwatch = r.player.Arrived()
		defer unwatch()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		if err := r.say(); err != nil {
			return err
		}
		select {
		case <-r.alive.C:
			if err := r.player.KeepAlive(); err != nil {
				return err
			}
		default:
		}
		select {
		case <-ctx.Done():
			return io.EOF
		case <-announced:
			return nil
		case <-arrived:
			return nil
		case <-timer.C:
			return nil
		case <-r.alive.C:
			if err := r.player.KeepAlive(); err != nil {
				return err
			}
		}
	}
}
