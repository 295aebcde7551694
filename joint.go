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
	"slices"
)

type (
	// joint is an attempt of one blocked stream, the leader, to commit its front
	// transaction together with as much as that needs: of its own window, which
	// is the net effect, and of the windows of other blocked streams, which is
	// the joint commit. All go into one target transaction on the leader's
	// connection, with every stream's position: it is atomic, and a crash leaves
	// all of it or none.
	//
	// The attempt starts with the front transaction alone. Where MySQL finds a
	// duplicate it is extended, by the unit that releases the value, and tried
	// again. So it takes no more than it needs, and a duplicate that is real
	// elsewhere does not keep it from going on.
	joint struct {
		seats   *seats
		leader  *member
		members []*member
		// attempts counts the target transactions that were tried.
		attempts int
		// sweeping is set for an attempt that sends its statements in batches.
		sweeping bool
		// unpacked is set once a pack was too large for one statement, and a later
		// one of its statements met a duplicate: it is not known at which row, and
		// the attempt is made again row by row.
		unpacked bool
	}

	// member is a stream of a joint attempt, with the first units of its window.
	member struct {
		*seat
		units int
		net   *netEffect
	}

	// collision is a duplicate that MySQL found in a joint attempt.
	collision struct {
		conflict
		// member and change are who wrote what.
		member *member
		change Change
		// row is the row that was to take the value, holder the one that has it.
		// holder is empty if it could not be found out.
		row, holder chainKey
		// owner is the stream whose window has changes of the holder, if one has.
		owner int32
		// index is the name of the unique index.
		index string
		// more are further collisions of the same attempt.
		more []*collision
		// open is set if the attempt was abandoned though there may have been
		// an answer: it proves nothing.
		open bool
		// unfinished is set if another attempt might go further.
		unfinished bool
		// behind is why the leader cannot get to a release of its own.
		behind string
		// partly is set if some of the changes of a pack were written already.
		partly bool
	}
)

const (
	// maxJointAttempts bounds the target transactions of one attempt, so that
	// others get their turn.
	maxJointAttempts = 256
	// patientAttempts is how many of them extend a member by no more than is
	// needed. After that a member's share at least doubles.
	patientAttempts = 16
)

func newJoint(s *seats, leader *seat) *joint {
	m := &member{seat: leader, net: newNetEffect()}
	return &joint{seats: s, leader: m, members: []*member{m}}
}

// run makes the attempt. It returns nil, nil once it is committed; the leader's
// seat and the others then know how many of their units are. It returns a
// collision if no stream that stands still has a release to offer, and io.EOF if
// the leader's stop position is reached, which is then saved.
func (j *joint) run(ctx context.Context) (*collision, error) {
	for {
		if ctx.Err() != nil {
			return nil, io.EOF
		}
		c, err := j.try(ctx)
		if c == nil || err != nil {
			return nil, err
		}
		if c.kind != duplicateKey {
			return c, nil
		}
		if j.attempts >= maxJointAttempts {
			c.open, c.unfinished = true, true
			return c, nil
		}
		if c.partly {
			continue
		}
		answered, err := j.answerAll(append([]*collision{c}, c.more...))
		if err != nil || !answered {
			c.open, c.unfinished = c.open || err != nil, err != nil
			return c, nil
		}
	}
}

// extend makes a member take its first units.
func (j *joint) extend(m *member, units int) error {
	for _, u := range m.window.units[m.units:units] {
		for _, rows := range u.rows {
			if err := m.net.add(rows.table, rows.event); err != nil {
				return err
			}
		}
	}
	m.units = units
	return nil
}

// answerAll extends the attempt by the releases of the values in conflict, and
// tells whether there was one. All are looked for from where the attempt was: one
// extension may answer several.
func (j *joint) answerAll(collisions []*collision) (bool, error) {
	candidates := j.candidates()
	units := make(map[*member]int)
	for _, c := range collisions {
		if c.holder.table == "" {
			if widened, err := j.widen(); widened || err != nil {
				return widened, err
			}
			j.noteRefused(c, candidates)
		}
		if m, unit := j.answer(c, candidates); m != nil {
			units[m] = max(units[m], unit+1)
		}
	}
	for _, m := range candidates {
		most := units[m]
		if most <= m.units {
			continue
		}
		if j.attempts > patientAttempts {
			most = max(most, j.foldable(m, 2*m.units))
		}
		if err := j.include(m, most); err != nil {
			return false, err
		}
	}
	return len(units) > 0, nil
}

