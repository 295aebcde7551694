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

package mergebackoff_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// This file is a model of the target's MySQL, as far as merge backoff can tell it
// from a real one.

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
