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
	"strings"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
)

// This file is how the model of MySQL runs a statement.

type (
	// statement is one that the model of vplayer has written. What is set in it says
	// what it does.
	statement struct {
		text  string
		table *TableDef
		// update the row with this primary key, or delete the rows with these.
		update  string
		set     []assignment
		deletes []string
		inserts []Row
		// find the row with this unique value, or primary key.
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
		// diff is set if the value is a difference.
		diff bool
	}
)

func (tx *Tx) run(s statement) (*sqltypes.Result, error) {
	affected := uint64(0)
	switch {
	case s.change != nil:
		return tx.changeStream(s)
	case s.find != "":
		return tx.find(s), nil
	case s.inserts != nil:
		for _, row := range s.inserts {
			if err := tx.insert(s.table, s.table.complete(row)); err != nil {
				return nil, err
			}
			affected++
		}
	case s.deletes != nil:
		for _, key := range s.deletes {
			found, err := tx.delete(s.table, key)
			if err != nil {
				return nil, err
			}
			if !found {
				tx.missed(s)
				continue
			}
			affected++
		}
	default:
		found, err := tx.update(s)
		if err != nil {
			return nil, err
		}
		if !found {
			tx.missed(s)
		} else {
			affected = 1
		}
	}
	return &sqltypes.Result{RowsAffected: affected}, nil
}

func (tx *Tx) changeStream(s statement) (*sqltypes.Result, error) {
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
	if tx.streams == nil {
		tx.streams = make(map[int32]StreamRow)
	}
	tx.streams[s.stream] = row
	return &sqltypes.Result{RowsAffected: 1}, nil
}

// find is a consistent read: it waits for nobody.
func (tx *Tx) find(s statement) *sqltypes.Result {
	result := &sqltypes.Result{}
	row := tx.read(s.find)
	if row == nil {
		return result
	}
	var values []sqltypes.Value
	for i := range s.table.Columns {
		c := &s.table.Columns[i]
		switch {
		case !s.whole:
		case row[i] == Null, c.Generated != nil:
			values = append(values, sqltypes.NULL)
		default:
			values = append(values, sqltypes.NewVarBinary(c.image(row[i])))
		}
	}
	if !s.whole {
		for _, i := range s.table.Key {
			values = append(values, sqltypes.NewVarBinary(s.table.Columns[i].image(row[i])))
		}
	}
	result.Rows = append(result.Rows, values)
	return result
}

func (tx *Tx) insert(table *TableDef, row Row) error {
	key := table.key(row)
	if err := tx.take(table, key, func() bool { return tx.row(key) != nil }, "PRIMARY", row, table.Key); err != nil {
		return err
	}
	tx.setRow(key, row)
	for i := range table.Unique {
		if err := tx.takeEntry(table, &table.Unique[i], key, row); err != nil {
			return err
		}
	}
	return nil
}

// takeEntry gives a unique value to a row.
func (tx *Tx) takeEntry(table *TableDef, unique *KeyDef, key string, row Row) error {
	entry := table.entry(unique, row)
	if entry == "" {
		return nil
	}
	if err := tx.take(table, entry, func() bool { return tx.holder(entry) != "" }, unique.Name, row, unique.Columns); err != nil {
		return err
	}
	tx.setHolder(entry, key)
	return nil
}

// take locks a value that is about to be taken. If it is taken already, a shared
// lock stays, as in InnoDB.
func (tx *Tx) take(table *TableDef, name string, taken func() bool, index string, row Row, columns []int) error {
	l := tx.db.lock(name)
	if taken() || l.exclusive != nil && l.exclusive != tx {
		if err := tx.acquire(name, false); err != nil {
			return err
		}
	}
	if !taken() {
		if err := tx.acquireImplicit(name); err != nil {
			return err
		}
	}
	// Somebody may have taken it while this one waited for others to let go of it.
	if taken() {
		return sqlerror.NewSQLErrorf(sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, "%s", table.duplicate(index, row, columns))
	}
	return nil
}

func (tx *Tx) delete(table *TableDef, key string) (found bool, err error) {
	if err := tx.acquire(key, true); err != nil {
		return false, err
	}
	row := tx.row(key)
	if row == nil {
		return false, nil
	}
	tx.setRow(key, nil)
	for i := range table.Unique {
		if err := tx.giveEntry(table, &table.Unique[i], row); err != nil {
			return false, err
		}
	}
	return true, nil
}

// giveEntry takes a unique value away from the row that has it.
func (tx *Tx) giveEntry(table *TableDef, unique *KeyDef, row Row) error {
	entry := table.entry(unique, row)
	if entry == "" {
		return nil
	}
	if err := tx.acquireImplicit(entry); err != nil {
		return err
	}
	tx.setHolder(entry, "")
	return nil
}

func (tx *Tx) update(s statement) (found bool, err error) {
	if err := tx.acquire(s.update, true); err != nil {
		return false, err
	}
	row := tx.row(s.update)
	if row == nil {
		return false, nil
	}
	after := make(Row, len(row))
	copy(after, row)
	for _, a := range s.set {
		after[a.column] = a.value
		if a.diff {
			if after[a.column], err = patched(row[a.column], a.value); err != nil {
				return false, err
			}
		}
	}
	after = s.table.complete(after)
	tx.setRow(s.update, after)
	// One index after the other, as InnoDB does it.
	for i := range s.table.Unique {
		unique := &s.table.Unique[i]
		if s.table.entry(unique, row) == s.table.entry(unique, after) {
			continue
		}
		if err := tx.giveEntry(s.table, unique, row); err != nil {
			return false, err
		}
		if err := tx.takeEntry(s.table, unique, s.update, after); err != nil {
			return false, err
		}
	}
	return true, nil
}

// missed notes a change of a row that is not there. MySQL says nothing, and it is
// wrong once it is committed: a leader may come too late for a stream that has left.
func (tx *Tx) missed(s statement) {
	tx.misses = append(tx.misses, fmt.Sprintf("stream %d changes a row that is not there: %s", tx.id, s.text))
}

// literalSQL writes a value as SQL.
func literalSQL(value string) string {
	if value == Null {
		return "null"
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}
