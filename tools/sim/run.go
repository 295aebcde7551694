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
