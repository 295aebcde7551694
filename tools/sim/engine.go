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
	"io"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

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
