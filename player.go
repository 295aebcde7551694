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

	"vitess.io/vitess/go/sqltypes"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// Player is what merge backoff needs of a vplayer. Unless it says otherwise, a
// method is called from the goroutine that applies events. doc.go lists the
// duties of whoever implements it.
type Player interface {
	Planner

	// Apply applies one event as vplayer.applyEvent does. mustSave has the
	// meaning it has there: save the position even if the transaction is empty.
	Apply(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error
	// InTransaction reports whether a target transaction is open.
	InTransaction() bool
	// StopReached reports whether the position of the last GTID event is at or
	// past the stop position.
	StopReached() bool

	// Mark remembers the player's position. It is called only while no
	// transaction is open.
	Mark()
	// Rollback rolls the open transaction back, if there is one, forgets the
	// statements that were kept for a retry, and returns to the last Mark.
	Rollback() error
	// SetBatching switches between the player's own way of sending statements
	// and one statement at a time, and the connection with it. It is called only
	// while no transaction is open. The player's own way may be without batches.
	SetBatching(on bool) error

	// Drain returns what has arrived in the relay log, without waiting.
	Drain() ([][]*binlogdatapb.VEvent, error)
	// Arrived returns a channel that is closed once the relay log holds anything
	// to drain. release is to be called when the caller no longer waits.
	Arrived() (arrived <-chan struct{}, release func())

	// Claim takes, for the connection that is about to save the positions of these
	// streams, what each of them waits for before it reads its position again: the
	// transaction may outlive this process. ok is false if another connection has
	// it for one of them. release gives all back, and is nil if nothing was taken.
	// Both are called outside any transaction.
	Claim(ids []int32) (release func() error, ok bool, err error)
	// Begin opens a target transaction.
	Begin() error
	// Exec runs one statement in it or, while batching is on, adds it to the
	// transaction's batch and returns no result.
	Exec(ctx context.Context, sql string) (*sqltypes.Result, error)
	// SavePosition writes the position of a GTID event within the open
	// transaction, as vplayer does at a COMMIT of that timestamp, and tells
	// whether the stop position is reached with it.
	SavePosition(ctx context.Context, gtid string, timestamp int64) (stopped bool, err error)
	// Commit commits the open transaction.
	Commit() error
	// Advance takes over events that were committed for this player: it moves
	// its position, its plans and its statistics on.
	Advance(events []*binlogdatapb.VEvent) error

	// Throttled asks the throttler, and reports whether it denies. It may block
	// for a moment when it does.
	Throttled(ctx context.Context) bool
	// KeepAlive is called every second while the stream waits, outside any
	// transaction: it records a heartbeat, keeps the estimate of the lag going,
	// and keeps the relay log from taking the wait for a stall.
	KeepAlive() error
	// SetMessage writes the message column of the stream's row in
	// _vt.vreplication. It is called outside any transaction.
	SetMessage(message string) error
	// Blocked is called once for a block that lasts for more than a few seconds, and
	// Unblocked at the end of each block, however short. Both are called outside any
	// transaction, unless the run is about to end.
	Blocked(Block)
	Unblocked(Block)

	// The following are called by the leader of a joint commit, from its own
	// goroutine, while this player's stream stands still. They touch nothing
	// but the plans.

	// Render returns the statements that make these changes. More than one are
	// all deletes, or all inserts of complete rows, of one table.
	Render(changes []Change) ([]string, error)
	// RowQuery returns a query for all columns of the row that a deletion
	// deletes, in the order of a row image; a column that the plan does not
	// write may have any value.
	RowQuery(deletion Change) (string, error)
	// HolderQuery returns a query for the primary key, in the order of
	// Table.Key, of the row that has the values that the change is about to
	// write into the unique index. It is empty if no such query can be made.
	HolderQuery(change Change, key *UniqueKey) (string, error)
	// PositionUpdate returns the statement that saves the position of a GTID
	// event in the row of this player's stream.
	PositionUpdate(gtid string, timestamp int64) (string, error)
}