// answer returns the unit that releases the value in conflict, and whose it is.
// Either the row that wants the value gives it up later in its own stream, because
// the holder overtook it; or the holder gives it up in the stream that it belongs
// to. Of two the one that the source made first is taken: the streams are then at
// a state that the sources were in together, or before it.
func (j *joint) answer(c *collision, candidates []*member) (best *member, bestUnit int) {
	consider := func(m *member, row chainKey) {
		unit, ok := m.window.release(row, c.index, m.units)
		if !ok {
			return
		}
		if j.refused(m, unit) {
			c.bar(j, m, unit)
			return
		}
		if best == nil || m.window.units[unit].timestamp < best.window.units[bestUnit].timestamp {
			best, bestUnit = m, unit
		}
	}
	if c.holder.table != "" {
		for _, m := range candidates {
			// A row that wants the primary key of another is not its own holder.
			if len(m.window.touches[c.holder]) > 0 && (m != c.member || c.holder != c.row) {
				c.owner = m.id
			}
			consider(m, c.holder)
		}
	}
	consider(c.member, c.row)
	return best, bestUnit
}

// noteRefused notes who has a unit that cannot be taken in: nobody knows whether it
// has the release.
func (j *joint) noteRefused(c *collision, candidates []*member) {
	for _, m := range candidates {
		if m.units < len(m.window.units) && j.refused(m, m.units) {
			c.bar(j, m, m.units)
		}
	}
}

// bar notes that a release is, or may be, in a unit to which only its own stream can
// get: not by waiting if that is the one which is blocked here.
func (c *collision) bar(j *joint, m *member, unit int) {
	if m == j.leader {
		c.behind = m.window.units[j.foldable(m, unit+1)].refuse
	} else {
		c.open = true
	}
}

// widen is for a value whose holder cannot be found out: it takes from every
// stream that stands still what its source committed no later than the last unit
// that is in the attempt already, or else the next unit of each.
func (j *joint) widen() (widened bool, err error) {
	latest := int64(0)
	for _, m := range j.members {
		latest = max(latest, m.window.units[m.units-1].timestamp)
	}
	candidates := j.candidates()
	for _, least := range []int{0, 1} {
		for _, m := range candidates {
			units := j.foldable(m, m.units+least)
			for units < j.foldable(m, units+1) && m.window.units[units].timestamp <= latest {
				units++
			}
			if units > m.units {
				widened = true
				if err := j.include(m, units); err != nil {
					return false, err
				}
			}
		}
		if widened {
			break
		}
	}
	return widened, nil
}

// candidates are the members, and all others that stand still.
func (j *joint) candidates() []*member {
	candidates := slices.Clone(j.members)
	for _, seat := range j.seats.others(j.leader.seat) {
		if seat.committed > 0 || seat.unknown != nil || j.memberOf(seat) != nil {
			continue
		}
		candidates = append(candidates, &member{seat: seat, net: newNetEffect()})
	}
	return candidates
}

func (j *joint) memberOf(s *seat) *member {
	for _, m := range j.members {
		if m.seat == s {
			return m
		}
	}
	return nil
}

// refused reports whether a unit, or one in front of it, cannot be folded, or
// may only be applied by its own stream.
func (j *joint) refused(m *member, unit int) bool {
	return j.foldable(m, unit+1) <= unit
}

// foldable returns how many of the first units can be folded, up to most.
func (j *joint) foldable(m *member, most int) int {
	n := 0
	for n < most && j.takes(m, n) {
		n++
	}
	return n
}

// takes reports whether a unit may be part of the attempt. Reaching the stop
// position sets the stream's state, which is for its own player to do.
func (j *joint) takes(m *member, unit int) bool {
	if unit >= len(m.window.units) {
		return false
	}
	u := m.window.units[unit]
	return u.refuse == "" && (!u.stops || m == j.leader)
}

// include makes a stream take part with its first units.
func (j *joint) include(m *member, units int) error {
	if err := j.extend(m, units); err != nil {
		return err
	}
	if j.memberOf(m.seat) == nil {
		j.members = append(j.members, m)
		slices.SortFunc(j.members, func(a, b *member) int { return int(a.id) - int(b.id) })
	}
	return nil
}
