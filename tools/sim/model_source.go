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
	"strings"
	"sync/atomic"
	"time"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is a model of the sources of a merge: what they hold, and what they
// log.

type (
	// Source is what a source holds, and all that it ever committed.
	Source struct {
		Images Images
		// Log is all that the source ever committed.
		Log []*Txn

		id    int32
		world *World
		// last is the position of the last of Log.
		last atomic.Pointer[string]
		// rows are the rows by primary key, and taken the unique values by name,
		// with the primary key of the row that has it.
		rows  map[string]Row
		taken map[string]string
	}

	// Txn is what a source commits at once.
	Txn struct {
		GTID      string
		Timestamp int64
		Rows      []RowDelta
		// Kind is COMMIT, or that of an event that only moves the position.
		Kind binlogdatapb.VEventType
		// SQL says what it did.
		SQL string
	}

	RowDelta struct {
		Table         *TableDef
		Before, After Row
	}

	// tally counts how many sources have each row and each unique value.
	tally struct {
		counts map[string]int
		// twice is how many of them more than one source has.
		twice int
	}
)

func newSource(id int32, world *World) *Source {
	return &Source{id: id, world: world, rows: make(map[string]Row), taken: make(map[string]string)}
}

// Rows returns the source's rows by primary key.
func (s *Source) Rows() map[string]Row { return s.rows }

func (t *tally) add(name string) {
	t.counts[name]++
	if t.counts[name] == 2 {
		t.twice++
	}
}

func (t *tally) remove(name string) {
	t.counts[name]--
	switch t.counts[name] {
	case 0:
		delete(t.counts, name)
	case 1:
		t.twice--
	}
}

// Commit commits a transaction on the source. Its changes are made one by one.
func (s *Source) Commit(sql string, rows ...RowDelta) *Txn {
	for _, row := range rows {
		s.apply(row)
	}
	return s.log(binlogdatapb.VEventType_COMMIT, sql, rows)
}

// Other commits what only moves the position: an OTHER, or a DDL.
func (s *Source) Other(kind binlogdatapb.VEventType, sql string) *Txn {
	return s.log(kind, sql, nil)
}

func (s *Source) log(kind binlogdatapb.VEventType, sql string, rows []RowDelta) *Txn {
	txn := &Txn{
		GTID: s.gtid(len(s.Log) + 1), Timestamp: time.Now().Unix(),
		Rows: rows, Kind: kind, SQL: sql,
	}
	s.Log = append(s.Log, txn)
	s.last.Store(&txn.GTID)
	return txn
}

// gtid is the position of the source's nth transaction, counted from one.
func (s *Source) gtid(n int) string { return fmt.Sprintf("%d-%06d", s.id, n) }

// Index is how many transactions of the log a position covers.
func (s *Source) Index(pos string) int {
	i, _ := slices.BinarySearchFunc(s.Log, pos, func(txn *Txn, pos string) int { return strings.Compare(txn.GTID, pos) })
	if pos != "" && i < len(s.Log) {
		i++
	}
	return i
}

// check reports a duplicate on the source itself.
func (s *Source) check(delta RowDelta) error {
	if delta.After == nil {
		return nil
	}
	table, key, own := delta.Table, delta.Table.key(delta.After), ""
	if delta.Before != nil {
		own = table.key(delta.Before)
	}
	if key != own && s.rows[key] != nil {
		return fmt.Errorf("on source %d: %s", s.id-1, table.duplicate("PRIMARY", delta.After, table.Key))
	}
	for i := range table.Unique {
		unique := &table.Unique[i]
		if entry := table.entry(unique, delta.After); entry != "" && s.taken[entry] != "" && s.taken[entry] != own {
			return fmt.Errorf("on source %d: %s", s.id-1, table.duplicate(unique.Name, delta.After, unique.Columns))
		}
	}
	return nil
}

// apply makes a change, and undo takes it back.
func (s *Source) apply(delta RowDelta) {
	s.change(delta.Table, delta.Before, delta.After)
}

func (s *Source) undo(delta RowDelta) {
	s.change(delta.Table, delta.After, delta.Before)
}

func (s *Source) change(table *TableDef, before, after Row) {
	count := s.world.tallied
	if before != nil {
		key := table.key(before)
		delete(s.rows, key)
		count.remove(key)
		for i := range table.Unique {
			if entry := table.entry(&table.Unique[i], before); entry != "" {
				delete(s.taken, entry)
				count.remove(entry)
			}
		}
	}
	if after != nil {
		key := table.key(after)
		s.rows[key] = after
		count.add(key)
		for i := range table.Unique {
			if entry := table.entry(&table.Unique[i], after); entry != "" {
				s.taken[entry] = key
				count.add(entry)
			}
		}
	}
}

// SQL runs one transaction on the source. One that fails changes nothing.
func (s *Source) SQL(texts ...string) (*Txn, error) {
	var statements []*SQL
	for _, text := range texts {
		statement, err := ParseSQL(text)
		if err != nil {
			return nil, err
		}
		statements = append(statements, statement)
	}
	return s.Execute(statements)
}

// Execute is SQL for statements that were read.
func (s *Source) Execute(statements []*SQL) (*Txn, error) {
	var deltas []RowDelta
	var texts []string
	for _, statement := range statements {
		more, err := s.run(statement)
		deltas = append(deltas, more...)
		if err != nil {
			for _, delta := range slices.Backward(deltas) {
				s.undo(delta)
			}
			return nil, err
		}
		texts = append(texts, statement.String())
	}
	return s.log(binlogdatapb.VEventType_COMMIT, strings.Join(texts, "; "), deltas), nil
}

// Revert takes the source's last transaction back.
func (s *Source) Revert() {
	last := s.Log[len(s.Log)-1]
	for _, delta := range slices.Backward(last.Rows) {
		s.undo(delta)
	}
	s.Log = s.Log[:len(s.Log)-1]
	start := s.gtid(len(s.Log))
	s.last.Store(&start)
}

// run runs a statement. The changes that it returns were made, also with an error.
func (s *Source) run(statement *SQL) (deltas []RowDelta, err error) {
	table, err := s.table(statement.Table)
	if err != nil {
		return nil, err
	}
	rows := []Row{nil}
	if statement.Insert == nil {
		if rows, err = s.where(table, statement.Where); err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s finds no row on source %d", statement, s.id-1)
		}
	}
	for _, before := range rows {
		afters, err := statement.afters(table, before)
		if err != nil {
			return deltas, err
		}
		for _, after := range afters {
			delta := RowDelta{Table: table, Before: before, After: after}
			if err := s.check(delta); err != nil {
				return deltas, err
			}
			s.apply(delta)
			deltas = append(deltas, delta)
		}
	}
	return deltas, nil
}

func (s *Source) table(name string) (*TableDef, error) {
	// {n} is the source's table, wherever it is said.
	if _, rest, ok := strings.Cut(name, "}"); ok && name[0] == '{' {
		name = "t" + rest
	}
	if table := s.world.Tables[name]; table != nil {
		return table, nil
	}
	return nil, fmt.Errorf("source %d has no table %s", s.id-1, name)
}

// where finds the rows of a condition, in the order of their keys.
func (s *Source) where(table *TableDef, condition *expr) (rows []Row, err error) {
	if key, ok := table.keyOf(condition); ok {
		if row := s.rows[key]; row != nil {
			return []Row{row}, nil
		}
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		if !strings.HasPrefix(key, table.Name+"(") {
			continue
		}
		row := s.rows[key]
		found := yes
		if condition != nil {
			if found, err = condition.eval(table, row); err != nil {
				return nil, err
			}
		}
		if found == yes {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
