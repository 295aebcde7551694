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
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// isClosed reports whether a channel is closed by now.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestHubZeroValue shows that an empty hub answers every question.
func TestHubZeroValue(t *testing.T) {
	var h Hub
	h.announce()
	h.Remove(1)
	h.Reset()
	h.SetState(1, binlogdatapb.VReplicationWorkflowState_Running)
	assert.Empty(t, h.Streams())
	peers, err := h.peers(1, []string{"t"})
	require.NoError(t, err)
	assert.Empty(t, peers)
	counts := h.Counts(1)
	assert.Zero(t, counts.Conflicts)
	assert.Empty(t, counts.Resolutions)
	assert.False(t, counts.Blocked)
	h.nudge(&seat{id: 1})
}

// TestHubWait: a commit that is announced after the ticket was taken ends the
// wait, also one that came before the wait began.
func TestHubWait(t *testing.T) {
	t.Run("an announcement ends the wait", func(t *testing.T) {
		var h Hub
		announced, release := h.wait(h.ticket())
		defer release()
		assert.False(t, isClosed(announced))
		h.announce()
		assert.True(t, isClosed(announced))
	})
	t.Run("one that came after the ticket does as well", func(t *testing.T) {
		var h Hub
		ticket := h.ticket()
		h.announce()
		announced, release := h.wait(ticket)
		defer release()
		assert.True(t, isClosed(announced))
	})
	t.Run("one that came before does not", func(t *testing.T) {
		var h Hub
		h.announce()
		announced, release := h.wait(h.ticket())
		defer release()
		assert.False(t, isClosed(announced))
	})
	t.Run("all that wait are woken", func(t *testing.T) {
		var h Hub
		first, release1 := h.wait(h.ticket())
		second, release2 := h.wait(h.ticket())
		h.announce()
		assert.True(t, isClosed(first))
		assert.True(t, isClosed(second))
		release1()
		release2()
		release2()
		assert.Zero(t, h.waiting.Load(), "released twice counts once")
	})
	t.Run("a change of the streams ends the wait", func(t *testing.T) {
		var h Hub
		for name, change := range map[string]func(){
			"put":    func() { h.Put(Stream{ID: 1}) },
			"state":  func() { h.SetState(1, binlogdatapb.VReplicationWorkflowState_Running) },
			"remove": func() { h.Remove(1) },
			"reset":  func() { h.Reset() },
		} {
			if name == "state" {
				h.Put(Stream{ID: 1, State: binlogdatapb.VReplicationWorkflowState_Stopped})
			}
			announced, release := h.wait(h.ticket())
			generation := h.generation.Load()
			change()
			assert.True(t, isClosed(announced), name)
			assert.NotEqual(t, generation, h.generation.Load(), name)
			release()
		}
	})
	t.Run("a state that is no change does not", func(t *testing.T) {
		var h Hub
		h.Put(Stream{ID: 1, State: binlogdatapb.VReplicationWorkflowState_Running})
		announced, release := h.wait(h.ticket())
		defer release()
		h.SetState(1, binlogdatapb.VReplicationWorkflowState_Running)
		h.SetState(2, binlogdatapb.VReplicationWorkflowState_Running)
		assert.False(t, isClosed(announced))
	})
}

// TestHubLosesNothing lets many streams announce and wait at once: whoever takes
// a ticket before a commit is woken by it, so all end without a timer.
func TestHubLosesNothing(t *testing.T) {
	var h Hub
	const waiters, rounds = 4, 500
	var wg sync.WaitGroup
	// Each round of a waiter is ended by a commit of the other side, which
	// commits as often as it is asked to.
	requests := make(chan struct{}, waiters)
	for range waiters {
		wg.Go(func() {
			for range rounds {
				ticket := h.ticket()
				requests <- struct{}{}
				announced, release := h.wait(ticket)
				select {
				case <-announced:
				case <-time.After(30 * time.Second):
					t.Error("a commit was lost")
				}
				release()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for {
		select {
		case <-requests:
			h.announce()
			continue
		case <-done:
		}
		break
	}
	assert.Zero(t, h.waiting.Load())
}

// TestHubIsConcurrent is for the race detector.
func TestHubIsConcurrent(t *testing.T) {
	var h Hub
	var wg sync.WaitGroup
	for id := range int32(4) {
		wg.Go(func() {
			for range 200 {
				h.Put(running(id, "wf", filterOf("x", "/.*", "")))
				_, err := h.peers(id, []string{"t"})
				assert.NoError(t, err)
				h.SetState(id, binlogdatapb.VReplicationWorkflowState_Stopped)
				h.counters.conflict(id)
				h.counters.resolution(id, ResolvedByWaiting)
				h.counters.setBlocked(id, true)
				h.Counts((id + 1) % 4)
				h.meter(id).ns.Store(1)
				h.readMeters(reading{id: id}, h.Streams(), true)
				h.Remove(id)
			}
		})
	}
	wg.Wait()
	assert.Equal(t, int64(200), h.Counts(2).Conflicts)
	assert.Equal(t, map[Resolution]int64{ResolvedByWaiting: 200}, h.Counts(2).Resolutions)
}
