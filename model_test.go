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

package mergebackoff_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
)

// This file is a model of the target's MySQL, as far as merge backoff can tell it
// from a real one. tools/sim has a copy of it, which a test there compares.

type (
	// Row has a value for each column of a table. Null is NULL.
	Row []string

	// TableDef is a table of the sources and of the target.
	TableDef struct {
		Name    string
		Columns []ColumnDef
		// Key are the columns of the primary key.
		Key []int
		// Unique are the other unique keys.
		Unique []KeyDef
		// Refuse is why rows of the table cannot be reordered; empty if they can.
		Refuse string
	}

	ColumnDef struct {
		Name string
		// Blob values are left out of images that do not change them, with
		// binlog_row_image=NOBLOB.
		Blob bool
		// JSON values change by differences, with PARTIAL_JSON: here a document
		// is a text, and a difference is what is appended to it.
		JSON bool
	}

	KeyDef struct {
		Name    string
		Columns []int
	}

	// Database is the target. Every statement is checked at once, row by row. A
	// transaction locks the rows and the unique values that it touches.
	Database struct {
		// LockWait is how long a statement waits for a lock.
		LockWait time.Duration
		// Pause, if set, is called before a statement of a connection that waited for
		// a lock goes on.
		Pause func(id int32)
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

	// StreamRow is a stream's row in _vt.vreplication.
	StreamRow struct {
		Pos       string
		State     string
		Message   string
		Heartbeat time.Time
	}

	lock struct {
		exclusive *Tx
		shared    map[*Tx]bool
	}

	// Tx is a transaction. nil values of its overlay are deletions.
	Tx struct {
		db      *Database
		id      int32
		rows    map[string]Row
		entries map[string]string
		streams map[int32]StreamRow
		locks   map[string]bool
		// wants and exclusive are the lock that it waits for.
		wants     string
		exclusive bool
		ended     bool
	}

	statement struct {
		text  string
		table *TableDef
		// delete or update the row with this primary key.
		delete, update string
		set            []assignment
		insert         Row
		// find the row with this unique value.
		find string
		// whole is set if all columns of that row are asked for.
		whole bool
		// stream is the row in _vt.vreplication to change.
		stream int32
		change func(*StreamRow)
	}

	assignment struct {
		column int
		value  string
		diff   bool
	}
)

// Null is the value NULL.
const Null = "NULL"

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

// key returns the row's primary key, with the table's name.
func (t *TableDef) key(row Row) string {
	return t.Name + "(" + strings.Join(pick(row, t.Key), ",") + ")"
}

// entry returns the row's value in a unique key, or "" if one part of it is NULL.
func (t *TableDef) entry(key KeyDef, row Row) string {
	parts := pick(row, key.Columns)
	if slices.Contains(parts, Null) {
		return ""
	}
	return t.Name + "." + key.Name + "(" + strings.Join(parts, "-") + ")"
}

func pick(row Row, columns []int) []string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = row[c]
	}
	return parts
}

// Rows returns what is committed, by table and primary key.
func (db *Database) Rows() map[string]Row {
	db.mu.Lock()
	defer db.mu.Unlock()
	return maps.Clone(db.rows)
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
	return slices.Clone(db.wrong)
}

// Blame notes something that is wrong.
func (db *Database) Blame(format string, args ...any) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.wrong = append(db.wrong, fmt.Sprintf(format, args...))
}

// Begin opens a transaction of a stream's connection.
func (db *Database) Begin(id int32) *Tx {
	return &Tx{
		db: db, id: id,
		rows: make(map[string]Row), entries: make(map[string]string),
		streams: make(map[int32]StreamRow), locks: make(map[string]bool),
	}
}

// ID returns the stream whose connection it is.
func (tx *Tx) ID() int32 { return tx.id }

// positions returns the positions that the transaction saves, by stream.
func (tx *Tx) positions() map[int32]string {
	positions := make(map[int32]string)
	for id, row := range tx.streams {
		if row.Pos != tx.db.streams[id].Pos {
			positions[id] = row.Pos
		}
	}
	return positions
}

// register keeps a statement under its text.
func (db *Database) register(s statement) string {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.statements[s.text] = s
	return s.text
}

// Commit makes the transaction's changes everybody's. A transaction that the
// server has rolled back has none.
func (tx *Tx) Commit() {
	db := tx.db
	db.mu.Lock()
	if tx.ended {
		db.mu.Unlock()
		return
	}
	positions := tx.positions()
	for key, row := range tx.rows {
		if row == nil {
			delete(db.rows, key)
		} else {
			db.rows[key] = row
		}
	}
	for entry, key := range tx.entries {
		if key == "" {
			delete(db.entries, entry)
		} else {
			db.entries[entry] = key
		}
	}
	maps.Copy(db.streams, tx.streams)
	tx.end()
	db.mu.Unlock()
	if db.Committed != nil && len(tx.rows)+len(positions) > 0 {
		db.Committed(tx, positions)
	}
}

