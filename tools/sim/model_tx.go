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
	"maps"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
)

// This file is a transaction of the model of MySQL: what it writes, and its locks.

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

// Waits reports whether the transaction waits for a lock, or has none.
func (tx *Tx) Waits() bool {
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	return tx.ended || tx.wants != "" || len(tx.locks) == 0
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
