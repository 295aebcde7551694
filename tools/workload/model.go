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

// Package workload produces the load that a merge workflow finds hardest: a few
// hot unique values that are handed from row to row, across shards, in
// histories in which no value is ever held twice, and sends it through vtgate.
package workload

import (
	"fmt"
	"maps"
)

// Table is the table that the load writes.
const Table = "account"

// Schema creates the table.
const Schema = `create table account (
  id bigint not null,
  email varchar(64),
  val varchar(64) not null,
  primary key (id),
  unique key email_uk (email)
)`

// VSchema shards the table by its primary key.
const VSchema = `{
  "sharded": true,
  "vindexes": {"hash": {"type": "hash"}},
  "tables": {"account": {"column_vindexes": [{"column": "id", "name": "hash"}]}}
}`

// Row is a row without its primary key. An empty Email stands for NULL.
type Row struct {
	Email string
	Val   string
}

// Kind is the kind of a statement.
type Kind int

// The kinds of statements.
const (
	Insert Kind = iota
	Update
	Delete
)

// Op is one statement, for one row.
type Op struct {
	Kind Kind
	ID   int64
	Row  Row // the row after the statement; unused by Delete
}

// Txn is one transaction. All its rows lie on one shard, so that its commit is
// atomic and there is an instant at which it happens.
type Txn struct {
	Shard int
	Ops   []Op
	// Bulk marks a transaction that is sent as one statement for all its rows:
	// updates that set the same Val and nothing else.
	Bulk bool
	// Handover marks a transaction that takes or releases a hot value.
	Handover bool
}

// Model is the union of all shards as the application sees it. It checks what
// the application relies on: each primary key and each email once, at every
// instant. Within a transaction it checks each statement, as MySQL does.
type Model struct {
	rows  map[int64]Row
	owner map[string]int64
}

// NewModel returns a model without rows.
func NewModel() *Model {
	return &Model{rows: make(map[int64]Row), owner: make(map[string]int64)}
}

// Row returns a row, and whether it exists.
func (m *Model) Row(id int64) (Row, bool) {
	row, ok := m.rows[id]
	return row, ok
}

// Rows returns a copy of all rows by primary key.
func (m *Model) Rows() map[int64]Row {
	return maps.Clone(m.rows)
}

// Holder returns the row that holds an email, and whether there is one.
func (m *Model) Holder(email string) (int64, bool) {
	id, ok := m.owner[email]
	return id, ok
}

// Apply commits a transaction. An error says which statement is not valid; the
// model is then of no further use.
func (m *Model) Apply(t Txn) error {
	for i, op := range t.Ops {
		if err := m.apply(op); err != nil {
			return fmt.Errorf("statement %d of %v: %w", i, t, err)
		}
	}
	return nil
}

// apply runs one statement.
func (m *Model) apply(op Op) error {
	old, exists := m.rows[op.ID]
	if exists == (op.Kind == Insert) {
		return fmt.Errorf("row %d exists: %t", op.ID, exists)
	}
	if op.Kind != Delete && op.Row.Email != "" {
		if owner, taken := m.owner[op.Row.Email]; taken && owner != op.ID {
			return fmt.Errorf("email %s is held by row %d", op.Row.Email, owner)
		}
	}
	if old.Email != "" {
		delete(m.owner, old.Email)
	}
	if op.Kind == Delete {
		delete(m.rows, op.ID)
		return nil
	}
	m.rows[op.ID] = op.Row
	if op.Row.Email != "" {
		m.owner[op.Row.Email] = op.ID
	}
	return nil
}
