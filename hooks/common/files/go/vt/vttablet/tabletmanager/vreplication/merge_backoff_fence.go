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

package vreplication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"vitess.io/vitess/go/constants/sidecar"
	"vitess.io/vitess/go/mysql/sqlerror"
)

// A vttablet that is killed, or loses a connection, may leave a transaction on the
// server that commits nevertheless: a batch is sent as a whole. A stream that has
// read its position before that would apply again what the transaction wrote, and
// save positions that are behind the rows. The larger the transaction, the likelier;
// and those of a joint commit are the largest. So whoever applies the stream of a
// merge holds a lock by name on its connection, which the server frees only once it
// has ended the connection.

// mergeFencePatience is how long a stream waits for a connection that an earlier
// vttablet has left, before it ends that.
var mergeFencePatience = 10 * time.Second

// mergeLock names the lock of a stream, mergeJointLock that of a stream which is part
// of a joint commit on another's connection. Names are the server's: tablets that
// share one do not share a sidecar database.
func mergeLock(id int32) string {
	return "vreplication:" + sidecar.GetName() + ":" + strconv.Itoa(int(id))
}

func mergeJointLock(id int32) string { return mergeLock(id) + ":joint" }

// fenceMerge is called before the position of a stream is read. It returns once no
// other connection can still change that. A stream without peers needs no more than
// it needs on stock.
func (vr *vreplicator) fenceMerge(ctx context.Context) error {
	if !vr.merges(slices.Sorted(maps.Keys(vr.colInfoMap))...) {
		return nil
	}
	if err := vr.takeMergeLock(ctx, mergeLock(vr.id)); err != nil {
		return err
	}
	// That was the connection of the stream itself. The other one is of a peer, which
	// has committed this stream's transactions with its own.
	joint := mergeJointLock(vr.id)
	if err := vr.takeMergeLock(ctx, joint); err != nil {
		return err
	}
	_, err := vr.dbClient.Execute("select release_lock(" + encodeString(joint) + ")")
	return err
}

// claimMergeStreams takes the locks of streams whose positions are about to be saved
// on this connection. No other has them, but one that was left behind, and for a
// moment a stream that starts.
func claimMergeStreams(dbClient *vdbClient, ids []int32) (release func() error, ok bool, err error) {
	locks := func(function, more string) string {
		var calls []string
		for _, id := range ids {
			calls = append(calls, function+"("+encodeString(mergeJointLock(id))+more+")")
		}
		return strings.Join(calls, ", ")
	}
	qr, err := dbClient.Execute("select " + locks("get_lock", ", 0"))
	if err != nil {
		return nil, false, err
	}
	ok = len(qr.Rows) == 1
	for _, row := range qr.Rows {
		for _, taken := range row {
			ok = ok && taken.ToString() == "1"
		}
	}
	release = func() error {
		// Those that were not taken stay as they are.
		_, err := dbClient.Execute("select " + locks("release_lock", ""))
		return err
	}
	if !ok {
		return nil, false, release()
	}
	return release, true, nil
}

// takeMergeLock takes a lock for the stream's connection. Another connection that
// does not let it go is ended.
func (vr *vreplicator) takeMergeLock(ctx context.Context, name string) error {
	begin := time.Now()
	for {
		// A second at a time, so that a stop is obeyed: the caller looks at the context.
		qr, err := vr.dbClient.Execute(fmt.Sprintf("select get_lock(%s, 1)", encodeString(name)))
		if err != nil || ctx.Err() != nil || len(qr.Rows) == 1 && qr.Rows[0][0].ToString() == "1" {
			return err
		}
		if time.Since(begin) < mergeFencePatience {
			continue
		}
		if err := vr.endMergeLockHolder(name); err != nil {
			return err
		}
		begin = time.Now()
	}
}

// endMergeLockHolder ends the connection that has a lock.
func (vr *vreplicator) endMergeLockHolder(name string) error {
	qr, err := vr.dbClient.Execute(fmt.Sprintf("select is_used_lock(%s)", encodeString(name)))
	if err != nil {
		return err
	}
	if len(qr.Rows) != 1 || qr.Rows[0][0].IsNull() {
		return nil
	}
	holder := qr.Rows[0][0].ToString()
	mergeLogWarn("merge backoff: ending a connection that an earlier vttablet has left",
		slog.String("workflow", vr.WorkflowName), slog.Int("stream", int(vr.id)), slog.String("connection", holder))
	// It may have ended by itself.
	_, err = vr.dbClient.Execute("kill " + holder)
	if sqlErr := new(sqlerror.SQLError); errors.As(err, &sqlErr) && sqlErr.Number() == sqlerror.ERNoSuchThread {
		return nil
	}
	return err
}