// Rollback undoes the transaction.
func (tx *Tx) Rollback() {
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	tx.end()
}

// end releases the transaction's locks. It needs the mutex.
func (tx *Tx) end() {
	if tx.ended {
		return
	}
	tx.ended = true
	for name := range tx.locks {
		l := tx.db.locks[name]
		delete(l.shared, tx)
		if l.exclusive == tx {
			l.exclusive = nil
		}
	}
	close(tx.db.released)
	tx.db.released = make(chan struct{})
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

// Waits reports whether the transaction waits for a lock, or has none.
func (tx *Tx) Waits() bool {
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	return tx.ended || tx.wants != "" || len(tx.locks) == 0
}

// Exec runs a statement in a transaction.
func (db *Database) Exec(tx *Tx, sql string) (*sqltypes.Result, error) {
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
	result, err := tx.run(s)
	if err != nil {
		if sqlErr, ok := err.(*sqlerror.SQLError); ok {
			sqlErr.Query = sql
		}
		return nil, err
	}
	return result, nil
}

func (tx *Tx) run(s statement) (*sqltypes.Result, error) {
	switch {
	case s.change != nil:
		if err := tx.acquire(fmt.Sprintf("_vt.vreplication(%d)", s.stream), true); err != nil {
			return nil, err
		}
		row, ok := tx.streams[s.stream]
		if !ok {
			if row, ok = tx.db.streams[s.stream]; !ok {
				return &sqltypes.Result{}, nil
			}
		}
		s.change(&row)
		tx.streams[s.stream] = row
		return &sqltypes.Result{RowsAffected: 1}, nil
	case s.find != "":
		return tx.find(s)
	case s.insert != nil:
		return tx.insert(s.table, s.insert)
	case s.delete != "":
		return tx.delete(s)
	default:
		return tx.update(s)
	}
}

// row returns the row as the transaction sees it.
func (tx *Tx) row(key string) Row {
	if row, ok := tx.rows[key]; ok {
		return row
	}
	return tx.db.rows[key]
}

func (tx *Tx) holder(entry string) string {
	if key, ok := tx.entries[entry]; ok {
		return key
	}
	return tx.db.entries[entry]
}

// find is a consistent read: it waits for nobody.
func (tx *Tx) find(s statement) (*sqltypes.Result, error) {
	result := &sqltypes.Result{}
	key := s.find
	if tx.row(key) == nil {
		key = tx.holder(s.find)
	}
	if row := tx.row(key); row != nil {
		var values []sqltypes.Value
		asked := pick(row, s.table.Key)
		if s.whole {
			asked = row
		}
		for _, value := range asked {
			if s.whole && value == Null {
				values = append(values, sqltypes.NULL)
				continue
			}
			values = append(values, sqltypes.NewVarBinary(value))
		}
		result.Rows = append(result.Rows, values)
	}
	return result, nil
}

func (tx *Tx) insert(table *TableDef, row Row) (*sqltypes.Result, error) {
	key := table.key(row)
	if err := tx.check(key, func() bool { return tx.row(key) != nil }, "PRIMARY", table, strings.Join(pick(row, table.Key), "-")); err != nil {
		return nil, err
	}
	if err := tx.take(table, row, nil); err != nil {
		return nil, err
	}
	tx.write(table, key, row)
	return &sqltypes.Result{RowsAffected: 1}, nil
}

// take checks the unique values that a row is to have and did not have before.
func (tx *Tx) take(table *TableDef, row, before Row) error {
	for _, unique := range table.Unique {
		entry := table.entry(unique, row)
		if entry == "" || (before != nil && table.entry(unique, before) == entry) {
			continue
		}
		if err := tx.check(entry, func() bool { return tx.holder(entry) != "" }, unique.Name, table, strings.Join(pick(row, unique.Columns), "-")); err != nil {
			return err
		}
	}
	return nil
}

// check locks a unique value that is about to be taken. If it is taken already,
// a shared lock stays, as in InnoDB.
func (tx *Tx) check(name string, taken func() bool, index string, table *TableDef, value string) error {
	if err := tx.acquire(name, false); err != nil {
		return err
	}
	if taken() {
		return sqlerror.NewSQLErrorf(sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, "Duplicate entry '%s' for key '%s.%s'", value, table.Name, index)
	}
	return tx.acquire(name, true)
}

func (tx *Tx) delete(s statement) (*sqltypes.Result, error) {
	row, err := tx.lockRow(s.delete)
	if err != nil || row == nil {
		tx.missed(s, err)
		return &sqltypes.Result{}, err
	}
	if err := tx.give(s.table, row, nil); err != nil {
		return nil, err
	}
	tx.write(s.table, s.delete, nil)
	return &sqltypes.Result{RowsAffected: 1}, nil
}

// give locks the unique values that a row is about to lose.
func (tx *Tx) give(table *TableDef, row, after Row) error {
	for _, unique := range table.Unique {
		entry := table.entry(unique, row)
		if entry == "" || (after != nil && table.entry(unique, after) == entry) {
			continue
		}
		if err := tx.acquire(entry, true); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) update(s statement) (*sqltypes.Result, error) {
	row, err := tx.lockRow(s.update)
	if err != nil || row == nil {
		tx.missed(s, err)
		return &sqltypes.Result{}, err
	}
	after := slices.Clone(row)
	for _, a := range s.set {
		if a.diff {
			after[a.column] += a.value
		} else {
			after[a.column] = a.value
		}
	}
	if err := tx.take(s.table, after, row); err != nil {
		return nil, err
	}
	if err := tx.give(s.table, row, after); err != nil {
		return nil, err
	}
	tx.write(s.table, s.update, after)
	return &sqltypes.Result{RowsAffected: 1}, nil
}

func (tx *Tx) lockRow(key string) (Row, error) {
	if err := tx.acquire(key, true); err != nil {
		return nil, err
	}
	return tx.row(key), nil
}

// missed notes a change of a row that is not there. MySQL says nothing.
func (tx *Tx) missed(s statement, err error) {
	if err == nil {
		tx.db.wrong = append(tx.db.wrong, fmt.Sprintf("stream %d changes a row that is not there: %s", tx.id, s.text))
	}
}

func (tx *Tx) write(table *TableDef, key string, row Row) {
	if before := tx.row(key); before != nil {
		for _, unique := range table.Unique {
			if entry := table.entry(unique, before); entry != "" {
				tx.entries[entry] = ""
			}
		}
	}
	tx.rows[key] = row
	if row == nil {
		return
	}
	for _, unique := range table.Unique {
		if entry := table.entry(unique, row); entry != "" {
			tx.entries[entry] = key
		}
	}
}

// acquire takes a lock, and waits for it if it has to. It needs the mutex, and
// lets go of it while it waits.
func (tx *Tx) acquire(name string, exclusive bool) error {
	db := tx.db
	var timeout <-chan time.Time
	for {
		l := db.locks[name]
		if l == nil {
			l = &lock{shared: make(map[*Tx]bool)}
			db.locks[name] = l
		}
		if len(l.blockers(tx, exclusive)) == 0 {
			tx.wants = ""
			tx.locks[name] = true
			if exclusive {
				l.exclusive = tx
			} else {
				l.shared[tx] = true
			}
			return nil
		}
		tx.wants, tx.exclusive = name, exclusive
		if db.waitsFor(tx, tx, make(map[*Tx]bool)) {
			tx.wants = ""
			tx.end()
			return sqlerror.NewSQLErrorf(sqlerror.ERLockDeadlock, sqlerror.SSLockDeadlock, "Deadlock found when trying to get lock; try restarting transaction")
		}
		if timeout == nil {
			timer := time.NewTimer(db.LockWait)
			defer timer.Stop()
			timeout = timer.C
		}
		released, timedOut := db.released, false
		db.mu.Unlock()
		select {
		case <-released:
		case <-timeout:
			select {
			case <-released:
			default:
				timedOut = true
			}
		}
		if db.Pause != nil {
			db.Pause(tx.id)
		}
		db.mu.Lock()
		if tx.ended {
			return sqlerror.NewSQLErrorf(sqlerror.CRServerLost, sqlerror.SSUnknownSQLState, "Lost connection to MySQL server during query")
		}
		if timedOut {
			tx.wants = ""
			return sqlerror.NewSQLErrorf(sqlerror.ERLockWaitTimeout, sqlerror.SSUnknownSQLState, "Lock wait timeout exceeded; try restarting transaction")
		}
	}
}

// blockers are the other transactions whose locks exclude this one.
func (l *lock) blockers(tx *Tx, exclusive bool) (txs []*Tx) {
	if l.exclusive != nil && l.exclusive != tx {
		txs = append(txs, l.exclusive)
	}
	if exclusive {
		for other := range l.shared {
			if other != tx {
				txs = append(txs, other)
			}
		}
	}
	return txs
}

// waitsFor reports whether a transaction waits, over others, for target.
func (db *Database) waitsFor(tx, target *Tx, seen map[*Tx]bool) bool {
	if tx.wants == "" || seen[tx] {
		return false
	}
	seen[tx] = true
	for _, other := range db.locks[tx.wants].blockers(tx, tx.exclusive) {
		if other == target || db.waitsFor(other, target, seen) {
			return true
		}
	}
	return false
}
