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
				s.suspect(a.what, start.Add(a.now), a.readings, nil)
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

func TestReadMeters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		h.meter(2).ns.Store(20)
		peer := running(2, "wf", nil)
		assert.Equal(t, read(10, 20), h.readMeters(reading{id: 1, ns: 10}, []Stream{peer}))
		assert.Equal(t, read(10, 20, 0), h.readMeters(reading{id: 1, ns: 10}, []Stream{peer, running(3, "wf", nil)}), "a stream that never ran has read nothing")

		peer.State = binlogdatapb.VReplicationWorkflowState_Stopped
		assert.Equal(t, read(10, 0), h.readMeters(reading{id: 1, ns: 10}, []Stream{peer}), "what a stopped stream has read is no proof")

		silent := running(2, "wf", nil)
		silent.Silent = true
		r := h.readMeters(reading{id: 1, ns: 10}, []Stream{silent})
		assert.False(t, r.past(time.Now(), stuckInOrder), "a stream that says nothing may be behind")
	})
}
