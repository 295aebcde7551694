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
	"slices"
	"strings"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
)

// This file is how the model of MySQL runs a statement.

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
