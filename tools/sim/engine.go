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
	"slices"
	"testing/synctest"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// streamRun is what the engine knows of a stream.
type streamRun struct {
	started bool
	out     []*binlogdatapb.VEvent
	player  *Player
	// restart is when a run that has ended is started again.
	restart time.Time
	// errored is set while the stream is in Error.
	errored bool
	// absent is set before the stream is created, and once it is deleted, which
	// leaving says is to happen once it is through.
	absent, leaving, gone bool
	// stopPos is where it is to stop, if anywhere, and onDDL what it does at a DDL.
	stopPos string
	onDDL   binlogdatapb.OnDDLAction
	// executed is how much of its source's log lies in front of, or is, the last DDL
	// that it has executed.
	executed int
	// retained bounds what it keeps, if it is not zero.
	retained int
	// nextStop is where the next start has it stop.
	nextStop string
	// lose is set if the connection is to break at the next call, and done
	// whether a COMMIT goes through all the same.
	lose, done bool
	// asked is set once the throttler was asked since the last rollback.
	asked, joint bool
}

// controllerDelay is how long the controller waits before it starts a stream again
// that ended with an error.
const controllerDelay = 5 * time.Second

func (r *run) start(i int) {
	sr := r.runs[i]
	if r.failed != "" || sr.absent || sr.started && r.Streams[i].Running() {
		return
	}
	// A stop position is good for one run.
	sr.started, sr.errored, sr.stopPos = true, false, sr.nextStop
	sr.nextStop = ""
	r.Streams[i].SetState(binlogdatapb.VReplicationWorkflowState_Running)
	r.restart(i)
}

func (r *run) restart(i int) {
	sr := r.runs[i]
	sr.out, sr.lose, sr.restart = nil, false, time.Time{}
	sr.asked, sr.joint = false, false
	r.Streams[i].Restart()
	sr.player = r.Streams[i].Player
}

// stop stops a stream, and lets everybody run until it has ended.
func (r *run) stop(i int) {
	sr := r.runs[i]
	if sr.absent {
		return
	}
	sr.started, sr.restart = false, time.Time{}
	s := r.Streams[i]
	s.Cancel()
	begun := time.Now()
	r.drain(s.ID, func() bool { return !s.Running() })
	if time.Since(begun) > 2*time.Second {
		r.fail("stream %d took %v to stop", i, time.Since(begun))
	}
	if !sr.errored {
		s.SetState(binlogdatapb.VReplicationWorkflowState_Stopped)
	}
}

// stopAt starts a stream with a stop position that lies ahead.
func (r *run) stopAt(i, ahead int) {
	r.stop(i)
	sr, s := r.runs[i], r.Streams[i]
	if sr.absent || sr.errored {
		return
	}
	sr.nextStop = s.gtid(s.Index(r.DB.Stream(s.ID).Pos) + ahead)
	r.trace("stream %d is to stop at %s", i, sr.nextStop)
	r.start(i)
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
		slices.SortStableFunc(r.parked, func(a, b *parked) int { return int(a.id) - int(b.id) })
		i := r.rng.IntN(n)
		if r.rng.IntN(8) > 0 {
			for k, p := range r.parked {
				if p.id == ending {
					i = k
				}
			}
		}
		r.goOn(i)
	}
	r.fail("stuck: no end of a stop")
}

// breaks has the connection of a stream break at its next call.
func (sr *streamRun) breaks(s *Stream, done bool) {
	sr.lose, sr.done = s.Running(), done
}

// breakAll breaks all connections. A COMMIT that is under way goes through or not.
func (r *run) breakAll() {
	for i, s := range r.Streams {
		r.runs[i].breaks(s, false)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parked {
		if p.call == "COMMIT" {
			r.runs[p.id-1].done = r.rng.IntN(2) == 0
		}
	}
}

// crash ends the process at once.
func (r *run) crash() {
	r.breakAll()
	r.endAll()
}

// outage is an end of mysqld: all connections break, and the process goes on.
func (r *run) outage() {
	r.breakAll()
}

// close closes the engine and opens it again.
func (r *run) close() {
	r.endAll()
}

// endAll ends all streams, and starts those again that were started, in an engine
// that knows of nothing.
func (r *run) endAll() {
	for _, s := range r.Streams {
		s.Cancel()
	}
	r.drain(0, func() bool { return !slices.ContainsFunc(r.Streams, (*Stream).Running) })
	if r.failed != "" {
		return
	}
	r.count()
	r.Hub = &mergebackoff.Hub{Sources: r.sources()}
	r.addStranger()
	for i, s := range r.Streams {
		sr := r.runs[i]
		state := binlogdatapb.VReplicationWorkflowState_Stopped
		switch {
		case sr.absent:
			continue
		case sr.errored:
			state = binlogdatapb.VReplicationWorkflowState_Error
		case r.DB.Stream(s.ID).State == "Stopped":
			// It may have stopped by itself, just before the end.
			if sr.started && sr.restart.IsZero() {
				r.reachedStop(i)
				sr.restart = time.Now().Add(controllerDelay)
			}
		case sr.started:
			state = binlogdatapb.VReplicationWorkflowState_Running
		}
		s.SetState(state)
	}
	for i, s := range r.Streams {
		if r.runs[i].started && r.DB.Stream(s.ID).State == "Running" {
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
		switch {
		case sr.leaving && !sr.gone && s.Index(r.DB.Stream(s.ID).Pos) == len(s.Log):
			r.trace("stream %d is deleted", i)
			r.stop(i)
			sr.absent, sr.gone = true, true
			r.Hub.Remove(s.ID)
		case !sr.started || s.Running():
		case sr.restart.IsZero():
			r.ended(i, s.Err)
		case now.After(sr.restart):
			r.trace("stream %d is started again", i)
			if r.DB.Stream(s.ID).State != "Running" {
				s.SetState(binlogdatapb.VReplicationWorkflowState_Running)
			}
			sr.errored = false
			r.restart(i)
		}
	}
}

// settling reports whether all streams are to run from now on.
func (r *run) settling() bool {
	return r.next == len(r.history.Actions) || r.history.Actions[r.next].Kind == Converge
}
