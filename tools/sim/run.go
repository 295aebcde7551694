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
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

type (
	// Result is what came of one run.
	Result struct {
		// Failure says what is wrong; it is empty if nothing is.
		Failure string
		// Steps is how many decisions the scheduler took.
		Steps int
		// Took is the virtual time of the run, and Last that from the last action
		// to the end.
		Took, Last time.Duration
		// Resolutions counts how conflicts were resolved.
		Resolutions map[mergebackoff.Resolution]int64
		Conflicts   int64
		// Trace is what the scheduler did, if it was asked for.
		Trace []string
	}

	// run is one run of a history.
	run struct {
		*World
		history *History
		rng     *rand.Rand
		result  *Result
		begun   time.Time
		traced  bool

		mu     sync.Mutex
		parked []*parked
		// woke has a token once a stream has parked.
		woke chan struct{}

		next int
		// waited counts the decisions for which an action waited for a COMMIT.
		waited int
		// at and rows are the position of each stream, by how much of its source's
		// log it covers, and the source's rows there.
		at   []int
		rows []map[string]Row
		runs []*streamRun
		// beat is when the idle sources sent heartbeats last.
		beat time.Time
		// settled is when the last action was done.
		settled time.Time
		// done is when the target was first seen to be what it should be.
		done   time.Time
		failed string
		// errored are the streams that ended in Error.
		errored  []int
		repaired bool
	}

	// streamRun is what the engine knows of a stream.
	streamRun struct {
		started bool
		out     []*binlogdatapb.VEvent
		player  *Player
		// restart is when a run that ended with an error is started again.
		restart time.Time
		// lose is set if the connection is to break at the next call, and done
		// whether a COMMIT goes through all the same.
		lose, done bool
	}

	// parked is a stream that stands at a call.
	parked struct {
		id   int32
		call string
		goOn chan struct{}
	}
)

const (
	// maxSteps and maxTime bound a run.
	maxSteps = 200_000
	maxTime  = 3 * time.Minute
	// controllerDelay is how long the controller waits before it starts a stream
	// again that ended with an error.
	controllerDelay = 5 * time.Second
)

// Run runs a history. The same seed gives the same run.
func Run(t *testing.T, h *History, seed uint64, trace bool) *Result {
	result := &Result{}
	synctest.Test(t, func(*testing.T) {
		tables, err := h.tables()
		if err != nil {
			result.Failure = err.Error()
			return
		}
		r := &run{
			World: NewWorld(h.Streams, tables...), history: h, result: result, traced: trace,
			rng: rand.New(rand.NewPCG(seed, 2)), woke: make(chan struct{}, 1),
			begun: time.Now(), beat: time.Now(),
		}
		r.prepare()
		if len(h.Actions) == 0 {
			r.settle()
		}
		r.loop()
		r.end()
		result.Failure = r.failed
		result.Took = time.Since(r.begun)
	})
	return result
}

func (r *run) prepare() {
	r.Prepare = func(p *Player) {
		r.Config.Jitter = rand.New(rand.NewPCG(r.rng.Uint64(), 3)).Float64
		p.Batches, p.Blind, p.Opaque = r.history.Batches, r.history.Blind, r.history.Opaque
		if r.history.Throttled {
			p.Throttle = func() bool {
				denied := r.rng.IntN(8) == 0
				if denied {
					time.Sleep(250 * time.Millisecond)
					r.park(p.ID, "after the throttler")
				}
				return denied
			}
		}
		p.MaxBatch = 100 + r.rng.IntN(400)
		p.Enter = func(call string) (error, bool) { return r.enter(p, call) }
	}
	r.DB.Pause = func(id int32) { r.park(id, "after a lock") }
	r.DB.Committed = r.committed
	for _, s := range r.Streams {
		s.Images = r.history.Images
		r.at = append(r.at, 0)
		r.rows = append(r.rows, make(map[string]Row))
		r.runs = append(r.runs, &streamRun{})
	}
}

