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

import "maps"

// This file is a transaction of the model of MySQL.

type (
	// Tx is a transaction. What it has written is an overlay of what is committed,
	// whose nil rows and empty holders are deletions.
	Tx struct {
		db      *Database
		id      int32
		rows    map[string]Row
		entries map[string]string
		streams map[int32]StreamRow
		// snapshot is what its consistent reads see beside its own changes: what was
		// committed at the first of them.
		snapshot *snapshot
		held     []*lock
		// waits is the lock that it waits for.
		waits *request
		// killed is set once it was rolled back to end a deadlock.
		killed bool
		ended  bool
		// misses are the changes that found no row.
		misses []string

		// journal has what the statement under way has overwritten, and implicit
		// the locks that go with what it has written.
		journal  []overwritten
		implicit []*lock
	}

	snapshot struct {
		rows    map[string]Row
		entries map[string]string
	}

	overwritten struct {
		isEntry     bool
		key, holder string
		row         Row
		present     bool
	}
)

// Begin opens a transaction of a stream's connection.
func (db *Database) Begin(id int32) *Tx {
	return &Tx{db: db, id: id}
}

// ID returns the stream whose connection it is.
func (tx *Tx) ID() int32 { return tx.id }

// Ended reports whether the transaction was committed or rolled back.
func (tx *Tx) Ended() bool {
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	return tx.ended
}

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
	db.wrong = append(db.wrong, tx.misses...)
	db.watch(Deed{Tx: tx, SQL: "commit"})
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
	tx.rollback()
}

// rollback is Rollback. It needs the mutex.
func (tx *Tx) rollback() {
	if !tx.ended {
		tx.db.watch(Deed{Tx: tx, SQL: "rollback"})
	}
	tx.end()
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

// read returns the row that has a primary key, or unique value, as a consistent
// read under REPEATABLE READ sees it, which is the isolation of a stream's
// connection.
func (tx *Tx) read(find string) Row {
	if tx.snapshot == nil {
		tx.snapshot = &snapshot{rows: maps.Clone(tx.db.rows), entries: maps.Clone(tx.db.entries)}
	}
	row := func(key string) Row {
		if row, ok := tx.rows[key]; ok {
			return row
		}
		return tx.snapshot.rows[key]
	}
	if row := row(find); row != nil {
		return row
	}
	key, ok := tx.entries[find]
	if !ok {
		key = tx.snapshot.entries[find]
	}
	return row(key)
}

func (tx *Tx) setRow(key string, row Row) {
	if tx.rows == nil {
		tx.rows = make(map[string]Row)
	}
	before, present := tx.rows[key]
	tx.journal = append(tx.journal, overwritten{key: key, row: before, present: present})
	tx.rows[key] = row
}

func (tx *Tx) setHolder(entry, key string) {
	if tx.entries == nil {
		tx.entries = make(map[string]string)
	}
	before, present := tx.entries[entry]
	tx.journal = append(tx.journal, overwritten{isEntry: true, key: entry, holder: before, present: present})
	tx.entries[entry] = key
}

// begin begins a statement, and undo undoes it.
func (tx *Tx) begin() {
	tx.journal, tx.implicit = tx.journal[:0], tx.implicit[:0]
}

func (tx *Tx) undo() {
	for i := len(tx.journal) - 1; i >= 0; i-- {
		switch o := tx.journal[i]; {
		case o.isEntry && o.present:
			tx.entries[o.key] = o.holder
		case o.isEntry:
			delete(tx.entries, o.key)
		case o.present:
			tx.rows[o.key] = o.row
		default:
			delete(tx.rows, o.key)
		}
	}
	// The locks that go with what was written, without an entry of their own, go
	// with it.
	released := false
	for _, l := range tx.implicit {
		if l.exclusive == tx {
			l.exclusive = nil
			l.releases++
			released = true
		}
	}
	tx.begin()
	if released {
		tx.db.wake()
	}
}
