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
	"io"
	"time"
)

const (
	// maxDrift bounds how far a stream may be ahead of a peer in source time,
	// while there are conflicts: the further apart the streams are, the more
	// transactions it takes to bring two of them to one state.
	maxDrift = 10 * time.Second
	// driftMemory is how long a conflict is remembered for that.
	driftMemory = 30 * time.Second
	// maxHold bounds one hold, whatever the peer is busy with. It does not end at the
	// instant of a sign of life: a simulated run would not be the same every time.
	maxHold = 30*time.Second + keepAliveInterval/2
)

// HoldBack waits while the stream is too far ahead of a peer that it conflicts
// with. It is to be called before events are fetched. io.EOF tells that the
// context is done.
func (b *Backoff) HoldBack(ctx context.Context) error {
	if b == nil || !b.merging || b.player.InTransaction() {
		return nil
	}
	until := time.Now().Add(maxHold)
	var alive *time.Ticker
	for {
		// Before the look at the meters: what is announced from here on ends the
		// wait.
		ticket := b.hub.ticket()
		if !b.ahead(time.Now()) {
			return nil
		}
		if alive == nil {
			alive = time.NewTicker(keepAliveInterval)
			defer alive.Stop()
		}
		if held, err := b.hold(ctx, ticket, until, alive); !held || err != nil {
			return err
		}
	}
}

// hold waits for a commit of any stream.
func (b *Backoff) hold(ctx context.Context, ticket uint64, until time.Time, alive *time.Ticker) (held bool, err error) {
	announced, release := b.hub.wait(ticket)
	defer release()
	select {
	case <-ctx.Done():
		return false, io.EOF
	case <-announced:
		return true, nil
	case now := <-alive.C:
		return now.Before(until), b.player.KeepAlive()
	}
}

// ahead reports whether a peer that can move is too far behind, and one of the
// two has met a conflict lately. A stream never waits for what a peer has yet to
// read that is ahead of it by more than the clocks differ, so holding that peer
// back keeps nobody waiting.
func (b *Backoff) ahead(now time.Time) bool {
	recent := now.Add(-driftMemory).UnixNano()
	own := b.meter.read()
	for _, peer := range b.peers {
		if !peer.canMove() || peer.Silent {
			continue
		}
		m := b.hub.meter(peer.ID)
		behind := m.read()
		if behind != 0 && own-behind > int64(maxDrift) &&
			max(m.conflict.Load(), b.meter.conflict.Load()) > recent {
			return true
		}
	}
	return false
}
