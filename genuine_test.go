//go:build go1.25

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
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// read returns readings of streams 1, 2 and so on.
func read(ns ...int64) readings {
	var all readings
	for i, n := range ns {
		all = append(all, reading{id: int32(i + 1), ns: n})
	}
	return all
}

// TestSuspicion: a duplicate is proven genuine by the same conflict twice with
// every stream read past the first sight of it, and by nothing less.
func TestSuspicion(t *testing.T) {
	at := func(d time.Duration) int64 { return start.Add(d).UnixNano() }
	past := grace + time.Nanosecond
	type attempt struct {
		what     string
		now      time.Duration
		readings readings
	}
	tests := []struct {
		name     string
		attempts []attempt
		proven   bool
	}{
		{
			name:     "the first sight proves nothing, however far all have read",
			attempts: []attempt{{"10", 0, read(math.MaxInt64, math.MaxInt64)}},
		},
		{
			name: "all have read past it",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0))},
				{"10", 6 * time.Second, read(at(past), at(past))},
			},
			proven: true,
		},
		{
			name: "it stays proven",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0))},
				{"10", 6 * time.Second, read(at(past), at(past))},
				{"10", 7 * time.Second, read(at(past), 0)},
			},
			proven: true,
		},
		{
			name: "within the grace it is not",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0))},
				{"10", time.Hour, read(at(past), at(grace))},
			},
		},
		{
			name: "this stream has not read far enough",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0))},
				{"10", time.Hour, read(at(grace), at(past))},
			},
		},
		{
			name: "a peer is not known to have read anything",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0), 0)},
				{"10", time.Hour, read(at(past), at(past), 0)},
			},
		},
		{
			name: "no peers prove nothing",
			attempts: []attempt{
				{"10", 0, read(at(0))},
				{"10", time.Hour, read(at(past))},
			},
		},
		{
			name: "another conflict starts anew",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0))},
				{"20", 5 * time.Second, read(at(past), at(past))},
				{"20", 6 * time.Second, read(at(past), at(past))},
			},
		},
		{
			name: "and so does the first when it comes back",
			attempts: []attempt{
				{"10", 0, read(at(0), at(0))},
				{"20", 5 * time.Second, read(at(past), at(past))},
				{"10", 6 * time.Second, read(at(past), at(past))},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s suspicion
			for _, a := range tt.attempts {
				s.suspect(a.what, start.Add(a.now), a.readings, nil, true)
			}
			if tt.proven {
				assert.Contains(t, s.verdict, "genuine duplicate")
				assert.Contains(t, s.verdict, start.UTC().Format(time.RFC3339))
			} else {
				assert.Empty(t, s.verdict)
			}
		})
	}
}

// TestReadMeters: what the meters of a stream's peers are worth as proof: a
// stopped peer's nothing, a silent one's little.
func TestReadMeters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		own := reading{id: 1, ns: 10}
		h.meter(2).ns.Store(20)
		peer := running(2, "wf", nil)
		assert.Equal(t, read(10, 20), h.readMeters(own, []Stream{peer}, true))
		assert.Equal(t, read(10, 20, 0), h.readMeters(own, []Stream{peer, running(3, "wf", nil)}, true), "a stream that never ran has read nothing")

		h.meter(2).hold(30, "")
		assert.Equal(t, read(10, 30), h.readMeters(own, []Stream{peer}, true), "what a peer holds can be taken in")
		assert.Equal(t, read(10, 20), h.readMeters(own, []Stream{peer}, false), "unless the attempt is a replay")

		h.meter(2).block(stuck, false)
		assert.Equal(t, readings{own, {id: 2, ns: 20, stuck: stuck}}, h.readMeters(own, []Stream{peer}, false), "a peer that is stuck will not apply it by itself")
		assert.Equal(t, read(10, 30), h.readMeters(own, []Stream{peer}, true))
		h.meter(2).block(stuck, true)
		assert.Equal(t, readings{own, {id: 2, ns: 30, stuck: stuck}}, h.readMeters(own, []Stream{peer}, true), "nor can it be taken in if it is barred")
		h.meter(2).moves()
		h.meter(2).set(25, nil)
		assert.Equal(t, read(10, 25), h.readMeters(own, []Stream{peer}, true), "once it goes on, what is applied counts")

		peer.State = binlogdatapb.VReplicationWorkflowState_Stopped
		assert.Equal(t, read(10, 0), h.readMeters(own, []Stream{peer}, true), "what a stopped stream has read is no proof")

		silent := running(2, "wf", nil)
		silent.Silent = true
		r := h.readMeters(own, []Stream{silent}, true)
		assert.False(t, r.past(time.Now(), stuck), "a stream that says nothing may be behind")
	})
}

