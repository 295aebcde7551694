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

	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

const (
	// keepAliveInterval is how often a stream that waits shows that it lives.
	keepAliveInterval = time.Second
	// messageDelay is how long a stream waits before it says so in its message:
	// most waits are over before anybody could read it.
	messageDelay = 250 * time.Millisecond
)

type (
	// Config is what a Backoff has to know of its stream.
	Config struct {
		// ID is the stream's id in _vt.vreplication.
		ID int32
		// Tables are the tables of the target database.
		Tables []string
		// Limit is the longest time that one source transaction may be blocked
		// by a duplicate key before the stream ends in its error, as
		// --vreplication-max-time-to-retry-on-error sets it. Zero is no limit.
		Limit time.Duration
		// Jitter returns a number in [0, 1) by which waits are spread; nil is a
		// random one.
		Jitter func() float64
	}

	// Backoff stands between vplayer's loop and its applyEvent. While the stream
	// has no peers it passes every event through. While it has, it keeps the
	// events of the open target transaction, and climbs the ladder when they meet
	// a conflict. All methods may be called on a nil Backoff, which is one that
	// is switched off.
	//
	// A Backoff serves one run of one vplayer, from one goroutine.
	Backoff struct {
		player   Player
		hub      *Hub
		config   Config
		queue    queue
		batching batching

		// merging is set while the stream has peers, which may change between
		// two fetches.
		merging    bool
		peers      []Stream
		generation uint64
	}
)

// New returns the backoff of a stream that the hub knows.
func New(player Player, hub *Hub, config Config) *Backoff {
	if config.Jitter == nil {
		config.Jitter = rand.Float64
	}
	return &Backoff{
		player:   player,
		hub:      hub,
		config:   config,
		batching: batching{player: player},
		// Not the hub's generation, whatever it is: the first fetch looks.
		generation: hub.Generation() - 1,
	}
}

// Fetched is to be called with what was fetched from the relay log, before any
// of it is applied. It is where a stream begins or ceases to be in a merge, so
// that the events that it keeps begin with a transaction.
func (b *Backoff) Fetched(items [][]*binlogdatapb.VEvent) error {
	if b == nil {
		return nil
	}
	if !b.player.InTransaction() {
		if err := b.detect(); err != nil {
			return err
		}
	}
	if b.merging {
		b.queue.add(items)
	}
	return nil
}

// detect turns merging on or off as the stream has peers or not.
func (b *Backoff) detect() error {
	if err := b.lookUpPeers(); err != nil {
		return err
	}
	if merging := len(b.peers) > 0; merging != b.merging {
		b.merging = merging
		b.queue = queue{}
		b.player.Mark()
	}
	return nil
}

// lookUpPeers looks the stream's peers up, if the set of streams has changed.
func (b *Backoff) lookUpPeers() error {
	generation := b.hub.Generation()
	if generation == b.generation {
		return nil
	}
	peers, err := b.hub.Peers(b.config.ID, b.config.Tables)
	if err != nil {
		return err
	}
	b.generation = generation
	b.peers = peers
	return nil
}

// Group reports whether a COMMIT that is followed by another may be put off and
// joined with it, and if so notes that it was.
func (b *Backoff) Group(event *binlogdatapb.VEvent) bool {
	if b == nil || !b.merging {
		return true
	}
	// An event out of order is not grouped: Apply is to refuse it.
	return b.batching.mayGroup() && b.queue.take(event) == nil
}

