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
)

const (
	// minSwept is how many units a sweep must take to be worth it.
	minSwept = 16
	// maxSwept bounds the row changes of a sweep, and so the size of one target
	// transaction.
	maxSwept = 20000
)

// sweep commits, in one target transaction, all that the sources committed up to
// the end of one second. It is for streams that conflict so often that resolving
// one conflict after the other would leave them little else to do: the net effect
// of a second is less work than its transactions. All peers must stand still,
// each having read past that second, so that the target is then in a state which
// the sources were in together.
//
// A sweep that meets a conflict after all, because the sources' clocks differ, is
// rolled back, and done is false.
func (r *resolution) sweep(ctx context.Context) (done bool, err error) {
	seats := &r.hub.seats
	others := seats.others(r.seat)
	if !r.allSeated(others) {
		return false, nil
	}
	j := newJoint(seats, r.seat)
	j.sweeping = true
	cut, ok := j.cut(others)
	if !ok || cut <= seats.swept {
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
	seats.swept = cut
	return false, r.batching.isolate()
}

// allSeated reports whether all peers that can move stand still, and nobody else.
func (r *resolution) allSeated(others []*seat) bool {
	seated := make(map[int32]bool, len(others))
	for _, seat := range others {
		if seat.committed == 0 && seat.unknown == nil {
			seated[seat.id] = true
		}
	}
	for _, peer := range r.peers {
		if peer.CanMove() && !seated[peer.ID] {
			return false
		}
	}
	return len(others) > 0
}

// cut chooses the second up to which the streams are swept, and makes them all
// members up to there. It is the last that all have read past, or an earlier one
// if that would be too much at once.
func (j *joint) cut(others []*seat) (second int64, ok bool) {
	members := j.candidates()
	last := members[0].window.readUntil
	for _, m := range members {
		last = min(last, m.window.readUntil)
	}
	last--
	shares := make([]int, len(members))
	units, changes, led := 0, 0, false
	for second = j.leader.window.units[0].timestamp; second <= last; second++ {
		for i, m := range members {
			for j.takes(m, shares[i]) && m.window.units[shares[i]].timestamp <= second {
				changes += m.window.units[shares[i]].changes
				shares[i]++
				units++
				led = led || m == j.leader
			}
		}
		if changes > maxSwept/2 {
			break
		}
	}
	if units < minSwept || changes > maxSwept || !led {
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
	return min(second, last), true
}