// TestLevels: a stream is stuck once all others have read past its conflict, but
// those that are blocked; and a conflict is proven once those are stuck as well.
func TestLevels(t *testing.T) {
	now := start.Add(time.Minute)
	var s suspicion
	others := func(level int32) readings {
		return readings{{id: 1, ns: math.MaxInt64}, {id: 2, stuck: level}, {id: 3, ns: now.UnixNano()}}
	}
	s.suspect("10", start, others(0), nil, true)
	assert.Equal(t, blocked, s.level)
	s.suspect("10", now, others(0), nil, true)
	assert.Equal(t, blocked, s.level, "stream 2 may move")
	s.suspect("10", now, others(blocked), nil, true)
	assert.Equal(t, stuck, s.level)
	assert.Empty(t, s.verdict)
	s.suspect("10", now, others(stuck), nil, false)
	assert.Empty(t, s.verdict, "the attempt has found out nothing")
	s.suspect("10", now, others(stuck), nil, true)
	assert.NotEmpty(t, s.verdict)
	assert.Equal(t, []int32{2}, s.barred)
}

// TestStandingUp: once a stream no longer stands still, what it has read and not
// applied is no proof for others.
func TestStandingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		h.Put(running(1, "wf", nil))
		b := New(nil, &h, Config{ID: 1})
		r := &resolution{Backoff: b, seat: &seat{id: 1}}
		h.seats.sit(r.seat)
		b.meter.hold(time.Now().UnixNano(), "")
		r.standUp()
		assert.Zero(t, b.meter.read())
	})
}

// TestLeavingDuringAnAttempt: what a peer held before an attempt proves nothing if
// the peer has left meanwhile.
func TestLeavingDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		h.Put(running(1, "wf", nil))
		b := New(nil, &h, Config{ID: 1})
		b.peers = []Stream{running(2, "wf", nil)}
		r := &resolution{Backoff: b}
		own := reading{id: 1, ns: math.MaxInt64}
		r.suspect("10", r.readMeters(own, true), true, false)
		time.Sleep(2 * grace)
		h.meter(2).hold(time.Now().UnixNano(), "")
		before := r.readMeters(own, true)
		h.meter(2).hand.Store(nil)
		r.suspect("10", before, true, false)
		assert.Empty(t, r.suspicion.verdict)
		h.meter(2).hold(time.Now().UnixNano(), "")
		r.suspect("10", r.readMeters(own, true), true, false)
		assert.NotEmpty(t, r.suspicion.verdict)
	})
}

// TestReadingDuringAnAttempt: what a peer has read since an attempt began proves
// nothing of the attempt: the release may be in it.
func TestReadingDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		h.Put(running(1, "wf", nil))
		b := New(nil, &h, Config{ID: 1})
		b.peers = []Stream{running(2, "wf", nil)}
		r := &resolution{Backoff: b}
		own := reading{id: 1, ns: math.MaxInt64}
		r.suspect("10", r.readMeters(own, true), true, false)
		time.Sleep(2 * grace)
		before := r.readMeters(own, true)
		h.meter(2).hold(time.Now().UnixNano(), "")
		r.suspect("10", before, true, false)
		assert.Empty(t, r.suspicion.verdict)
		r.suspect("10", r.readMeters(own, true), true, false)
		assert.NotEmpty(t, r.suspicion.verdict)
	})
}
