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
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
)

// This file is a model of the target's MySQL, as far as merge backoff can tell it
// from a real one.

type (
	// Database is the target. Every statement is checked at once, row by row. A
	// transaction locks the rows and the unique values that it touches.
	Database struct {
		// LockWait is how long a statement waits for a lock.
		LockWait time.Duration
		// Waiting, if set, is called, under the mutex, when a statement begins to
		// wait for a lock, and Pause before it goes on.
		Waiting func(tx *Tx)
		Pause   func(id int32)
		// Victim, if set, chooses which of the transactions that wait for each other
		// is rolled back; if not, it is the one that closes the circle.
		Victim func(circle []*Tx) *Tx
		// Refuse, if set, is asked about each statement. Anything but 0 is the error
		// that it fails with: one that MySQL has for reasons which are not modelled.
		Refuse func(tx *Tx, sql string) sqlerror.ErrorCode
		// Watch, if set, is called, under the mutex, with all that the server has done
		// to its tables, in the order of it.
		Watch func(Deed)
		// Committed, if set, is called after each commit that changed anything, with
		// the positions that it saved.
		Committed func(tx *Tx, positions map[int32]string)

		mu     sync.Mutex
		tables map[string]*TableDef
		// rows and entries are what is committed: rows by table and primary key,
		// and for each unique value the primary key of the row that has it.
		rows    map[string]Row
		entries map[string]string
		streams map[int32]StreamRow
		locks   map[string]*lock
		// released is closed whenever a transaction ends.
		released chan struct{}
		// statements has what was rendered, by its text.
		statements map[string]statement
		// wrong is what no right player does, such as an UPDATE that finds no row.
		wrong []string
	}

	// Deed is something that the server has done: it has run a statement in a
	// transaction, with this result or error, or ended the transaction.
	Deed struct {
		Tx *Tx
		// SQL is the statement, commit, or rollback.
		SQL    string
		Result *sqltypes.Result
		Err    error
	}

	// StreamRow is a stream's row in _vt.vreplication.
	StreamRow struct {
		Pos       string
		State     string
		Message   string
		Heartbeat time.Time
	}
)

// NewDatabase returns a target that has these tables, empty.
func NewDatabase(tables ...*TableDef) *Database {
	db := &Database{
		LockWait:   50 * time.Second,
		tables:     make(map[string]*TableDef),
		rows:       make(map[string]Row),
		entries:    make(map[string]string),
		streams:    make(map[int32]StreamRow),
		locks:      make(map[string]*lock),
		released:   make(chan struct{}),
		statements: make(map[string]statement),
	}
	for _, table := range tables {
		db.tables[table.Name] = table
	}
	return db
}

// Rows returns what is committed, by table and primary key.
func (db *Database) Rows() map[string]Row {
	db.mu.Lock()
	defer db.mu.Unlock()
	return maps.Clone(db.rows)
}

// Difference tells how the committed rows differ from those wanted.
func (db *Database) Difference(want map[string]Row) string {
	db.mu.Lock()
	defer db.mu.Unlock()
	return Difference(want, db.rows)
}

// Stream returns a stream's row.
func (db *Database) Stream(id int32) StreamRow {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.streams[id]
}

// SetStream writes a stream's row at once, as an operator does.
func (db *Database) SetStream(id int32, row StreamRow) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.streams[id] = row
}

// Wrong returns what was done that no right player does.
func (db *Database) Wrong() []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.wrong
}

// Blame notes something that is wrong.
func (db *Database) Blame(format string, args ...any) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.wrong = append(db.wrong, fmt.Sprintf(format, args...))
}

// register keeps a statement under its text.
func (db *Database) register(s statement) string {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.statements[s.text] = s
	return s.text
}

// Do runs a statement of a connection by itself.
func (db *Database) Do(id int32, sql string) error {
	tx := db.Begin(id)
	if _, err := db.Exec(tx, sql); err != nil {
		tx.Rollback()
		return err
	}
	tx.Commit()
	return nil
}

// Exec runs a statement in a transaction. One that fails leaves nothing behind
// but locks.
func (db *Database) Exec(tx *Tx, sql string) (*sqltypes.Result, error) {
	if db.Refuse != nil && !tx.ended {
		if number := db.Refuse(tx, sql); number != 0 {
			return nil, tx.refused(number, sql)
		}
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	s, ok := db.statements[sql]
	if !ok {
		return nil, sqlerror.NewSQLErrorf(sqlerror.ERParseError, sqlerror.SSClientError, "cannot parse %s", sql)
	}
	if tx.ended {
		// The server has rolled it back; a client that goes on is wrong.
		db.wrong = append(db.wrong, "a statement in a transaction that was rolled back: "+sql)
		return nil, sqlerror.NewSQLErrorf(sqlerror.ERUnknownError, sqlerror.SSUnknownSQLState, "transaction was rolled back")
	}
	tx.begin()
	result, err := tx.run(s)
	if s.change == nil {
		db.watch(Deed{Tx: tx, SQL: sql, Result: result, Err: err})
	}
	if err != nil {
		tx.undo()
		if sqlErr, ok := err.(*sqlerror.SQLError); ok {
			sqlErr.Query = sql
		}
		return nil, err
	}
	return result, nil
}

// watch tells of what was done. It needs the mutex.
func (db *Database) watch(deed Deed) {
	if db.Watch != nil {
		db.Watch(deed)
	}
}

// refused is a lock error. A deadlock rolls back all of the transaction.
func (tx *Tx) refused(number sqlerror.ErrorCode, sql string) error {
	err := errTimeout()
	if number == sqlerror.ERLockDeadlock {
		tx.Rollback()
		err = errDeadlock()
	}
	err.Query = sql
	return err
}

func errDeadlock() *sqlerror.SQLError {
	return sqlerror.NewSQLErrorf(sqlerror.ERLockDeadlock, sqlerror.SSLockDeadlock, "Deadlock found when trying to get lock; try restarting transaction")
}

func errTimeout() *sqlerror.SQLError {
	return sqlerror.NewSQLErrorf(sqlerror.ERLockWaitTimeout, sqlerror.SSUnknownSQLState, "Lock wait timeout exceeded; try restarting transaction")
}

// PlannedTables are the names of the target's tables.
func (db *Database) PlannedTables() []string {
	return slices.Sorted(maps.Keys(db.tables))
}
