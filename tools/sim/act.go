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
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// mayAct reports whether the next action's moment has come.
func (r *run) mayAct() bool {
	action := r.history.Actions[r.next]
	if r.waits(action) {
		if r.expecting.IsZero() {
			r.expecting = time.Now()
		}
		return r.met(action)
	}
	if action.At != "" && r.waited < momentSteps && r.standingAt(action.At) == 0 {
		r.waited++
		return false
	}
	return true
}

// waits reports whether an action is one that only waits for something.
func (r *run) waits(action Action) bool {
	switch action.Kind {
	case Sync, Converge, ExpectError, Sleep:
		return true
	}
	return false
}

// met reports whether what an action waits for has come.
func (r *run) met(action Action) bool {
	switch action.Kind {
	case Sleep:
		return time.Since(r.expecting) >= action.For
	case ExpectError:
		return slices.ContainsFunc(r.runs, func(sr *streamRun) bool { return sr.errored })
	case Converge:
		return r.converged()
	}
	return r.missing() == ""
}

// standingAt returns a stream that stands at a call, by its id, or 0.
func (r *run) standingAt(call string) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parked {
		if p.call == call {
			return p.id
		}
	}
	return 0
}

// waitingBeside returns a stream that stands at no call while another commits for
// several, so that it may well be one of those; otherwise the given one.
func (r *run) waitingBeside(i int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.Streams {
		other := (i + k) % len(r.Streams)
		s := r.Streams[other]
		if s.Running() && !s.Player.Fetching.Load() && !slices.ContainsFunc(r.parked, func(p *parked) bool { return p.id == s.ID }) {
			return other
		}
	}
	return i
}

// act does the next action.
func (r *run) act() {
	action := r.history.Actions[r.next]
	r.next++
	r.waited = 0
	r.trace("%s", action)
	if !r.expecting.IsZero() {
		if action.Kind != Sleep {
			r.result.Longest = max(r.result.Longest, time.Since(r.expecting))
		}
		r.expecting = time.Time{}
	}
	switch action.Kind {
	case Transaction:
		r.transact(action)
	case DDL:
		r.Streams[action.Stream].Other(binlogdatapb.VEventType_DDL, "alter table")
	case Other:
		r.Streams[action.Stream].Other(binlogdatapb.VEventType_OTHER, "other")
	case Start:
		r.start(action.Stream)
	case Come:
		if sr := r.runs[action.Stream]; !sr.gone {
			sr.absent = false
			r.start(action.Stream)
		}
	case Stop:
		stream := action.Stream
		if action.At != "" {
			stream = r.waitingBeside(stream)
		}
		r.stop(stream)
		if action.At != "" && r.next < len(r.history.Actions) && r.history.Actions[r.next].Kind == Start {
			// It is started again at once, wherever the others are.
			r.start(stream)
		}
	case StopAt:
		r.stopAt(action.Stream, action.N)
	case Go:
		r.runs[action.Stream].leaving = true
	case Crash:
		r.crash()
	case Outage:
		r.outage()
	case Close:
		r.close()
	case Lose:
		s := r.Streams[action.Stream]
		if id := r.standingAt(action.At); id != 0 {
			s = r.Streams[id-1]
		}
		r.runs[s.ID-1].breaks(s, r.rng.IntN(2) == 0)
	}
}

// transact makes a transaction, or several that are one to the application.
func (r *run) transact(action Action) {
	for _, part := range action.parts() {
		if _, err := r.Streams[part.Stream].Execute(part.SQL); err != nil {
			r.fail("invalid history: %v", err)
			return
		}
	}
	if r.Duplicate() != "" {
		r.noteTwice()
	}
}

// noteTwice notes the errors that streams may end with from now on.
func (r *run) noteTwice() {
	if !r.history.genuine() {
		r.fail("invalid history: two sources have %s", r.Duplicate())
		return
	}
	for _, s := range r.Streams {
		for key, row := range s.Rows() {
			name, _, _ := strings.Cut(key, "(")
			r.noteTwiceOf(r.Tables[name], key, row)
		}
	}
}

func (r *run) noteTwiceOf(table *TableDef, key string, row Row) {
	if r.tallied.counts[key] > 1 {
		r.twice[table.duplicate("PRIMARY", row, table.Key)] = true
	}
	for i := range table.Unique {
		unique := &table.Unique[i]
		if entry := table.entry(unique, row); entry != "" && r.tallied.counts[entry] > 1 {
			r.twice[table.duplicate(unique.Name, row, unique.Columns)] = true
		}
	}
}

var lockErrors = []sqlerror.ErrorCode{sqlerror.ERLockDeadlock, sqlerror.ERLockWaitTimeout}

// refuse has a statement fail for a lock that the model does not have.
func (r *run) refuse(tx *Tx, sql string) (number sqlerror.ErrorCode) {
	if r.lockErrors == 0 || r.rng.IntN(60) > 0 {
		return 0
	}
	r.lockErrors--
	number = lockErrors[r.rng.IntN(len(lockErrors))]
	r.trace("stream %d: error %d at %s", tx.ID()-1, number, sql)
	return number
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

// end ends all streams, so that no goroutine is left.
func (r *run) end() {
	r.count()
	for _, s := range r.Streams {
		s.Cancel()
	}
	for range maxSteps {
		synctest.Wait()
		if !slices.ContainsFunc(r.Streams, (*Stream).Running) {
			return
		}
		r.mu.Lock()
		all := r.parked
		r.parked = nil
		r.mu.Unlock()
		for _, p := range all {
			close(p.goOn)
		}
		if len(all) == 0 {
			time.Sleep(time.Second)
		}
	}
	panic(fmt.Sprintf("a stream does not end: %s", r.stuck()))
}