func (r *run) fail(format string, args ...any) {
	if r.failed == "" {
		r.failed = fmt.Sprintf(format, args...)
		r.trace("FAILED: %s", r.failed)
	}
}

func (r *run) trace(format string, args ...any) {
	if r.traced {
		r.result.Trace = append(r.result.Trace, fmt.Sprintf("%9.3f ", time.Since(r.begun).Seconds())+fmt.Sprintf(format, args...))
	}
}

// enter is called by a player at each of its calls.
func (r *run) enter(p *Player, call string) (err error, done bool) {
	r.park(p.ID, call)
	sr := r.runs[p.ID-1]
	if sr.player == p && sr.lose {
		sr.lose = false
		r.trace("stream %d loses its connection at %s (done: %v)", p.ID-1, call, sr.done)
		return errLost, sr.done && call == "COMMIT"
	}
	return nil, false
}

// park stands until the scheduler lets the stream go on.
func (r *run) park(id int32, call string) {
	p := &parked{id: id, call: call, goOn: make(chan struct{})}
	r.mu.Lock()
	r.parked = append(r.parked, p)
	r.mu.Unlock()
	select {
	case r.woke <- struct{}{}:
	default:
	}
	<-p.goOn
}

// loop is the scheduler.
func (r *run) loop() {
	for r.failed == "" {
		synctest.Wait()
		r.check()
		if r.finished() {
			return
		}
		r.result.Steps++
		if r.result.Steps > maxSteps {
			r.fail("stuck: no end after %d steps", r.result.Steps)
			return
		}
		since := r.settled
		if since.IsZero() {
			since = r.begun.Add(time.Hour)
		}
		if time.Since(since) > maxTime {
			r.fail("stuck: %s", r.stuck())
			return
		}
		r.manage()
		r.step()
	}
}

