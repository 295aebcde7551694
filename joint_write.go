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
	"strings"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// try runs one target transaction: all deletes, all updates, all inserts, all
// positions. It rolls back at a conflict, and says which.
func (j *joint) try(ctx context.Context) (c *collision, err error) {
	j.attempts++
	player := j.leader.player
	release, c, err := j.claim()
	if c != nil || err != nil {
		return c, err
	}
	if release != nil {
		defer func() {
			// What ended the attempt says more, and ends the connection as well.
			if rerr := release(); err == nil {
				err = rerr
			}
		}()
	}
	if err := player.Begin(); err != nil {
		return nil, err
	}
	c, err = j.write(ctx)
	if c != nil || err != nil {
		if rerr := player.Rollback(); rerr != nil {
			return nil, rerr
		}
		return c, err
	}
	return j.commit(ctx)
}

// claim claims the positions of the other members for the leader's connection.
func (j *joint) claim() (release func() error, c *collision, err error) {
	var others []int32
	for _, m := range j.members {
		if m != j.leader {
			others = append(others, m.id)
		}
	}
	if len(others) == 0 {
		return nil, nil, nil
	}
	release, ok, err := j.leader.player.Claim(others)
	if err == nil && !ok {
		c = &collision{conflict: conflict{kind: lockConflict, err: errClaimed}, member: j.leader, open: true}
	}
	return release, c, err
}

// write writes the rows of all members.
func (j *joint) write(ctx context.Context) (*collision, error) {
	var met []*collision
	effects := make([]statements, len(j.members))
	for i, m := range j.members {
		// A batch has no results to go by. What it cannot do, the attempt that
		// follows it can.
		effects[i] = m.net.statements(!j.sweeping)
		for _, x := range effects[i].exchanges {
			inserts, c, err := x.run(ctx, j, m)
			if c != nil || err != nil {
				return c, err
			}
			effects[i].deletes = append(effects[i].deletes, x.deletion)
			effects[i].inserts = append(effects[i].inserts, inserts...)
		}
	}
	for _, pick := range []func(statements) []Change{
		func(s statements) []Change { return s.deletes },
		func(s statements) []Change { return s.updates },
		func(s statements) []Change { return s.inserts },
	} {
		for i, m := range j.members {
			for _, changes := range j.pack(pick(effects[i])) {
				if slices.ContainsFunc(met, func(c *collision) bool { return c.spoils(changes[0]) }) {
					continue
				}
				found, err := j.writePack(ctx, m, changes)
				if err != nil {
					return nil, err
				}
				met = append(met, found...)
				if n := len(met); n > 0 && (j.sweeping || met[n-1].partly || met[n-1].kind != duplicateKey || n >= maxCollisions) {
					return gather(met), nil
				}
			}
		}
	}
	return gather(met), nil
}

// spoils reports whether a change builds on the one that met the duplicate: an
// update of the row that could not be inserted.
func (c *collision) spoils(change Change) bool {
	return change.kind == changeUpdate && c.row == chainKey{table: change.Table.Name, row: change.Table.key(change.Row.Before)}
}

// gather returns the collisions of an attempt as one. An error that rolled the
// transaction back, such as a deadlock, comes last and counts alone, and so does a
// duplicate of which it is not known where it is.
func gather(met []*collision) *collision {
	if len(met) == 0 {
		return nil
	}
	if last := met[len(met)-1]; last.kind != duplicateKey || last.partly {
		return last
	}
	met[0].more = met[1:]
	return met[0]
}

const (
	// maxCollisions is how many collisions an attempt looks for: the more it
	// finds, the fewer attempts it takes.
	maxCollisions = 16
	// maxPacked is how many rows one statement of an attempt takes that has to
	// find the row which met a duplicate.
	maxPacked = 50
)

// writePack writes changes by one statement. If that meets a duplicate, which
// undoes no more than the statement, they are written one by one to see where.
func (j *joint) writePack(ctx context.Context, m *member, changes []Change) (met []*collision, err error) {
	c, err := j.writeChanges(ctx, m, changes)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		return nil, nil
	case len(changes) == 1 || j.sweeping || c.kind != duplicateKey:
		return []*collision{c}, nil
	case c.partly:
		// What was written would meet itself.
		j.unpacked = true
		return []*collision{c}, nil
	}
	for i := range changes {
		c, err := j.writeChanges(ctx, m, changes[i:i+1])
		if err != nil {
			return nil, err
		}
		if c != nil {
			met = append(met, c)
			if c.kind != duplicateKey {
				break
			}
		}
	}
	return met, nil
}

// pack puts changes together that one statement can make.
func (j *joint) pack(changes []Change) [][]Change {
	most := maxPacked
	switch {
	case j.sweeping:
		most = len(changes)
	case j.unpacked:
		most = 1
	}
	var packs [][]Change
	last := make(map[*Table]int)
	for _, change := range changes {
		if i, ok := last[change.Table]; ok && len(packs[i]) < most && change.packs(packs[i][0]) {
			packs[i] = append(packs[i], change)
			continue
		}
		last[change.Table] = len(packs)
		packs = append(packs, []Change{change})
	}
	return packs
}

