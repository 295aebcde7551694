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

/*
Package mergebackoff lets the streams of a VReplication merge survive duplicate
keys that come only from the streams' order.

# The problem

A merge applies several source shards to one target shard, one stream each, and
nothing orders the streams against each other. A unique value may be handed from
a row on one shard to a row on another. Each shard is right at every instant, and
so is the union of all, but on the target the hand-over can arrive in the wrong
order: MySQL answers 1062, and the workflow ends in Error (issue 14296). It hits
Reshard and MoveTables to fewer shards, and the _reverse workflow after
SwitchTraffic of a split.

# The ladder

A stream that meets a duplicate key rolls back, so that it holds no lock, and
climbs (ladder.go decides, resolution.go does):

 1. Isolate (replay.go, batching.go). What was not committed is replayed in
    smaller target transactions, down to one source transaction each. This
    commits what grouping had put off, and finds the one that is blocked.
 2. Net effect (window.go, net_effect.go). The blocked transaction and those
    behind it are folded per row to what they come to: a value that was taken and
    freed in between never touches the table.
 3. Wait (hub.go). The stream sleeps until a peer commits, which is announced in
    memory, own events arrive, or a timer runs out.
 4. Joint commit (seats.go, combine.go, joint.go, sweep.go). Streams that are blocked stand
    still. One of them commits its own and their transactions, as far as the
    values in conflict require, in one target transaction with all positions.
 5. Genuine (genuine.go, meters.go). Once every stream has read past the moment at
    which the conflict was first seen, and none has a release to offer, there is
    none: the stream ends in the error, which names the value, both rows and the
    streams. The clocks tell when that may be so, and the positions of the sources'
    primaries whether it is: a replica that is streamed from may lag.

The copy phase's own inserts are tried again from a later snapshot (copy.go). While
there are conflicts, no stream is let run far ahead of its peers (drift.go).

# Why it is right

The union of the sources is unique at every instant. When the streams have read up
to one instant, the net effect of all their windows is that state, so it applies;
what conflicts then is a genuine duplicate. A joint attempt starts with the one
blocked transaction and takes in, for each duplicate that MySQL finds, the unit
that releases the value first; so it never goes past such a state.

A row with a given primary key is on the target only if the stream that wrote it
has not applied its removal yet, and no other stream can write that key before. So
an UPDATE or DELETE by primary key always meets its own stream's row, as long as an
insert and a delete fold to nothing, and nothing is ever replaced.

What always holds:

  - Rows and positions are committed together.
  - No change is skipped or overwritten: there is no REPLACE, no IGNORE.
  - While a stream waits it has no transaction open.
  - A stream without peers sends what it sends without this package.
  - Memory is bounded; at the bound a stream takes a slower way, never a wrong one.

# What it refuses

A transaction that cannot be folded is only ever replayed as it is, so a conflict
that waiting cannot resolve ends its stream in Error:

  - one that holds statements instead of rows;
  - one that changes a table with a foreign key, or one that a foreign key refers
    to: with ON DELETE CASCADE, deleting and inserting a parent is not neutral;
  - one that changes a table with a unique key but without a primary key or an
    equivalent: its rows have no identity;
  - one whose rows are found by more than the primary key, as in some Materialize
    workflows.

A window ends in front of a DDL that is executed or stops the stream, a journal
event, and behind the transaction that reaches the stop position. A table without
any unique key, and one whose rows are aggregated, cannot meet a duplicate: their
changes are applied in order.

# Duties of the caller

Whoever wires the package into a vplayer implements [Player], and sees to this:

 1. One [Hub] per engine. Every row of _vt.vreplication is put into it before its
    stream starts, and taken out when it is deleted; a change of state is told.
 2. One [Backoff] per run of a player. Before events are fetched, call HoldBack;
    take what Leftover returns instead of fetching, if it returns anything; pass
    what was fetched to Fetched.
 3. For each event, first ask Skip, and leave the event out if it says so. Before
    a COMMIT is left out because another follows, ask Group. Then call Apply in
    place of vplayer's applyEvent.
 4. Mark and Rollback cover vplayer's position and its unsaved event. Rollback
    also forgets the statements kept for a retry, and what the session's
    foreign_key_checks were set to.
 5. SetBatching switches batching, the commit that belongs to it, the size of a
    batch and the connection's ability to take several statements together, and
    has lock errors returned instead of retried.
 6. Apply, Exec and Commit return MySQL's errors so that their number can be
    recognized.
 7. When a call returns an error the run ends, and the next one begins at the
    saved position. Only io.EOF means that there is nothing to say.
 8. Hub.Sources asks the primary of a source shard for its position. Without it the
    clocks alone prove a genuine duplicate.
 9. Where Hub.Merges says so, nobody reads a stream's position while a connection of
    an earlier run can still change it: that of the stream itself, or one that has
    claimed the stream. A batch that was sent commits, whatever becomes of its client.
 10. Render, RowQuery, HolderQuery and PositionUpdate are called by another stream's
    goroutine, while this one's is standing still.
*/
package mergebackoff