// Apply applies the next event. It returns when the event is applied, or with
// an error that ends the run: nothing was then committed past the last position
// that was saved. io.EOF has vplayer's meaning: the stop position is reached, or
// the context is done. Unlike the other methods it needs a Backoff.
func (b *Backoff) Apply(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error {
	if !b.merging {
		return b.checkAlone(b.player.Apply(ctx, event, mustSave))
	}
	if err := b.queue.take(event); err != nil {
		return err
	}
	open := b.player.InTransaction()
	err := b.player.Apply(ctx, event, mustSave)
	if err != nil {
		c := classify(err)
		if c.kind == noConflict || !conflicts(event) {
			return err
		}
		if err := b.resolve(ctx, c); err != nil {
			return err
		}
	}
	if b.player.InTransaction() {
		return nil
	}
	return b.settle(open)
}

// checkAlone looks at an error of a stream that had no peers when its events
// were fetched. If it has some now, the conflict may be theirs to resolve, and
// the stream has to be read again from its saved position.
func (b *Backoff) checkAlone(err error) error {
	if err == nil || classify(err).kind != duplicateKey {
		return err
	}
	if perr := b.lookUpPeers(); perr != nil || len(b.peers) == 0 {
		return err
	}
	return reread("it met a duplicate key just when " + listPeers(b.peers) + " appeared, which can write the same table")
}

// conflicts reports whether an error at this event can be a conflict of rows.
// A DDL that adds a unique key to rows that violate it is no matter of order.
func conflicts(event *binlogdatapb.VEvent) bool {
	switch event.Type {
	case binlogdatapb.VEventType_ROW, binlogdatapb.VEventType_COMMIT, binlogdatapb.VEventType_FIELD,
		binlogdatapb.VEventType_INSERT, binlogdatapb.VEventType_UPDATE, binlogdatapb.VEventType_DELETE,
		binlogdatapb.VEventType_REPLACE:
		return true
	}
	return false
}

// settle is called when everything that was handed to vplayer is applied and no
// transaction is open: it is committed, or there was nothing to commit.
func (b *Backoff) settle(committed bool) error {
	b.queue.commit(b.queue.next)
	b.player.Mark()
	if committed {
		b.hub.Announce()
	}
	return b.batching.restore()
}

// resolve gets the stream over a conflict: when it returns nil, every event
// that was handed to vplayer is applied again, and those of whole source
// transactions are committed.
func (b *Backoff) resolve(ctx context.Context, cause conflict) error {
	b.hub.counters.conflict(b.config.ID)
	if err := b.player.Rollback(); err != nil {
		return err
	}
	if b.queue.truncated {
		return reread("it met a conflict (" + cause.what() + ") in a transaction that is too large to be kept in memory")
	}
	ends, open := b.queue.units()
	r := resolution{
		Backoff: b,
		ladder:  newLadder(len(ends), open, cause, time.Now(), b.config.Limit, b.config.Jitter),
		ticket:  b.hub.Ticket(),
		alive:   time.NewTicker(keepAliveInterval),
	}
	defer r.alive.Stop()
	defer b.hub.counters.setBlocked(b.config.ID, false)
	return r.run(ctx)
}

// resolution is one climb of the ladder.
type resolution struct {
	*Backoff
	ladder *ladder
	// ticket was taken before the last attempt.
	ticket uint64
	// waited is set once the stream has waited for a peer.
	waited bool
	// message is what the stream's row says now, if the resolution wrote it.
	message string
	// alive ticks as long as the resolution lasts: one that is made of many
	// short waits has to show that it lives as well.
	alive *time.Ticker
}

func (r *resolution) run(ctx context.Context) error {
	for {
		if err := r.lookUpPeers(); err != nil {
			return err
		}
		s := r.ladder.next(time.Now(), len(r.peers) > 0)
		switch s.do {
		case deedReplay:
			if err := r.attempt(ctx, s.units); err != nil {
				return err
			}
		case deedWait:
			if err := r.wait(ctx, s.delay); err != nil {
				return err
			}
			r.ladder.waited()
		case deedDone:
			return r.done()
		case deedGiveUp:
			r.hub.counters.resolution(r.config.ID, GivenUp)
			return vterrors.Wrapf(r.ladder.last.err, "%sgiving up on %s: %s", MessagePrefix, r.ladder.last.what(), s.why)
		}
	}
}

// attempt replays units and tells the ladder what came of it.
func (r *resolution) attempt(ctx context.Context, units int) error {
	for r.player.Throttled(ctx) {
		if ctx.Err() != nil {
			return io.EOF
		}
	}
	r.ticket = r.hub.Ticket()
	err := r.replay(ctx, units)
	if err == nil {
		r.ladder.replayed(units)
		return r.clearMessage()
	}
	c := classify(err)
	if c.kind == noConflict {
		return err
	}
	if err := r.player.Rollback(); err != nil {
		return err
	}
	r.ladder.conflicted(c, time.Now())
	return nil
}

// replay applies the first units in one target transaction. A unit by itself is
// applied statement by statement, so that the conflict comes at its row; several
// are applied in vplayer's own way.
func (r *resolution) replay(ctx context.Context, units int) error {
	ends, _ := r.queue.units()
	end := ends[units-1]
	mode := r.batching.restore
	if units == 1 {
		mode = r.batching.isolate
	}
	if err := mode(); err != nil {
		return err
	}
	lastCommit := r.queue.lastCommit(end)
	for i, event := range r.queue.events[:end] {
		mustSave := false
		switch event.Type {
		case binlogdatapb.VEventType_HEARTBEAT:
			// It belongs to no transaction, and its time has passed.
			continue
		case binlogdatapb.VEventType_COMMIT:
			mustSave = r.player.StopReached()
			if i != lastCommit && !mustSave {
				continue
			}
		}
		if err := r.player.Apply(ctx, event, mustSave); err != nil {
			return err
		}
	}
	if r.player.InTransaction() {
		// This was what has arrived of the last transaction.
		return nil
	}
	r.queue.commit(end)
	r.player.Mark()
	r.hub.Announce()
	return nil
}

func (r *resolution) done() error {
	how := ResolvedByIsolation
	if r.waited {
		how = ResolvedByWaiting
	}
	r.hub.counters.resolution(r.config.ID, how)
	return nil
}

// wait sleeps until a peer has committed since the last attempt, or the delay is
// over. No transaction is open.
func (r *resolution) wait(ctx context.Context, delay time.Duration) error {
	r.waited = true
	r.hub.counters.setBlocked(r.config.ID, r.ladder.blocked())
	announced, release := r.hub.Wait(r.ticket)
	defer release()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for {
		if err := r.say(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return io.EOF
		case <-announced:
			return nil
		case <-timer.C:
			return nil
		case <-r.alive.C:
			if err := r.player.KeepAlive(); err != nil {
				return err
			}
		}
	}
}

// say writes what the stream waits for into its row, once it has waited long
// enough for somebody to wonder.
func (r *resolution) say() error {
	if !r.ladder.blocked() || time.Since(r.ladder.blockedSince) < messageDelay {
		return nil
	}
	message := waitMessage(r.ladder.last, r.ladder.blockedSince, r.peers)
	if message == r.message {
		return nil
	}
	r.message = message
	return r.player.SetMessage(message)
}

func (r *resolution) clearMessage() error {
	if r.message == "" || r.player.InTransaction() {
		return nil
	}
	r.message = ""
	return r.player.SetMessage("")
}

// reread returns the error that has the stream start again from the position
// that it saved last. The controller retries it after its usual delay.
func reread(why string) error {
	return vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "%sthe stream is read again from its saved position: %s", MessagePrefix, why)
}
