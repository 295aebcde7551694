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
	"slices"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
)

// This file is the locks of the model of MySQL, which are those of InnoDB on
// records; gaps are not locked.

type (
	// lock is that of a row or of a unique value.
	lock struct {
		name      string
		exclusive *Tx
		shared    []*Tx
		// waiting are the requests that were not granted, in their order.
		waiting []*request
		// releases counts how often it was let go of.
		releases int
	}

	request struct {
		tx        *Tx
		lock      *lock
		exclusive bool
		// since is what the lock's releases were when the request was made.
		since int
	}
)

func (db *Database) lock(name string) *lock {
	l := db.locks[name]
	if l == nil {
		l = &lock{name: name}
		db.locks[name] = l
	}
	return l
}

// held reports whether a transaction has the lock already.
func (l *lock) held(tx *Tx, exclusive bool) bool {
	return l.exclusive == tx || !exclusive && slices.Contains(l.shared, tx)
}

// blockers are the transactions that a request has to wait for: whose locks
// exclude it, or who came first.
func (r *request) blockers() (txs []*Tx) {
	if other := r.lock.exclusive; other != nil && other != r.tx {
		txs = append(txs, other)
	}
	if r.exclusive {
		for _, other := range r.lock.shared {
			if other != r.tx {
				txs = append(txs, other)
			}
		}
	}
	for _, other := range r.lock.waiting {
		if other == r {
			break
		}
		if other.tx != r.tx && (r.exclusive || other.exclusive) {
			txs = append(txs, other.tx)
		}
	}
	return txs
}

// grantable reports whether a request that waits can be granted: the lock was let
// go of, and nobody's excludes it. Who of several is first is not said.
func (r *request) grantable() bool {
	if r.lock.releases == r.since {
		return false
	}
	if other := r.lock.exclusive; other != nil && other != r.tx {
		return false
	}
	return !r.exclusive || !slices.ContainsFunc(r.lock.shared, func(other *Tx) bool { return other != r.tx })
}

func (r *request) grant() {
	l, tx := r.lock, r.tx
	if l.exclusive != tx && !slices.Contains(l.shared, tx) {
		tx.held = append(tx.held, l)
	}
	if r.exclusive {
		l.exclusive = tx
	} else {
		l.shared = append(l.shared, tx)
	}
}

// end ends the transaction, and lets go of its locks. It needs the mutex.
func (tx *Tx) end() {
	if tx.ended {
		return
	}
	tx.ended = true
	for _, l := range tx.held {
		if l.exclusive == tx {
			l.exclusive = nil
		}
		l.shared = slices.DeleteFunc(l.shared, func(other *Tx) bool { return other == tx })
		l.releases++
	}
	tx.withdraw()
	tx.db.wake()
}

// withdraw takes back what the transaction waits for.
func (tx *Tx) withdraw() {
	if r := tx.waits; r != nil {
		l := r.lock
		l.waiting = slices.DeleteFunc(l.waiting, func(other *request) bool { return other == r })
		l.releases++
		tx.waits = nil
	}
}

func (db *Database) wake() {
	close(db.released)
	db.released = make(chan struct{})
}

// Waits reports whether the transaction waits for a lock, or has none.
func (tx *Tx) Waits() bool {
	tx.db.mu.Lock()
	defer tx.db.mu.Unlock()
	return tx.ended || tx.waits != nil || len(tx.held) == 0
}

// acquire takes a lock, and waits for it if it has to. It needs the mutex, and
// lets go of it while it waits.
func (tx *Tx) acquire(name string, exclusive bool) error {
	l := tx.db.lock(name)
	if l.held(tx, exclusive) {
		return nil
	}
	r := &request{tx: tx, lock: l, exclusive: exclusive, since: l.releases}
	if len(r.blockers()) == 0 {
		r.grant()
		return nil
	}
	l.waiting = append(l.waiting, r)
	tx.waits = r
	err := tx.await(r)
	tx.withdraw()
	if err != nil {
		// Who came behind it may be next.
		tx.db.wake()
	}
	return err
}

// acquireImplicit takes the lock that goes with something that is written.
func (tx *Tx) acquireImplicit(name string) error {
	l := tx.db.lock(name)
	had := l.exclusive == tx
	if err := tx.acquire(name, true); err != nil {
		return err
	}
	if !had {
		tx.implicit = append(tx.implicit, l)
	}
	return nil
}

// await waits until a request is granted.
func (tx *Tx) await(r *request) error {
	db := tx.db
	var timeout <-chan time.Time
	for {
		if r.grantable() {
			r.grant()
			return nil
		}
		if circle := db.circle(r); circle != nil {
			victim := tx
			if db.Victim != nil {
				victim = db.Victim(circle)
			}
			victim.killed = true
			victim.rollback()
			if victim == tx {
				return errDeadlock()
			}
			continue
		}
		if timeout == nil {
			timer := time.NewTimer(db.LockWait)
			defer timer.Stop()
			timeout = timer.C
			if db.Waiting != nil {
				db.Waiting(tx)
			}
		}
		if timedOut := db.sleep(tx, timeout); tx.killed {
			return errDeadlock()
		} else if tx.ended {
			return sqlerror.NewSQLErrorf(sqlerror.CRServerLost, sqlerror.SSUnknownSQLState, "Lost connection to MySQL server during query")
		} else if timedOut {
			return errTimeout()
		}
	}
}

// sleep waits, without the mutex, until any transaction ends.
func (db *Database) sleep(tx *Tx, timeout <-chan time.Time) (timedOut bool) {
	released := db.released
	db.mu.Unlock()
	defer db.mu.Lock()
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
	return timedOut
}

// circle returns transactions that wait for each other, the request's among them,
// or nil.
func (db *Database) circle(r *request) []*Tx {
	seen := make(map[*Tx]bool)
	var path []*Tx
	var reaches func(r *request) bool
	reaches = func(current *request) bool {
		path = append(path, current.tx)
		seen[current.tx] = true
		for _, other := range current.blockers() {
			if other == r.tx {
				return true
			}
			if !seen[other] && other.waits != nil && reaches(other.waits) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if reaches(r) {
		return path
	}
	return nil
}
