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

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// progress is what the target has to hold, by the positions that are saved.
type progress struct {
	// at is how much of its source's log each stream's position covers, and rows
	// the source's rows there.
	at   []int
	rows []map[string]Row
	// all are the rows of all streams.
	all map[string]Row
}

func newProgress(streams int) *progress {
	p := &progress{at: make([]int, streams), all: make(map[string]Row)}
	for range streams {
		p.rows = append(p.rows, make(map[string]Row))
	}
	return p
}

// advance takes in what a stream's source has logged up to a new position, and
// returns the keys of the rows that it touches.
func (p *progress) advance(i int, log []*Txn, to int) (touched []string) {
	for _, txn := range log[p.at[i]:to] {
		for _, row := range txn.Rows {
			if row.Before != nil {
				key := row.Table.key(row.Before)
				delete(p.rows[i], key)
				touched = append(touched, key)
			}
			if row.After != nil {
				key := row.Table.key(row.After)
				p.rows[i][key] = row.After
				touched = append(touched, key)
			}
		}
	}
	p.at[i] = to
	return touched
}

// settle brings all up to date with what the streams have, or tells of a row that
// two of them have.
func (p *progress) settle(touched []string) (twice string) {
	for _, key := range touched {
		delete(p.all, key)
		for _, rows := range p.rows {
			row := rows[key]
			if row == nil {
				continue
			}
			if p.all[key] != nil {
				twice = key
			}
			p.all[key] = row
		}
	}
	return twice
}

// committed checks that rows and positions fit together, at each commit.
func (r *run) committed(tx *Tx, positions map[int32]string) {
	var touched []string
	for _, id := range slices.Sorted(maps.Keys(positions)) {
		i, s := int(id)-1, r.Streams[id-1]
		to := s.Index(positions[id])
		if to < r.progress.at[i] {
			r.fail("the position of stream %d moves back to %s", i, positions[id])
			return
		}
		r.passes(i, s.Log, to)
		touched = append(touched, r.progress.advance(i, s.Log, to)...)
	}
	if twice := r.progress.settle(touched); twice != "" {
		r.fail("the streams are at positions at which two of them have %s", twice)
		return
	}
	if difference := r.DB.Difference(r.progress.all); difference != "" {
		r.fail("after a commit of stream %d with positions %v: %s", tx.ID()-1, positions, difference)
	}
}

// passes checks that the position of a stream moves over no DDL that it was to execute,
// and has not, or to stop at.
func (r *run) passes(i int, log []*Txn, to int) {
	sr := r.runs[i]
	for n := r.progress.at[i]; n < to; n++ {
		if log[n].Kind != binlogdatapb.VEventType_DDL || sr.player == nil {
			continue
		}
		switch action := sr.player.OnDDL; {
		case executed(action) && sr.executed <= n:
			r.fail("stream %d has not executed the DDL at %s, and commits %s", i, log[n].GTID, log[to-1].GTID)
		case action == binlogdatapb.OnDDLAction_STOP && n < to-1:
			r.fail("stream %d was to stop at the DDL at %s, and commits %s", i, log[n].GTID, log[to-1].GTID)
		}
	}
}

// executes checks that a DDL is executed when all that its source committed before
// is on the target, and nothing else.
func (r *run) executes(p *Player, pos string) {
	i, s := int(p.ID)-1, r.Streams[p.ID-1]
	to := s.Index(pos)
	if at := r.progress.at[i]; at >= to {
		r.fail("stream %d executes the DDL at %s again, or too late: it is at %d", i, pos, at)
	}
	for _, txn := range s.Log[r.progress.at[i] : to-1] {
		if len(txn.Rows) > 0 {
			r.fail("stream %d executes the DDL at %s before %s is committed", i, pos, txn.GTID)
		}
	}
	r.runs[i].executed = to
}

// check looks at the streams while all of them stand.
func (r *run) check() {
	if wrong := r.DB.Wrong(); len(wrong) > 0 {
		r.fail("%s", wrong[0])
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.Streams {
		if !s.Running() || s.Player.Fetching.Load() || s.Player.Idle() {
			continue
		}
		if !slices.ContainsFunc(r.parked, func(p *parked) bool { return p.id == s.ID }) {
			r.fail("stream %d holds locks while it waits", i)
		}
	}
}

// watch checks that the throttler is asked before anything is tried again.
func (sr *streamRun) watch(r *run, call string) {
	switch {
	case call == "Throttled":
		sr.asked = true
	case call == "Begin":
		sr.joint = true
	case call == "COMMIT":
		sr.joint = false
	case call == "Rollback":
		// A joint attempt is one, however many transactions it takes.
		sr.asked = sr.asked && sr.joint
		sr.joint = false
	}
	if tries := call == "Begin" || call == "Apply FIELD" || call == "Apply ROW"; tries && !sr.asked {
		r.fail("stream %d tries again (%s) and has not asked the throttler", sr.player.ID-1, call)
	}
}

// missing tells what is missing for the target to be what the streams that there
// are have to make of it, or nothing.
func (r *run) missing() string {
	for i, s := range r.Streams {
		if sr := r.runs[i]; sr.absent && !sr.gone {
			continue
		}
		n := len(s.Log)
		for n > 0 && len(s.Log[n-1].Rows) == 0 {
			// A position that nothing depends on may be saved late.
			n--
		}
		if s.Index(r.DB.Stream(s.ID).Pos) < n {
			return fmt.Sprintf("stream %d is at %s of %s", i, r.DB.Stream(s.ID).Pos, s.Log[n-1].GTID)
		}
	}
	union := make(map[string]Row)
	for i, s := range r.Streams {
		if !r.runs[i].absent {
			maps.Copy(union, s.Rows())
		}
	}
	return r.DB.Difference(union)
}

// converged reports whether the target has been what it should be for a while, and
// all streams run.
func (r *run) converged() bool {
	if r.missing() != "" {
		r.done = time.Time{}
		return false
	}
	if r.done.IsZero() {
		r.done = time.Now()
	}
	if time.Since(r.done) < quiet {
		return false
	}
	for i, s := range r.Streams {
		switch row := r.DB.Stream(s.ID); {
		case r.runs[i].gone:
		case !s.Running(), row.State != "Running":
			return false
		case row.Message != "":
			r.fail("stream %d has the message %q after all is done", i, row.Message)
		case r.Hub.Counts(s.ID).Blocked:
			r.fail("stream %d is counted as blocked after all is done", i)
		}
	}
	return true
}

func (r *run) stuck() string {
	var b strings.Builder
	b.WriteString(r.missing())
	for i, s := range r.Streams {
		row := r.DB.Stream(s.ID)
		fmt.Fprintf(&b, "; stream %d at %d of %d, running %v, %s, %q", i, s.Index(row.Pos), len(s.Log), s.Running(), row.State, row.Message)
	}
	return b.String()
}
