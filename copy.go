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
	"math/rand/v2"
	"time"
)

// CopyRetry decides what becomes of a stream whose copy phase met a duplicate
// key: a row of its snapshot wants a value that a peer's row has, because the two
// are as their sources were at different times. It can only be copied again, from
// a later snapshot, once the peers have moved on.
//
// The zero value is ready for use. It is kept for as long as the stream copies.
type CopyRetry struct {
	tries int
	// met is set from a duplicate key until the next attempt begins.
	met       bool
	suspicion suspicion
	// readings are the peers' meters, and the time, just before the attempt that
	// is under way. The position is that of its snapshot.
	readings readings
}

const (
	minCopyDelay = 100 * time.Millisecond
	maxCopyDelay = 10 * time.Second
)

// Wait returns nil when the copy is to be tried again after an error. It then has
// waited, with a delay that grows from try to try. Otherwise it returns the error
// that ends the attempt: the one it was given if that is no duplicate key, or no
// peer could be its reason; io.EOF if the context is done; or, once it is proven,
// that the duplicate is genuine. message is called with what the stream waits
// for. Where a player between two copies has given up, its proof holds: it applies
// what the stream has copied already, and would meet the same transaction again.
func (cr *CopyRetry) Wait(ctx context.Context, hub *Hub, config Config, err error, message func(string) error) error {
	c := classify(err)
	if c.kind != duplicateKey || isVerdict(err) {
		return err
	}
	peers, perr := hub.peers(config.ID, config.Tables)
	if perr != nil || len(peers) == 0 {
		return err
	}
	now := time.Now()
	cr.met = true
	what := c.key + " " + c.entry
	if cr.suspicion.what != what {
		hub.counters.conflict(config.ID)
		// The copy gets on: it is another row that has to wait.
		cr.tries = 0
	}
	cr.suspicion.suspect(what, now, cr.readings, hub.Sources, true)
	cr.suspicion.ask(ctx, hub.Sources, hub.withPeers(config.ID, peers))
	since := cr.suspicion.since
	switch {
	case cr.suspicion.verdict != "":
		hub.counters.resolution(config.ID, GivenUp)
		hub.counters.genuine(config.ID)
		return giveUp(c, givingUp+c.what()+" in the copy phase: "+cr.suspicion.verdict)
	case config.Limit > 0 && now.Sub(since) >= config.Limit:
		hub.counters.resolution(config.ID, GivenUp)
		return giveUp(c, givingUp+c.what()+" in the copy phase: it was not released within "+config.Limit.String())
	}
	if err := message(waitMessage(c, since, peers, "")); err != nil {
		return err
	}
	delay := min(minCopyDelay<<min(cr.tries, 16), maxCopyDelay)
	cr.tries++
	timer := time.NewTimer(delay/2 + rand.N(delay/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return io.EOF
	case <-timer.C:
	}
	// The next snapshot is taken from now on.
	cr.readings = hub.readMeters(reading{id: config.ID, ns: time.Now().UnixNano()}, peers, false)
	return nil
}

// Careful is to be called when an attempt begins. It reports whether this one comes
// after a duplicate key: it should then commit few rows at a time, and end soon. Of the
// rows that are written together none is copied if one has to wait; in a part of the
// table whose values are handed over all the time, there may always be one.
func (cr *CopyRetry) Careful() bool {
	met := cr.met
	cr.met = false
	return met
}

// Snapshot is to be called with the position of each snapshot that rows are
// copied from, before the first of them is.
func (cr *CopyRetry) Snapshot(position string) {
	if len(cr.readings) > 0 {
		cr.readings[0].position = position
	}
}
