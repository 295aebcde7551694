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
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// steady is a jitter that adds nothing.
func steady() float64 { return 0 }

var start = time.Unix(1_700_000_000, 0)

// situationOf is one with peers, in which the front unit can be folded.
func situationOf(units int) situation {
	return situation{now: start, units: units, havePeers: true, foldable: true}
}

var (
	aDuplicate = conflict{kind: duplicateKey, err: errors.New("duplicate"), entry: "10", key: "t.uk"}
	aDeadlock  = conflict{kind: lockConflict, err: errors.New("deadlock")}
)

// TestLadderHalvesAndDoubles follows a group of which one unit is blocked: as
// large a prefix as applies is committed at once.
func TestLadderHalvesAndDoubles(t *testing.T) {
	// Units 0 to 9; the unit 6 is blocked.
	l := newLadder(situationOf(10), aDuplicate, false, 0, steady)
	at, blocked := 0, 6
	var attempts []int
	for range 20 {
		s := situationOf(10 - at)
		next := l.next(s)
		if next.do == deedCombine {
			break
		}
		assert.Equal(t, deedReplay, next.do)
		attempts = append(attempts, next.units)
		if at+next.units > blocked {
			l.conflicted(aDuplicate, s)
			continue
		}
		at += next.units
		l.progressed(next.units, false, time.Time{})
	}
	assert.Equal(t, 6, at, "all in front of the blocked one are committed")
	assert.Equal(t, []int{5, 5, 2, 1, 2, 1}[:2], attempts[:2], "half of all, then what is left")
	assert.True(t, l.blocked())
	assert.LessOrEqual(t, len(attempts), 8)
}

// TestLadderNext: which rung comes next in each situation.
func TestLadderNext(t *testing.T) {
	tests := []struct {
		name string
		// prepare brings a ladder over 4 units to the decision.
		prepare func(l *ladder)
		s       situation
		limit   time.Duration
		want    deed
		units   int
		why     string
	}{
		{
			name: "the first attempt takes half: all have just failed",
			s:    situationOf(4), want: deedReplay, units: 2,
		},
		{
			name:    "it doubles with success",
			prepare: func(l *ladder) { l.progressed(2, false, time.Time{}) },
			s:       situationOf(20), want: deedReplay, units: 4,
		},
		{
			name:    "but takes no more than there are",
			prepare: func(l *ladder) { l.progressed(2, false, time.Time{}) },
			s:       situationOf(3), want: deedReplay, units: 3,
		},
		{
			name: "what has not arrived whole is left out",
			prepare: func(l *ladder) {
				l.progressed(2, false, time.Time{})
			},
			s:    situation{now: start, units: 3, open: true, havePeers: true, foldable: true},
			want: deedReplay, units: 2,
		},
		{
			name: "and replayed by itself, once it is all there is",
			prepare: func(l *ladder) {
				l.progressed(2, false, time.Time{})
			},
			s:    situation{now: start, units: 1, open: true, havePeers: true, foldable: true},
			want: deedReplay, units: 1,
		},
		{
			name: "all is done",
			s:    situationOf(0), want: deedDone,
		},
		{
			name:    "a unit that fails alone is combined at once",
			prepare: func(l *ladder) { l.conflicted(aDuplicate, situationOf(1)) },
			s:       situationOf(1), want: deedCombine,
		},
		{
			name:    "or replayed, if it cannot be folded",
			prepare: func(l *ladder) { l.conflicted(aDuplicate, situationOf(1)) },
			s:       situation{now: start, units: 3, havePeers: true},
			want:    deedReplay, units: 1,
		},
		{
			name: "then waited for",
			prepare: func(l *ladder) {
				l.conflicted(aDuplicate, situationOf(1))
				l.conflicted(aDuplicate, situationOf(1))
			},
			s: situationOf(1), want: deedWait,
		},
		{
			name: "and tried again after the wait",
			prepare: func(l *ladder) {
				l.conflicted(aDuplicate, situationOf(1))
				l.conflicted(aDuplicate, situationOf(1))
				l.waited()
			},
			s: situationOf(1), want: deedCombine,
		},
		{
			// The other transaction has to end first.
			name:    "a deadlock of several is waited for",
			prepare: func(l *ladder) { l.conflicted(aDeadlock, situationOf(4)) },
			s:       situationOf(4), want: deedWait,
		},
		{
			name:    "a deadlock of one is waited for, but does not make it blocked",
			prepare: func(l *ladder) { l.conflicted(aDeadlock, situationOf(1)) },
			s:       situation{now: start, units: 1, foldable: true},
			want:    deedWait,
		},
		{
			name:    "no peers are left",
			prepare: func(l *ladder) { l.conflicted(aDuplicate, situationOf(1)) },
			s:       situation{now: start, units: 1, foldable: true},
			want:    deedGiveUp, why: "no other stream",
		},
		{
			name:    "the proof of a genuine duplicate",
			prepare: func(l *ladder) { l.conflicted(aDuplicate, situationOf(1)) },
			s:       situation{now: start, units: 1, foldable: true, havePeers: true, genuine: "it is genuine"},
			want:    deedGiveUp, why: "it is genuine",
		},
		{
			name:    "the limit is reached",
			limit:   time.Minute,
			prepare: func(l *ladder) { l.conflicted(aDuplicate, situationOf(1)) },
			s:       situation{now: start.Add(time.Minute), units: 1, foldable: true, havePeers: true},
			want:    deedGiveUp, why: "within 1m0s",
		},
		{
			name:    "it is not",
			limit:   time.Minute,
			prepare: func(l *ladder) { l.conflicted(aDuplicate, situationOf(1)) },
			s:       situation{now: start.Add(time.Minute - 1), units: 1, foldable: true, havePeers: true},
			want:    deedCombine,
		},
		{
			name:  "the limit counts from the last progress",
			limit: time.Minute,
			prepare: func(l *ladder) {
				l.conflicted(aDuplicate, situationOf(1))
				l.progressed(1, false, time.Time{})
				late := situationOf(1)
				late.now = start.Add(50 * time.Second)
				l.conflicted(aDuplicate, late)
			},
			s:    situation{now: start.Add(70 * time.Second), units: 1, foldable: true, havePeers: true},
			want: deedCombine,
		},
		{
			name:  "no limit is for ever",
			limit: 0,
			prepare: func(l *ladder) {
				l.conflicted(aDuplicate, situationOf(1))
			},
			s:    situation{now: start.Add(1000 * time.Hour), units: 1, foldable: true, havePeers: true},
			want: deedCombine,
		},
		{
			// A deadlock proves nothing about the value.
			name: "a deadlock while blocked does not give up",
			prepare: func(l *ladder) {
				l.conflicted(aDuplicate, situationOf(1))
				l.conflicted(aDeadlock, situationOf(1))
			},
			s:    situation{now: start, units: 1, foldable: true},
			want: deedWait,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLadder(situationOf(4), aDuplicate, false, tt.limit, steady)
			if tt.prepare != nil {
				tt.prepare(l)
			}
			next := l.next(tt.s)
			assert.Equal(t, tt.want, next.do)
			assert.Equal(t, tt.units, next.units)
			assert.Contains(t, next.why, tt.why)
			if tt.want == deedWait {
				assert.Positive(t, next.delay)
			}
		})
	}
}

