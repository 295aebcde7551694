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
	"math"
	"math/rand/v2"
	"time"

	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

type (
	// Config is what a Backoff has to know of its stream.
	Config struct {
		// ID is the stream's id in _vt.vreplication.
		ID int32
		// Position is the one from which the run begins.
		Position string
		// Tables are the tables of the target database.
		Tables []string
		// Limit is the longest time that one source transaction may be blocked
		// by a duplicate key before the stream ends in its error, as
		// --vreplication-max-time-to-retry-on-error sets it. Zero is no limit.
		Limit time.Duration
		// Retained bounds the row images, in bytes, that the stream keeps of what is
		// not committed; zero is 64 MiB.
		Retained int
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
		// leftover is what a resolution has fetched and not committed itself:
		// vplayer gets it before it fetches anew.
		leftover [][]*binlogdatapb.VEvent

		frequency frequency

		// ended are blocks that are over, and were not told of yet.
		ended []Block

		meter *meter
		// readUntil and readPosition are what the meter comes to once everything
		// that was fetched is applied.
		readUntil    int64
		readPosition *string
		// position is the one of the last GTID event that vplayer was handed.
		position *string
		// applied is the source's time, in its own seconds, of the last transaction
		// that is applied.
		applied int64
		// clockOffset is the least difference seen between this host's clock and
		// the source's, in nanoseconds: a larger one was delayed on its way.
		clockOffset int64

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
	b := &Backoff{
		player:      player,
		hub:         hub,
		config:      config,
		batching:    batching{player: player},
		meter:       hub.meter(config.ID),
		clockOffset: math.MaxInt64,
		frequency:   newFrequency(),
		// Not the hub's generation, whatever it is: the first fetch looks.
		generation: hub.generation.Load() - 1,
	}
	// What an earlier run had read is not what this one has.
	b.meter.set(0, nil)
	b.meter.moves()
	b.meter.often.Store(false)
	b.position, b.readPosition = &b.config.Position, &b.config.Position
	return b
}

// Leftover returns what is to be applied before anything is fetched, or nil.
func (b *Backoff) Leftover() [][]*binlogdatapb.VEvent {
	if b == nil {
		return nil
	}
	items := b.leftover
	b.leftover = nil
	return items
}

// Skip reports whether the next event was committed already, when a conflict was
// resolved, and must not be applied again.
func (b *Backoff) Skip() bool {
	return b != nil && b.merging && b.queue.skips()
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
		b.noteRead(items)
	}
	return nil
}

// noteRead notes how far the stream has read.
func (b *Backoff) noteRead(items [][]*binlogdatapb.VEvent) {
	now := time.Now().UnixNano()
	for _, events := range items {
		for _, event := range events {
			if event.CurrentTime != 0 {
				b.clockOffset = min(b.clockOffset, now-event.CurrentTime)
			}
			b.readUntil = max(b.readUntil, b.sourceTime(event))
			if event.Type == binlogdatapb.VEventType_GTID {
				b.readPosition = &event.Gtid
			}
		}
	}
}

// sourceTime returns the source's time of an event, moved to this host's clock;
// zero for an event that does not say how far the source has got.
func (b *Backoff) sourceTime(event *binlogdatapb.VEvent) int64 {
	if event.Timestamp == 0 || (event.Type == binlogdatapb.VEventType_HEARTBEAT && event.Throttled) {
		return 0
	}
	ns := event.Timestamp * int64(time.Second)
	if b.clockOffset != math.MaxInt64 {
		ns += b.clockOffset
	}
	return ns
}

// detect turns merging on or off as the stream has peers or not.
func (b *Backoff) detect() error {
	if err := b.lookUpPeers(); err != nil {
		return err
	}
	if merging := len(b.peers) > 0; merging != b.merging {
		b.merging = merging
		b.queue = queue{bound: b.config.Retained}
		b.player.Mark()
		// Nothing is known of its conflicts.
		b.batching.shrink()
	}
	return nil
}

// lookUpPeers looks the stream's peers up, if the set of streams has changed.
func (b *Backoff) lookUpPeers() error {
	generation := b.hub.generation.Load()
	if generation == b.generation {
		return nil
	}
	peers, err := b.hub.peers(b.config.ID, b.config.Tables)
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
	units, _ := b.queue.units()
	// An event out of order is not grouped: Apply is to refuse it.
	return b.batching.mayGroup(units) && b.queue.take(event) == nil
}

// Apply applies the next event. It returns when the event is applied, or with
// an error that ends the run: nothing was then committed past the last position
// that was saved. io.EOF has vplayer's meaning: the stop position is reached, or
// the context is done. Unlike the other methods it needs a Backoff.
func (b *Backoff) Apply(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error {
	if event.Type == binlogdatapb.VEventType_GTID {
		b.position = &event.Gtid
	}
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
		if b.oftenInConflict() {
			b.batching.shrink()
		}
	} else if open && !b.player.InTransaction() {
		b.batching.grow()
	}
	if b.player.InTransaction() {
		return nil
	}
	if ns := b.sourceTime(event); ns > 0 {
		b.meter.set(ns, b.position)
	}
	if event.Type == binlogdatapb.VEventType_COMMIT {
		b.applied = event.Timestamp
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
	units, _ := b.queue.units()
	b.frequency.committed(units)
	b.queue.commit(b.queue.next)
	b.player.Mark()
	if committed {
		b.hub.announce()
	}
	b.tellEnded()
	return b.batching.restore()
}

// reread returns the error that has the stream start again from the position
// that it saved last. The controller retries it after its usual delay.
func reread(why string) error {
	return vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "%sthe stream is read again from its saved position: %s", MessagePrefix, why)
}
