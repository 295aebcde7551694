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

package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Stats counts what a group of workers has done.
type Stats struct {
	Statements atomic.Int64
	Txns       atomic.Int64
	Handovers  atomic.Int64 // transactions that took or released a hot value
	Retries    atomic.Int64 // transactions whose outcome had to be looked up
	LastError  atomic.Value // the error that led to the last retry
}

// Worker sends a source's transactions, one after the other. It keeps a model
// of its rows, and checks each transaction against it before it is sent.
type Worker struct {
	// Interval is the time from one transaction to the next; 0 is no pause.
	Interval time.Duration
	// Patience bounds the retries of one transaction, such as while traffic is
	// being switched; 0 means a minute.
	Patience time.Duration
	// Refusals is for how long a transaction may meet duplicates (error 1062) of a
	// value that is free; 0 is not at all. See Load.
	Refusals time.Duration

	db     *sql.DB
	source Source
	stats  *Stats
	model  *Model
}

// NewWorker returns a worker that sends through db, a connection to vtgate.
func NewWorker(db *sql.DB, source Source, stats *Stats) *Worker {
	return &Worker{db: db, source: source, stats: stats, model: NewModel()}
}

// Rows returns the rows that must exist. The worker must not be running.
func (w *Worker) Rows() map[int64]Row { return w.model.Rows() }

// Prepare creates the source's initial rows.
func (w *Worker) Prepare(ctx context.Context) error {
	for _, txn := range w.source.Prepare() {
		if err := w.send(ctx, txn); err != nil {
			return err
		}
	}
	return nil
}

// Run sends transactions until stop is closed, and only stops between two of
// them: then every outcome is known. It can be called again.
func (w *Worker) Run(ctx context.Context, stop <-chan struct{}) error {
	next := time.Now()
	for {
		next = next.Add(w.Interval)
		if late := time.Since(next); late > 0 {
			next = next.Add(late)
		}
		if err := pause(ctx, stop, time.Until(next)); err != nil {
			if errors.Is(err, errStopped) {
				return nil
			}
			return err
		}
		if err := w.send(ctx, w.source.Next()); err != nil {
			return err
		}
	}
}

// errStopped says that the worker was told to stop.
var errStopped = errors.New("stopped")

// pause waits; it returns early with an error when the work has to end.
func pause(ctx context.Context, stop <-chan struct{}, d time.Duration) error {
	select {
	case <-stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// send commits one transaction, however often that has to be tried.
func (w *Worker) send(ctx context.Context, txn Txn) error {
	before := make(map[int64]Row, len(txn.Ops))
	for _, op := range txn.Ops {
		if row, exists := w.model.Row(op.ID); exists {
			before[op.ID] = row
		}
	}
	if err := w.model.Apply(txn); err != nil {
		return fmt.Errorf("the history is not valid: %w", err)
	}
	patience := w.Patience
	if patience == 0 {
		patience = time.Minute
	}
	begin := time.Now()
	deadline := begin.Add(patience)
	for {
		err := w.try(ctx, txn)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.stats.Retries.Add(1)
		w.stats.LastError.Store(err.Error())
		done, lookErr := w.outcome(ctx, txn, before, deadline)
		if lookErr != nil {
			return fmt.Errorf("%w, after %w", lookErr, err)
		}
		if done {
			break
		}
		if duplicate := new(mysql.MySQLError); errors.As(err, &duplicate) && duplicate.Number == 1062 {
			if time.Since(begin) < w.Refusals {
				continue
			}
			return fmt.Errorf("the application was refused a value that is free: %w", err)
		}
	}
	w.stats.Txns.Add(1)
	w.stats.Statements.Add(int64(len(statements(txn))))
	if txn.Handover {
		w.stats.Handovers.Add(1)
	}
	return nil
}

// outcome finds out whether a transaction that returned an error took place,
// and waits for as long as that cannot be said.
func (w *Worker) outcome(ctx context.Context, txn Txn, before map[int64]Row, deadline time.Time) (bool, error) {
	for {
		// Let a commit that is still under way end first.
		if err := pause(ctx, nil, 200*time.Millisecond); err != nil {
			return false, err
		}
		now, err := w.read(ctx, txn)
		switch {
		case err == nil && w.matches(txn, now, w.model.rows):
			return true, nil
		case err == nil && w.matches(txn, now, before):
			if time.Now().After(deadline) {
				return false, errors.New("a transaction did not get through in time")
			}
			return false, nil
		case err == nil:
			return false, fmt.Errorf("rows are neither as before nor as after %v: %v", txn, now)
		case time.Now().After(deadline):
			return false, err
		}
	}
}

// matches tells whether the transaction's rows are as a state has them.
func (w *Worker) matches(txn Txn, now, state map[int64]Row) bool {
	for _, op := range txn.Ops {
		have, exists := now[op.ID]
		want, wanted := state[op.ID]
		if exists != wanted || have != want {
			return false
		}
	}
	return true
}

// read returns the transaction's rows as they are now.
func (w *Worker) read(ctx context.Context, txn Txn) (map[int64]Row, error) {
	query := fmt.Sprintf("select id, email, val from %s where id in (%s)", Table, idList(txn.Ops))
	return readRows(ctx, w.db, query)
}

// try sends the transaction once.
func (w *Worker) try(ctx context.Context, txn Txn) error {
	list := statements(txn)
	if len(list) == 1 {
		_, err := w.db.ExecContext(ctx, list[0].query, list[0].args...)
		return err
	}
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, s := range list {
		if _, err := tx.ExecContext(ctx, s.query, s.args...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// idList returns the ids of statements, for an IN.
func idList(ops []Op) string {
	var list strings.Builder
	for i, op := range ops {
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, "%d", op.ID)
	}
	return list.String()
}
