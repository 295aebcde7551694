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
	"context"
	"errors"
	"io"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// copying returns a hub with a stream that copies, 1, and a peer of it, 2.
func copying(peer Stream) (*Hub, Config) {
	h := new(Hub)
	h.Put(running(1, "wf", filterOf("-80", "t", "")))
	h.Put(peer)
	return h, Config{ID: 1, Tables: []string{"t"}}
}

var errCopyDuplicate = duplicateError("10", "t.uid_uk")

// TestCopyRetryWaitsForAPeer shows that a copy is tried again, with a growing
// delay and a message, as long as a peer may release the value: this one is
// stopped, so nothing is ever proven.
func TestCopyRetryWaitsForAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := running(2, "wf", filterOf("80-", "t", ""))
		peer.State = binlogdatapb.VReplicationWorkflowState_Stopped
		h, config := copying(peer)
		var cr CopyRetry
		var waits []time.Duration
		for range 12 {
			begun := time.Now()
			message := ""
			require.NoError(t, cr.Wait(t.Context(), h, config, errCopyDuplicate, func(m string) error { message = m; return nil }))
			waits = append(waits, time.Since(begun))
			assert.Contains(t, message, "the value '10' of key t.uid_uk")
			assert.Contains(t, message, "once it is started again, stream 2")
		}
		assert.Less(t, waits[0], minCopyDelay)
		assert.Greater(t, waits[11], maxCopyDelay/3)
		assert.LessOrEqual(t, waits[11], maxCopyDelay)
	})
}

// TestCopyRetryGetsOn shows that the delay does not grow over a copy that gets on, and
// meets one duplicate after the other: it would take hours with many.
func TestCopyRetryGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := running(2, "wf", filterOf("80-", "t", ""))
		peer.State = binlogdatapb.VReplicationWorkflowState_Stopped
		h, config := copying(peer)
		var cr CopyRetry
		quiet := func(string) error { return nil }
		begun := time.Now()
		for i := range 20 {
			require.NoError(t, cr.Wait(t.Context(), h, config, duplicateError(strconv.Itoa(i), "t.uid_uk"), quiet))
		}
		assert.LessOrEqual(t, time.Since(begun), 20*minCopyDelay)
	})
}

// TestCopyRetryCareful shows that the attempt after one that met a duplicate is careful,
// and the one after that only if there was another.
func TestCopyRetryCareful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, config := copying(running(2, "wf", filterOf("80-", "t", "")))
		quiet := func(string) error { return nil }
		var cr CopyRetry
		assert.False(t, cr.Careful(), "the first attempt")
		require.NoError(t, cr.Wait(t.Context(), h, config, errCopyDuplicate, quiet))
		assert.True(t, cr.Careful())
		require.NoError(t, cr.Wait(t.Context(), h, config, errCopyDuplicate, quiet))
		assert.True(t, cr.Careful())
		assert.False(t, cr.Careful(), "after an attempt that met none")
	})
}

// TestCopyRetryGenuine shows that the same duplicate is final once the peer has
// read past it and a snapshot was taken after that; another one begins anew.
func TestCopyRetryGenuine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		h, config := copying(running(2, "wf", filterOf("80-", "t", "")))
		var cr CopyRetry
		// The peer has nothing to apply, and is always at the present.
		quiet := func(string) error {
			h.meter(2).ns.Store(time.Now().UnixNano())
			return nil
		}
		begun := time.Now()
		err := errCopyDuplicate
		for range 3 {
			require.NoError(t, cr.Wait(ctx, h, config, err, quiet))
		}
		require.NoError(t, cr.Wait(ctx, h, config, duplicateError("11", "t.uid_uk"), quiet))
		for cr.Wait(ctx, h, config, err, quiet) == nil {
			require.Less(t, time.Since(begun), time.Minute)
		}
		got := cr.Wait(ctx, h, config, err, quiet)
		assert.ErrorContains(t, got, "genuine duplicate")
		assert.Equal(t, duplicateKey, classify(got).kind)
		assert.Greater(t, time.Since(begun), grace)
	})
}

// TestCopyRetryVerdict shows that what a player between two copies has proven is
// final, and that a value which looks like a verdict is none.
func TestCopyRetryVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, config := copying(running(2, "wf", filterOf("80-", "t", "")))
		quiet := func(string) error { return nil }
		verdict := vterrors.Wrap(giveUp(classify(errCopyDuplicate), givingUp+"the value '10' of key t.uid_uk: "+genuine), "error applying event")
		begun := time.Now()
		assert.Equal(t, verdict, new(CopyRetry).Wait(t.Context(), h, config, verdict, quiet))
		assert.Zero(t, time.Since(begun))
		require.NoError(t, new(CopyRetry).Wait(t.Context(), h, config, duplicateError(givingUp, "t.uid_uk"), quiet))
	})
}

// TestCopyRetryReturns shows what ends an attempt at once.
func TestCopyRetryReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, config := copying(running(2, "wf", filterOf("80-", "t", "")))
		quiet := func(string) error { return nil }
		other := errors.New("connection lost")
		assert.Equal(t, other, new(CopyRetry).Wait(t.Context(), h, config, other, quiet), "no duplicate key")

		alone := config
		alone.Tables = []string{"u"}
		assert.Equal(t, errCopyDuplicate, new(CopyRetry).Wait(t.Context(), h, alone, errCopyDuplicate, quiet), "no peer")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, io.EOF, new(CopyRetry).Wait(ctx, h, config, errCopyDuplicate, quiet), "stopped")

		limited := config
		limited.Limit = time.Second
		var cr CopyRetry
		begun := time.Now()
		for cr.Wait(t.Context(), h, limited, errCopyDuplicate, quiet) == nil {
			require.Less(t, time.Since(begun), 10*time.Second)
		}
		assert.GreaterOrEqual(t, time.Since(begun), limited.Limit)
	})
}
