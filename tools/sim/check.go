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

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
)

// committed checks that rows and positions fit together, at each commit.
func (r *run) committed(tx *Tx, positions map[int32]string) {
	for _, id := range slices.Sorted(maps.Keys(positions)) {
		i, s := int(id)-1, r.Streams[id-1]
		to := s.Index(positions[id])
		if to < r.at[i] {
			r.fail("the position of stream %d moves back to %s", i, positions[id])
			return
		}
		for _, txn := range s.Log[r.at[i]:to] {
			for _, row := range txn.Rows {
				if row.Before != nil {
					delete(r.rows[i], row.Table.key(row.Before))
				}
				if row.After != nil {
					r.rows[i][row.Table.key(row.After)] = row.After
				}
			}
		}
		r.at[i] = to
	}
	union := make(map[string]Row)
	for i, rows := range r.rows {
		for key, row := range rows {
			if union[key] != nil {
				r.fail("streams are at positions at which two of them have %s, one of them %d", key, i)
				return
			}
			union[key] = row
		}
	}
	if difference := Difference(union, r.DB.Rows()); difference != "" {
		r.fail("after a commit of stream %d with positions %v: %s", tx.ID()-1, positions, difference)
	}
}

// check looks at the streams while all of them stand.
func (r *run) check() {
	if wrong := r.DB.Wrong(); len(wrong) > 0 {
		r.fail("%s", wrong[0])
		return
	}
	r.mu.Lock()
	standing := make(map[int32]bool)
	for _, p := range r.parked {
		standing[p.id] = true
	}
	r.mu.Unlock()
	for i, s := range r.Streams {
		if s.Running() && !standing[s.ID] && !s.Player.Fetching.Load() && !s.Player.Idle() {
			r.fail("stream %d holds locks while it waits", i)
		}
	}
}

// finished reports whether the run has come to its end.
func (r *run) finished() bool {
	if r.next < len(r.history.Actions) || r.failed != "" {
		return r.failed != ""
	}
	if r.history.Genuine && !r.repaired {
		if len(r.errored) == 0 {
			return false
		}
		return !r.repair()
	}
	if missing := r.Converged(); missing != "" {
		r.done = time.Time{}
		return false
	}
	if r.done.IsZero() {
		r.done = time.Now()
		r.result.Last = r.done.Sub(r.settled)
	}
	if time.Since(r.done) < 2*time.Second {
		return false
	}
	for i, s := range r.Streams {
		switch row := r.DB.Stream(s.ID); {
		case !s.Running():
			return false
		case row.Message != "":
			r.fail("stream %d has the message %q after all is done", i, row.Message)
		case row.State != "Running":
			r.fail("stream %d is %s after all is done", i, row.State)
		case r.Hub.Counts(s.ID).Blocked:
			r.fail("stream %d is counted as blocked after all is done", i)
		}
	}
	return true
}

func (r *run) stuck() string {
	var b strings.Builder
	b.WriteString(r.Converged())
	for i, s := range r.Streams {
		row := r.DB.Stream(s.ID)
		fmt.Fprintf(&b, "; stream %d at %d of %d, running %v, %q", i, s.Index(row.Pos), len(s.Log), s.Running(), row.Message)
	}
	return b.String()
}

// count adds what the hub has counted to the result.
func (r *run) count() {
	if r.result.Resolutions == nil {
		r.result.Resolutions = make(map[mergebackoff.Resolution]int64)
	}
	for _, s := range r.Streams {
		counts := r.Hub.Counts(s.ID)
		r.result.Conflicts += counts.Conflicts
		for resolution, n := range counts.Resolutions {
			r.result.Resolutions[resolution] += n
		}
	}
}
