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
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		// Took is the virtual time of the run, and Longest the longest that it took
		// to do what was expected.
		Took, Longest time.Duration
		// Resolutions counts how conflicts were resolved.
		Resolutions map[mergebackoff.Resolution]int64
		Conflicts   int64
		// Errors counts streams that ended in Error, and Remedied those of them that
		// needed no more than a limit to be lifted. Lifted is set if streams stood for
		// ever, each at a limit, until those were.
		Errors, Remedied int
		Lifted           bool
		// Faulted is set once the fault has come that was asked for, and Struck are the
		// calls at which streams stood then.
		Faulted bool
		Struck  []string
		// Trace is what the scheduler did, if it was asked for.
		Trace []string
		// Rows are those of the target when the run ended.
		Rows map[string]Row
	}

	// How is how a history is run.
	How struct {
		// Seed decides about everything that is left open. The same seed gives the
		// same run.
		Seed uint64
		// Trace has the result tell what the scheduler did.
		Trace bool
		// Watch, if set, is called with all that the target has done.
		Watch func(Deed)
		// Fault, if set, comes in front of one step.
		Fault *Fault
		// standing, if set, gets who stands where at each step.
		standing *[][]parked
	}

	// run is one run of a history.
	run struct {
		*World
		history *History
		how     How
		rng     *rand.Rand
		result  *Result
		begun   time.Time

		mu     sync.Mutex
		parked []*parked
		// woke has a token once a stream has parked.
		woke chan struct{}

		next int
		// waited counts the decisions for which an action waited for its moment.
		waited int
		// expecting is when the next action, if it is one that waits, began to.
		expecting time.Time
		// lifted is when an operator lifted a limit last: what is expected has its
		// time again.
		lifted time.Time
		// done is when the target was first seen to be what it should be.
		done time.Time

		progress *progress
		runs     []*streamRun
		// beat is when the idle sources sent heartbeats last.
		beat   time.Time
		failed string
		// lockErrors is how many lock errors may still come.
		lockErrors int
		// refused are the tables whose changes cannot be folded, and why.
		refused map[string]string
		// twice has the errors that are right: of values that two sources have held.
		twice map[string]bool
	}

	// parked is a stream that stands at a call.
	parked struct {
		id   int32
		call string
		goOn chan struct{}
	}
)

const (
	// maxSteps and maxTime bound a run, and what is expected in it.
	maxSteps = 500_000
	maxTime  = 3 * time.Minute
	// liftTime is for how long an operator watches streams that stand at limits.
	liftTime = time.Minute
	// momentSteps is for how many decisions an action waits for its moment.
	momentSteps = 80
	// quiet is how long a target has to stay as it should be.
	quiet = 2 * time.Second
)

// Run runs a history.
func Run(t *testing.T, h *History, how How) *Result {
	result := &Result{}
	synctest.Test(t, func(*testing.T) {
		tables, err := h.Defined()
		if err != nil {
			result.Failure = err.Error()
			return
		}
		r := &run{
			World: NewWorld(h.Streams, tables...), history: h, how: how, result: result,
			rng: rand.New(rand.NewPCG(how.Seed, 2)), woke: make(chan struct{}, 1),
			begun: time.Now(), beat: time.Now(),
			progress: newProgress(h.Streams), twice: make(map[string]bool),
		}
		r.prepare()
		r.loop()
		r.end()
		result.Failure, result.Rows = r.failed, r.DB.Rows()
		result.Took = time.Since(r.begun)
	})
	return result
}

func (r *run) prepare() {
	o := r.history.Options
	r.Prepare = r.preparePlayer
	r.refused = make(map[string]string)
	for _, table := range r.Tables {
		r.refused[table.Name] = table.Refuse
	}
	r.Hub.Sources = r.sources()
	r.DB.Pause = func(id int32) { r.park(id, "after a lock") }
	r.DB.Victim = func(circle []*Tx) *Tx { return circle[r.rng.IntN(len(circle))] }
	r.DB.Committed = r.committed
	r.DB.Watch = r.how.Watch
	if o.LockErrors {
		r.lockErrors = 1 + r.rng.IntN(5)
		r.DB.Refuse = r.refuse
	}
	for i, s := range r.Streams {
		s.Images = o.Images
		sr := &streamRun{onDDL: o.OnDDL, retained: o.Retained}
		r.runs = append(r.runs, sr)
		if slices.ContainsFunc(r.history.Actions, func(a Action) bool { return a.Kind == Come && a.Stream == i }) {
			sr.absent = true
			r.Hub.Remove(s.ID)
		}
	}
	r.addStranger()
}

// addStranger adds a stream that writes none of the tables.
func (r *run) addStranger() {
	if !r.history.Stranger {
		return
	}
	r.Hub.Put(mergebackoff.Stream{
		ID: strangerID, Workflow: "other", State: binlogdatapb.VReplicationWorkflowState_Error,
		Source: &binlogdatapb.BinlogSource{
			Keyspace: "other", Shard: "0",
			Filter: &binlogdatapb.Filter{Rules: []*binlogdatapb.Rule{{Match: "elsewhere"}}},
		},
	})
}