// step takes one decision.
func (r *run) step() {
	r.mu.Lock()
	slices.SortStableFunc(r.parked, func(a, b *parked) int { return int(a.id) - int(b.id) })
	n := len(r.parked)
	r.mu.Unlock()
	deliverable := r.deliverable()
	acts := r.next < len(r.history.Actions)
	if acts && r.history.Actions[r.next].At != "" && r.waited < patience && r.standingAt(r.history.Actions[r.next].At) == 0 {
		r.waited++
		acts = false
	}
	choice := r.rng.IntN(100)
	switch {
	case acts && (choice < 8 || r.waited > 0 || n == 0 && len(deliverable) == 0 && choice < 50):
		r.act()
	case len(deliverable) > 0 && (choice < 20 || n == 0 && choice < 90):
		r.deliver(deliverable[r.rng.IntN(len(deliverable))])
	case n > 0 && choice < 97:
		r.mu.Lock()
		i := r.rng.IntN(n)
		p := r.parked[i]
		r.parked = slices.Delete(r.parked, i, i+1)
		r.mu.Unlock()
		r.trace("stream %d: %s", p.id-1, p.call)
		close(p.goOn)
	case n > 0:
		// A call takes its time.
		time.Sleep(time.Duration(1+r.rng.IntN(20)) * time.Millisecond)
	default:
		// Nobody has anything to do: time passes until somebody has.
		select {
		case <-r.woke:
		default:
		}
		timer := time.NewTimer(time.Duration(1+r.rng.IntN(500)) * time.Millisecond)
		select {
		case <-r.woke:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// patience is for how many decisions an action waits for its moment.
const patience = 80

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
	switch s := r.Streams[action.Stream]; action.Kind {
	case Transaction:
		for _, part := range append([]Action{action}, action.And...) {
			if _, err := r.Streams[part.Stream].SQL(part.SQL...); err != nil {
				r.fail("invalid history: %v", err)
				return
			}
		}
	case DDL:
		s.Other(binlogdatapb.VEventType_DDL, "alter table")
	case Start:
		r.start(action.Stream)
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
	case Crash:
		r.crash()
	case Lose:
		if id := r.standingAt(action.At); id != 0 {
			s = r.Streams[id-1]
		}
		sr := r.runs[s.ID-1]
		sr.lose, sr.done = s.Running(), r.rng.IntN(2) == 0
	case Sleep:
		time.Sleep(action.For)
	}
	if r.next == len(r.history.Actions) {
		r.settle()
	}
}

// settle has all streams run, once there is nothing else to come.
func (r *run) settle() {
	for i := range r.Streams {
		r.start(i)
	}
	r.settled = time.Now()
}

func (r *run) start(i int) {
	sr := r.runs[i]
	if sr.started && r.Streams[i].Running() {
		return
	}
	sr.started, sr.restart = true, time.Time{}
	r.Streams[i].SetState(binlogdatapb.VReplicationWorkflowState_Running)
	r.restart(i)
}

func (r *run) restart(i int) {
	sr := r.runs[i]
	sr.out, sr.lose, sr.restart = nil, false, time.Time{}
	r.Streams[i].Restart()
	sr.player = r.Streams[i].Player
}

// stop stops a stream, and lets everybody run until it has ended.
func (r *run) stop(i int) {
	sr := r.runs[i]
	sr.started, sr.restart = false, time.Time{}
	s := r.Streams[i]
	s.Cancel()
	begun := time.Now()
	r.drain(s.ID, func() bool { return !s.Running() })
	if time.Since(begun) > 2*time.Second {
		r.fail("stream %d took %v to stop", i, time.Since(begun))
	}
	s.SetState(binlogdatapb.VReplicationWorkflowState_Stopped)
}

// drain lets streams run, in any order, until something is so. ending is the one
// that is waited for, if it is one.
func (r *run) drain(ending int32, until func() bool) {
	for range maxSteps {
		synctest.Wait()
		if until() || r.failed != "" {
			return
		}
		if deliverable := r.deliverable(); len(deliverable) > 0 && r.rng.IntN(4) == 0 {
			// Who waits for a lock may wait for the end of a transaction.
			r.deliver(deliverable[r.rng.IntN(len(deliverable))])
		}
		r.mu.Lock()
		n := len(r.parked)
		if n == 0 {
			r.mu.Unlock()
			time.Sleep(time.Millisecond)
			continue
		}
		// Who is ending goes first, mostly.
		i := r.rng.IntN(n)
		if r.rng.IntN(8) > 0 {
			for k, p := range r.parked {
				if p.id == ending {
					i = k
				}
			}
		}
		p := r.parked[i]
		r.parked = slices.Delete(r.parked, i, i+1)
		r.mu.Unlock()
		r.trace("stream %d: %s", p.id-1, p.call)
		close(p.goOn)
	}
	r.fail("stuck: no end of a stop")
}

// crash ends the process at once. A COMMIT that is under way goes through or not.
func (r *run) crash() {
	r.mu.Lock()
	for _, p := range r.parked {
		sr := r.runs[p.id-1]
		sr.lose, sr.done = true, r.rng.IntN(2) == 0 && p.call == "COMMIT"
	}
	r.mu.Unlock()
	for i, s := range r.Streams {
		s.Cancel()
		// Those that are not at a call have none under way.
		if sr := r.runs[i]; s.Running() && !sr.lose {
			sr.lose, sr.done = true, false
		}
	}
	r.drain(0, func() bool { return !slices.ContainsFunc(r.Streams, (*Stream).Running) })
	r.count()
	r.Hub = &mergebackoff.Hub{}
	for i, s := range r.Streams {
		state := binlogdatapb.VReplicationWorkflowState_Stopped
		if r.runs[i].started {
			state = binlogdatapb.VReplicationWorkflowState_Running
		}
		s.SetState(state)
	}
	for i := range r.Streams {
		if r.runs[i].started {
			r.restart(i)
		}
	}
}

// deliverable are the streams that can be sent something.
func (r *run) deliverable() (streams []int) {
	for i, s := range r.Streams {
		if s.Running() && (len(r.runs[i].out) > 0 || s.Sent < len(s.Log)) {
			streams = append(streams, i)
		}
	}
	return streams
}

// deliver sends a stream the next events, which may end within a transaction.
func (r *run) deliver(i int) {
	s, sr := r.Streams[i], r.runs[i]
	for want := 1 + r.rng.IntN(4); want > 0 && s.Sent < len(s.Log); want-- {
		sr.out = append(sr.out, s.Events(s.Log[s.Sent])...)
		s.Sent++
	}
	n := len(sr.out)
	if r.rng.IntN(3) == 0 {
		n = 1 + r.rng.IntN(n)
	}
	r.trace("stream %d is sent %d events", i, n)
	s.Player.Relay.Send(sr.out[:n]...)
	sr.out = sr.out[n:]
}

// manage does what the engine and the sources do by themselves.
func (r *run) manage() {
	now := time.Now()
	if now.Sub(r.beat) >= time.Second {
		r.beat = now
		for i, s := range r.Streams {
			if s.Running() && s.Sent == len(s.Log) && len(r.runs[i].out) == 0 {
				s.Player.Relay.Send(Heartbeat())
			}
		}
	}
	for i, s := range r.Streams {
		sr := r.runs[i]
		if !sr.started || s.Running() {
			continue
		}
		if sr.restart.IsZero() {
			r.ended(i, s.Err)
		} else if now.After(sr.restart) {
			r.trace("stream %d is started again", i)
			r.restart(i)
		}
	}
}

// ended does what the controller does with the error that a run ended with.
func (r *run) ended(i int, err error) {
	r.trace("stream %d ended: %v", i, err)
	sr := r.runs[i]
	var sqlErr *sqlerror.SQLError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, context.Canceled), err == nil:
		r.fail("stream %d ended without a reason: %v", i, err)
	case errors.As(sqlerror.NewSQLErrorFromError(err), &sqlErr) && sqlErr.Number() == sqlerror.ERDupEntry:
		if !r.history.Genuine || r.next < len(r.history.Actions) || r.repaired {
			r.fail("stream %d ends in Error: %v", i, err)
			return
		}
		sr.started = false
		r.Streams[i].SetState(binlogdatapb.VReplicationWorkflowState_Error)
		r.errored = append(r.errored, i)
	case strings.Contains(err.Error(), "Lost connection"), strings.Contains(err.Error(), "is read again"):
		sr.restart = time.Now().Add(controllerDelay)
	case sqlErr != nil && (sqlErr.Number() == sqlerror.ERLockDeadlock || sqlErr.Number() == sqlerror.ERLockWaitTimeout):
		sr.restart = time.Now().Add(controllerDelay)
	default:
		r.fail("stream %d ended: %v", i, err)
	}
}

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

// repair undoes the duplicate, as an operator does, and starts the stream again.
func (r *run) repair() bool {
	r.repaired = true
	last := r.history.Actions[len(r.history.Actions)-1]
	s := r.Streams[last.Stream]
	// The rows that the last transaction left are deleted.
	txn := s.Log[len(s.Log)-1]
	var deltas []RowDelta
	for _, delta := range txn.Rows {
		if delta.After == nil {
			continue
		}
		if row := s.Rows[delta.Table.key(delta.After)]; row != nil && slices.Equal(row, delta.After) {
			deltas = append(deltas, RowDelta{Table: delta.Table, Before: row})
			delete(s.Rows, delta.Table.key(delta.After))
		}
	}
	s.Commit("repair", deltas...)
	if _, duplicate := r.Union(); duplicate != "" {
		r.fail("the repair leaves the duplicate %s", duplicate)
		return false
	}
	r.trace("the duplicate is repaired on source %d", last.Stream)
	for _, i := range r.errored {
		r.start(i)
	}
	r.settled = time.Now()
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
}
