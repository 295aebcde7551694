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

package workload

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// statement is one query with its arguments.
type statement struct {
	query string
	args  []any
}

// statements returns a transaction as SQL.
func statements(txn Txn) []statement {
	if txn.Bulk {
		return []statement{bulkStatement(txn.Ops)}
	}
	list := make([]statement, 0, len(txn.Ops))
	for _, op := range txn.Ops {
		list = append(list, opStatement(op))
	}
	return list
}

// opStatement returns one statement as SQL.
func opStatement(op Op) statement {
	email := sql.NullString{String: op.Row.Email, Valid: op.Row.Email != ""}
	switch op.Kind {
	case Insert:
		return statement{"insert into " + Table + " (id, email, val) values (?, ?, ?)", []any{op.ID, email, op.Row.Val}}
	case Delete:
		return statement{"delete from " + Table + " where id = ?", []any{op.ID}}
	default:
		return statement{"update " + Table + " set email = ?, val = ? where id = ?", []any{email, op.Row.Val, op.ID}}
	}
}

// bulkStatement returns many inserts, or many updates of val, as one statement.
func bulkStatement(ops []Op) statement {
	if ops[0].Kind == Update {
		query := fmt.Sprintf("update %s set val = ? where id in (%s)", Table, idList(ops))
		return statement{query, []any{ops[0].Row.Val}}
	}
	values := strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", len(ops)), ", ")
	s := statement{query: "insert into " + Table + " (id, email, val) values " + values}
	for _, op := range ops {
		s.args = append(s.args, op.ID, op.Row.Email, op.Row.Val)
	}
	return s
}

// ReadAll returns all rows that a connection sees, by primary key.
func ReadAll(ctx context.Context, db *sql.DB) (map[int64]Row, error) {
	return readRows(ctx, db, "select id, email, val from "+Table)
}

// readRows runs a query for rows.
func readRows(ctx context.Context, db *sql.DB, query string) (map[int64]Row, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := make(map[int64]Row)
	for rows.Next() {
		var id int64
		var email sql.NullString
		var row Row
		if err := rows.Scan(&id, &email, &row.Val); err != nil {
			return nil, err
		}
		row.Email = email.String
		list[id] = row
	}
	return list, rows.Err()
}