const strangerID = 99

// sources are those of the world, or nobody where none can be asked.
func (r *run) sources() mergebackoff.Sources {
	if r.history.Unasked {
		return nil
	}
	return r.World
}

func (r *run) preparePlayer(p *Player) {
	o := r.history.Options
	r.Config.Jitter = rand.New(rand.NewPCG(r.rng.Uint64(), 3)).Float64
	p.Batches, p.Blind, p.Opaque = o.Batches, o.Blind, o.Opaque
	p.MaxBatch = 100 + r.rng.IntN(400)
	sr := r.runs[p.ID-1]
	p.OnDDL, p.StopPos = sr.onDDL, sr.stopPos
	r.Config.Retained = sr.retained
	p.Execute = func(pos string) { r.executes(p, pos) }
	if o.Throttled {
		// Of its own: two streams may ask at one instant.
		random := rand.New(rand.NewPCG(r.rng.Uint64(), 4))
		p.Throttle = func() bool {
			denied := random.IntN(8) == 0
			if denied {
				time.Sleep(250 * time.Millisecond)
				r.park(p.ID, "after the throttler")
			}
			return denied
		}
	}
	p.Enter = func(call string) (error, bool) { return r.enter(p, call) }
}

func (r *run) fail(format string, args ...any) {
	if r.failed == "" {
		r.failed = fmt.Sprintf(format, args...)
		r.trace("FAILED: %s", r.failed)
	}
}

func (r *run) trace(format string, args ...any) {
	if r.how.Trace {
		r.result.Trace = append(r.result.Trace, fmt.Sprintf("%9.3f ", time.Since(r.begun).Seconds())+fmt.Sprintf(format, args...))
	}
}

// enter is called by a player at each of its calls.
func (r *run) enter(p *Player, call string) (err error, done bool) {
	r.park(p.ID, call)
	sr := r.runs[p.ID-1]
	if sr.player != p {
		return nil, false
	}
	sr.watch(r, call)
	if sr.lose {
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

// goOn lets the ith of those that stand go on. It needs the mutex, and lets go of
// it.
func (r *run) goOn(i int) {
	p := r.parked[i]
	r.parked = slices.Delete(r.parked, i, i+1)
	r.mu.Unlock()
	r.trace("stream %d: %s", p.id-1, p.call)
	close(p.goOn)
}

// loop is the scheduler.
func (r *run) loop() {
	for r.failed == "" {
		synctest.Wait()
		r.check()
		if r.failed != "" || r.next == len(r.history.Actions) {
			return
		}
		if r.how.standing != nil {
			r.noteStanding()
		}
		if fault := r.how.Fault; fault != nil && fault.Step == r.result.Steps {
			r.strike(fault)
			if r.failed != "" {
				return
			}
		}
		r.result.Steps++
		if r.result.Steps > maxSteps {
			r.fail("stuck: no end after %d steps", r.result.Steps)
			return
		}
		if !r.expecting.IsZero() && time.Since(r.expecting) > r.patience() && time.Since(r.lifted) > r.patience() {
			if r.lift() {
				continue
			}
			r.fail("stuck: %s", r.stuck())
			return
		}
		r.manage()
		r.step()
	}
}

// patience is for how long to wait for what is expected.
func (r *run) patience() time.Duration {
	d := maxTime
	if r.limits() > 0 && !r.result.Lifted {
		d = liftTime
	}
	if !r.done.IsZero() {
		// All is done, and only has to stay so.
		d += time.Minute
	}
	if r.history.OnDDL == binlogdatapb.OnDDLAction_STOP {
		// Each takes an operator to go on.
		for _, action := range r.history.Actions {
			if action.Kind == DDL {
				d += 2 * controllerDelay
			}
		}
	}
	return d
}

func (r *run) noteStanding() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []parked
	for _, p := range r.parked {
		all = append(all, *p)
	}
	*r.how.standing = append(*r.how.standing, all)
}

// step takes one decision.
func (r *run) step() {
	r.mu.Lock()
	slices.SortStableFunc(r.parked, func(a, b *parked) int { return int(a.id) - int(b.id) })
	n := len(r.parked)
	r.mu.Unlock()
	deliverable := r.deliverable()
	acts := r.mayAct()
	choice := r.rng.IntN(100)
	switch {
	case acts && (choice < 8 || r.waited > 0 || n == 0 && len(deliverable) == 0 && choice < 50):
		r.act()
	case len(deliverable) > 0 && (choice < 20 || n == 0 && choice < 90):
		r.deliver(deliverable[r.rng.IntN(len(deliverable))])
	case n > 0 && choice < 97:
		r.mu.Lock()
		r.goOn(r.rng.IntN(n))
	case n > 0:
		// A call takes its time.
		time.Sleep(time.Duration(1+r.rng.IntN(20)) * time.Millisecond)
	default:
		r.idle()
	}
}

// idle lets time pass until somebody has anything to do.
func (r *run) idle() {
	select {
	case <-r.woke:
	default:
	}
	timer := time.NewTimer(time.Duration(1+r.rng.IntN(500)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-r.woke:
	case <-timer.C:
	}
}
