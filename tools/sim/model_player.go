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

// A copy: see doc.go.

package sim

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is a model of vplayer: what it does with events, as far as that
// matters to merge backoff.

type (
	// Player is one run of a player of the model.
	Player struct {
		DB  *Database
		ID  int32
		Hub *mergebackoff.Hub
		// Backoff is nil for a player that has merge backoff switched off.
		Backoff *mergebackoff.Backoff
		Relay   Relay
		// Batches sends a transaction's statements together, up to MaxBatch bytes.
		Batches  bool
		MaxBatch int
		// StopPos ends the stream.
		StopPos string
		// OnDDL is what a DDL does to the stream, and Execute, if set, is called with
		// the position of one that is executed.
		OnDDL   binlogdatapb.OnDDLAction
		Execute func(pos string)
		// Blind has it not find out who holds a value, and Opaque not know which
		// columns a unique key covers, as for an index on an expression.
		Blind, Opaque bool
		// Throttle, if set, is asked for the throttler's answer.
		Throttle func() bool
		// Enter, if set, is called first in every call. An error is that of a
		// connection that broke. If done is set it broke behind the statement.
		Enter func(call string) (err error, done bool)

		// Calls are the names of the calls, if they are to be recorded.
		Record bool
		Calls  []string
		// Blocks are the blocks that were reported, and those that ended.
		Blocks []mergebackoff.Block
		// Heartbeats counts the heartbeats that were written.
		Heartbeats atomic.Int64
		// Fetching is set while the player waits for events as vplayer does.
		Fetching atomic.Bool

		tx         *Tx
		inTx       bool
		batching   bool
		isolated   bool
		queued     []string
		queuedSize int
		sent       []string
		lost       bool
		instant    time.Time
		calls      int
		plans      map[string]*mergebackoff.Table

		pos, markedPos         string
		unsaved, markedUnsaved *binlogdatapb.VEvent
		timeLastSaved          time.Time
		// stopped is set once the stream's row says so, by the player itself.
		stopped, markedStopped bool
		// claims are the streams that this one's connection has claimed.
		claims []int32
	}

	// Relay is the relay log of one run.
	Relay struct {
		mu    sync.Mutex
		items [][]*binlogdatapb.VEvent
		has   chan struct{}
	}
)

const idleTimeout = time.Second

// Run is vplayer's applyEvents, with the hooks of merge backoff.
func (p *Player) Run(ctx context.Context) error {
	p.pos = p.DB.Stream(p.ID).Pos
	p.plans = make(map[string]*mergebackoff.Table)
	p.timeLastSaved = time.Now()
	p.batching = p.Batches
	defer func() {
		if p.tx != nil {
			p.tx.Rollback()
		}
		p.inTx = false
	}()
	if p.stopReached() {
		if err := p.stop(ctx); err != nil {
			return err
		}
		return io.EOF
	}
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.Fetching.Store(true)
		if p.Throttled(ctx) {
			continue
		}
		p.Fetching.Store(false)
		items, err := p.fetch(ctx)
		if err != nil {
			return err
		}
		if time.Since(p.timeLastSaved) >= idleTimeout && p.unsaved != nil {
			if _, err := p.updatePos(ctx); err != nil {
				return err
			}
		}
		for i, events := range items {
			for j, event := range events {
				if p.Backoff.Skip() {
					continue
				}
				mustSave := false
				if event.Type == binlogdatapb.VEventType_COMMIT {
					if p.stopReached() {
						mustSave = true
					} else if hasAnotherCommit(items, i, j+1) && p.Backoff.Group(event) {
						continue
					}
				}
				apply := p.Apply
				if p.Backoff != nil {
					apply = p.Backoff.Apply
				}
				if err := apply(ctx, event, mustSave); err != nil {
					if err != io.EOF {
						err = vterrors.Wrapf(err, "error applying event")
					}
					return err
				}
			}
		}
	}
}

func (p *Player) fetch(ctx context.Context) ([][]*binlogdatapb.VEvent, error) {
	if err := p.Backoff.HoldBack(ctx); err != nil {
		return nil, err
	}
	if items := p.Backoff.Leftover(); items != nil {
		return items, nil
	}
	p.Fetching.Store(true)
	timer := time.NewTimer(idleTimeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, io.EOF
	case <-p.Relay.arrived():
	case <-timer.C:
	}
	if ctx.Err() != nil {
		return nil, io.EOF
	}
	if err := p.enter("Fetch"); err != nil {
		return nil, err
	}
	p.Fetching.Store(false)
	items := p.Relay.drain()
	return items, p.Backoff.Fetched(items)
}

func hasAnotherCommit(items [][]*binlogdatapb.VEvent, i, j int) bool {
	for ; i < len(items); i, j = i+1, 0 {
		for ; j < len(items[i]); j++ {
			switch items[i][j].Type {
			case binlogdatapb.VEventType_COMMIT:
				return true
			case binlogdatapb.VEventType_DDL, binlogdatapb.VEventType_OTHER, binlogdatapb.VEventType_JOURNAL:
				return false
			}
		}
	}
	return false
}

var errLost = sqlerror.NewSQLErrorf(sqlerror.CRServerLost, sqlerror.SSUnknownSQLState, "Lost connection to MySQL server during query")

// enter begins a call.
func (p *Player) enter(call string) error {
	_, err := p.enterOr(call)
	return err
}

func (p *Player) enterOr(call string) (done bool, err error) {
	if p.Record {
		p.Calls = append(p.Calls, call)
	}
	if p.Enter != nil {
		if err, done = p.Enter(call); err != nil {
			if !done {
				p.Lose()
			}
			return done, err
		}
	}
	// A player that does not come to an end at one instant never will.
	if now := time.Now(); now != p.instant {
		p.instant, p.calls = now, 0
	}
	if p.calls++; p.calls > maxCallsAtOnce {
		p.DB.Blame("stream %d makes calls without an end: %s", p.ID, call)
		p.Lose()
	}
	if p.lost {
		return false, errLost
	}
	return false, nil
}

const maxCallsAtOnce = 100_000

// Lose breaks the connection: the server rolls the transaction back.
func (p *Player) Lose() {
	p.lost = true
	if p.tx != nil {
		p.tx.Rollback()
	}
}

// Idle reports whether the player holds no lock, or waits for one.
func (p *Player) Idle() bool {
	return p.tx == nil || p.tx.Waits()
}

// outside blames a call that must not be made within a transaction.
func (p *Player) outside(call string) {
	if p.inTx {
		p.DB.Blame("stream %d calls %s within a transaction", p.ID, call)
	}
}