func (j *joint) writeChanges(ctx context.Context, m *member, changes []Change) (*collision, error) {
	statements, err := m.player.Render(changes)
	if err != nil {
		return nil, err
	}
	for i, sql := range statements {
		_, err := j.leader.player.Exec(ctx, sql)
		if err == nil {
			continue
		}
		c := classify(err)
		switch {
		case c.kind != noConflict && i > 0 && len(changes) > 1:
			return &collision{conflict: c, member: m, change: changes[0], partly: true, open: true}, nil
		case c.kind != noConflict:
			return j.collide(ctx, m, changes[0], c)
		case m != j.leader && !sqlerror.IsConnErr(err):
			// That is for the other stream to end with, once it leads.
			return &collision{conflict: conflict{kind: lockConflict, err: err}, member: m, open: true}, nil
		}
		return nil, err
	}
	return nil, nil
}

// collide finds out, still within the transaction, who holds the value.
func (j *joint) collide(ctx context.Context, m *member, change Change, cause conflict) (*collision, error) {
	c := &collision{conflict: cause, member: m, change: change}
	after := change.after()
	if j.sweeping || cause.kind != duplicateKey || after == nil || change.Table.InOrder != "" {
		return c, nil
	}
	c.row = chainKey{table: change.Table.Name, row: change.Table.key(after)}
	c.index = indexName(cause.key)
	key := change.Table.unique(c.index)
	if key == nil {
		return c, nil
	}
	query, err := m.player.HolderQuery(change, key)
	if err != nil || query == "" {
		return c, err
	}
	result, err := j.leader.player.Exec(ctx, query)
	if err != nil {
		return nil, err
	}
	for _, row := range result.Rows {
		values := make([][]byte, 0, len(row))
		for _, value := range row {
			values = append(values, value.Raw())
		}
		if key := rowKeyOf(values); key != c.row.row || c.index == "PRIMARY" {
			c.holder = chainKey{table: change.Table.Name, row: key}
		}
	}
	return c, nil
}

// indexName returns the index of a key as MySQL names it, table.index.
func indexName(key string) string {
	return key[strings.LastIndexByte(key, '.')+1:]
}

// commit saves every member's position and commits.
func (j *joint) commit(ctx context.Context) (*collision, error) {
	player := j.leader.player
	stopped, c, err := j.savePositions(ctx)
	if c != nil || err != nil {
		if rerr := player.Rollback(); rerr != nil {
			return nil, rerr
		}
		return c, err
	}
	members := make([]*seat, len(j.members))
	for i, m := range j.members {
		members[i] = m.seat
	}
	all, err := j.seats.commit(members, player.Commit)
	switch {
	case !all:
		// A stream was stopped while it was in this attempt.
		if err := player.Rollback(); err != nil {
			return nil, err
		}
		return &collision{conflict: conflict{kind: lockConflict, err: errWithdrawn}}, nil
	case err != nil && classify(err).kind != noConflict:
		// A statement of the batch failed, or the server rolled back.
		if err := player.Rollback(); err != nil {
			return nil, err
		}
		return &collision{conflict: classify(err), member: j.leader}, nil
	case err != nil:
		// Whether it was committed is written in the saved positions only.
		for _, m := range members {
			m.unknown = err
		}
		return nil, err
	}
	for _, m := range j.members {
		m.committed = m.units
		// It can go on, and has yet to find out how far.
		m.meter.set(0, nil)
		m.rung = j.rung()
		m.swept = j.sweeping && len(j.members) > 1
	}
	if stopped {
		return nil, io.EOF
	}
	return nil, nil
}

// rung says what the attempt took: with one stream and one unit it was no more
// than a wait.
func (j *joint) rung() Resolution {
	switch {
	case len(j.members) > 1:
		return ResolvedByJoint
	case j.leader.units > 1:
		return ResolvedByNetEffect
	}
	return ResolvedByIsolation
}

var errClaimed = vterrors.New(vtrpcpb.Code_UNAVAILABLE, "an earlier connection may still save the position of a stream that takes part")

var errWithdrawn = vterrors.New(vtrpcpb.Code_ABORTED, "a stream that took part was stopped")

// savePositions writes the positions in the order of the streams' ids, so that
// two transactions never wait for each other's rows.
func (j *joint) savePositions(ctx context.Context) (stopped bool, c *collision, err error) {
	for _, m := range j.members {
		gtid, timestamp := m.window.position(m.units)
		if gtid == "" {
			continue
		}
		if m == j.leader {
			stopped, err = m.player.SavePosition(ctx, gtid, timestamp)
		} else {
			err = j.savePosition(ctx, m, gtid, timestamp)
		}
		if err == nil {
			continue
		}
		if cause := classify(err); cause.kind != noConflict {
			return false, &collision{conflict: cause, member: m}, nil
		}
		return false, nil, err
	}
	return stopped, nil, nil
}

func (j *joint) savePosition(ctx context.Context, m *member, gtid string, timestamp int64) error {
	sql, err := m.player.PositionUpdate(gtid, timestamp)
	if err != nil {
		return err
	}
	result, err := j.leader.player.Exec(ctx, sql)
	if err != nil {
		return err
	}
	// A batch has no result yet. The engine changes the row of a stream only
	// once that stream has left its seat, so this is but a second lock.
	if result != nil && result.RowsAffected != 1 {
		return vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE,
			"%sthe row of stream %d in _vt.vreplication is gone or was changed while its window was about to be committed", MessagePrefix, m.id)
	}
	return nil
}