// TestLadderOfOne shows that a group of one is known to be blocked at once.
func TestLadderOfOne(t *testing.T) {
	l := newLadder(situationOf(1), aDuplicate, false, 0, steady)
	assert.True(t, l.blocked())
	assert.Equal(t, deedCombine, l.next(situationOf(1)).do)
}

// TestLadderDelays: waits grow to a bound, and jitter keeps streams from waking
// together.
func TestLadderDelays(t *testing.T) {
	delays := func(c conflict, jitter func() float64) (all []time.Duration) {
		l := newLadder(situationOf(1), c, false, 0, jitter)
		for range 30 {
			l.conflicted(c, situationOf(1))
			step := l.next(situationOf(1))
			assert.Equal(t, deedWait, step.do)
			all = append(all, step.delay)
			l.waited()
		}
		return all
	}
	least := delays(aDuplicate, steady)
	most := delays(aDuplicate, func() float64 { return 0.999999 })
	for i := range least {
		if i > 0 {
			assert.GreaterOrEqual(t, least[i], least[i-1], "delays do not shrink")
		}
		assert.GreaterOrEqual(t, least[i], minDelay/2)
		assert.Less(t, most[i], 2*least[i]+1, "the jitter spreads over the upper half")
		assert.Greater(t, most[i], least[i])
	}
	assert.Equal(t, maxDelay/2, least[29])
	assert.LessOrEqual(t, most[29], maxDelay)
	assert.Less(t, least[0], 50*time.Millisecond, "the first wait is short")

	locks := delays(aDeadlock, func() float64 { return 0.999999 })
	assert.LessOrEqual(t, locks[29], maxLockDelay)
}
