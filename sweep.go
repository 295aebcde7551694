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
	"math"
	"time"
)

const (
	// minSwept is how many units a sweep must take to be worth it.
	minSwept = 16
	// maxSwept bounds the row changes of a sweep, and so the size of one target
	// transaction: it ends with the second in which it comes to half as many. Where
	// a sweep has failed, or a single second holds that much, it may be four times
	// as many.
	maxSwept = 20000
	// carefulAttempts bounds the target transactions of a sweep that is tried
	// once more.
	carefulAttempts = 24
)

// sweep commits, in one target transaction, all that the sources committed up to
// the end of one second. It is for streams that conflict so often that resolving
// one conflict after the other would leave them little else to do: the net effect
// of a second is less work than its transactions. All peers must stand still,
// having read past that second, or have applied all of it, so that the target is
// then in a state which the sources were in together.
//
// A sweep that meets a conflict after all, because the sources' clocks differ or a
// peer has gone on, is rolled back, and done is false.
func (r *resolution) sweep(ctx context.Context) (done bool, err error) {
	seats := &r.hub.seats
	others := seats.others(r.seat)
	if len(others) == 0 {
		return false, nil
	}
	j := newJoint(seats, r.seat)
	j.sweeping = true
	cut, ok := j.cut()
	if !ok || cut <= seats.swept || !r.peersReady(others, cut) {
		return false, nil
	}
	if err := r.batching.restore(); err != nil {
		return false, err
	}
	c, err := j.try(ctx)
	if err != nil && r.seat.committed == 0 {
		return false, err
	}
	if c == nil {
		return true, err
	}
	if err := r.batching.isolate(); err != nil {
		return false, err
	}
	return r.sweepCarefully(ctx, cut)
}

// sweepCarefully tries a sweep that met a conflict once more, and lets the
// attempt be extended by what it turns out to need: transactions that overlapped
// the end of the second on their sources.
func (r *resolution) sweepCarefully(ctx context.Context, cut int64) (done bool, err error) {
	j := newJoint(&r.hub.seats, r.seat)
	if _, ok := j.cut(); !ok {
		return false, nil
	}
	j.attempts = maxJointAttempts - carefulAttempts
	c, err := j.run(ctx)
	if err != nil && r.seat.committed == 0 {
		return false, err
	}
	if c == nil {
		return true, err
	}
	r.hub.seats.swept = cut
	return false, nil
}

// peersReady reports whether each peer that can move stands still, or has applied
// what its source committed up to the end of a second.
func (r *resolution) peersReady(others []*seat, second int64) bool {
	seated := make(map[int32]bool, len(others))
	for _, seat := range others {
		if seat.committed == 0 && seat.unknown == nil {
			seated[seat.id] = true
		}
	}
	end := (second + 1) * int64(time.Second)
	if r.clockOffset != math.MaxInt64 {
		end += r.clockOffset
	}
	for _, peer := range r.peers {
		if peer.canMove() && !seated[peer.ID] && r.hub.meter(peer.ID).ns.Load() < end {
			return false
		}
	}
	return true
}

// cut chooses the second up to which the streams are swept, and makes them all
// members up to there. It is the last that all have read past, or an earlier one
// if that would be too much at once. No stream should have gone past it already,
// nor should a sweep have failed there: if it can it goes further.
func (j *joint) cut() (second int64, ok bool) {
	members := j.candidates()
	last, ahead := members[0].window.readUntil, int64(0)
	for _, m := range members {
		last = min(last, m.window.readUntil)
		ahead = max(ahead, m.applied)
	}
	last--
	shares := make([]int, len(members))
	units, changes, led := 0, 0, false
	for next := j.leader.window.units[0].timestamp; next <= last; {
		second, next = next, math.MaxInt64
		for i, m := range members {
			for j.takes(m, shares[i]) && m.window.units[shares[i]].timestamp <= second {
				changes += m.window.units[shares[i]].changes
				shares[i]++
				units++
				led = led || m == j.leader
			}
			if j.takes(m, shares[i]) {
				next = min(next, m.window.units[shares[i]].timestamp)
			}
		}
		if changes > maxSwept/2 && second >= ahead && second > j.seats.swept {
			break
		}
	}
	if units < minSwept || changes > 4*maxSwept || !led {
		return 0, false
	}
	for i, m := range members {
		if shares[i] == 0 {
			continue
		}
		if err := j.include(m, shares[i]); err != nil {
			return 0, false
		}
	}
	return second, true
}
