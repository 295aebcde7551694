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

package differential

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"mergebackoff/tools/sim"
)

// replay does on a server what the model has done.
type replay struct {
	*Recording
	tables map[string]*sim.TableDef
	db     *sql.DB
	// open are the connections of the transactions that are under way, and idle
	// those of none.
	open map[int]*sql.Conn
	idle []*sql.Conn
}

// errCut says that the server made a statement wait.
var errCut = errors.New("the server waits for a lock")

// Replay has a server do what was recorded, in a database of its own, and tells what
// is different; "" if nothing is. done is how many of the deeds the server came to.
func Replay(ctx context.Context, s *Server, database string, r *Recording) (difference string, done int, err error) {
	db, err := s.Open(database)
	if err != nil {
		return "", 0, err
	}
	defer db.Close()
	db.SetMaxIdleConns(100)
	p := &replay{Recording: r, db: db, tables: make(map[string]*sim.TableDef), open: make(map[int]*sql.Conn)}
	defer p.close()
	if err := p.create(ctx); err != nil {
		return "", 0, err
	}
	for i, deed := range r.Deeds {
		difference, err := p.do(ctx, deed)
		if err != nil {
			return "", i, err
		}
		if difference != "" {
			return p.report(i, difference), i, nil
		}
	}
	difference, err = p.compareRows(ctx)
	if difference != "" {
		difference = p.report(len(r.Deeds)-1, difference)
	}
	return difference, len(r.Deeds), err
}

func (p *replay) close() {
	for _, conn := range p.open {
		_, _ = conn.ExecContext(context.Background(), "rollback")
		_ = conn.Close()
	}
	for _, conn := range p.idle {
		_ = conn.Close()
	}
}

// create makes the tables, empty.
func (p *replay) create(ctx context.Context) error {
	tables, err := p.History.Defined()
	if err != nil {
		return err
	}
	rows, err := p.db.QueryContext(ctx, "show tables")
	if err != nil {
		return err
	}
	defer rows.Close()
	var old []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		old = append(old, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(old) > 0 {
		if _, err := p.db.ExecContext(ctx, "drop table "+strings.Join(old, ", ")); err != nil {
			return err
		}
	}
	for _, table := range tables {
		p.tables[table.Name] = table
		ddl := "create table " + table.Name + " " + p.History.Tables[table.Name] + " default charset utf8mb4 collate utf8mb4_0900_ai_ci"
		if _, err := p.db.ExecContext(ctx, ddl); err != nil {
			return fmt.Errorf("%s: %w", ddl, err)
		}
	}
	return nil
}

// conn is the connection of a transaction, which begins if it is new.
func (p *replay) conn(ctx context.Context, tx int) (conn *sql.Conn, err error) {
	if conn = p.open[tx]; conn != nil {
		return conn, nil
	}
	if n := len(p.idle); n > 0 {
		conn, p.idle = p.idle[n-1], p.idle[:n-1]
	} else if conn, err = p.db.Conn(ctx); err != nil {
		return nil, err
	}
	p.open[tx] = conn
	_, err = conn.ExecContext(ctx, "begin")
	return conn, err
}

// do does one deed, and tells what comes of it that is different.
func (p *replay) do(ctx context.Context, deed Deed) (difference string, err error) {
	ends := deed.SQL == "commit" || deed.SQL == "rollback"
	if ends && p.open[deed.Tx] == nil {
		return "", nil
	}
	conn, err := p.conn(ctx, deed.Tx)
	if err != nil {
		return "", err
	}
	if ends {
		p.idle = append(p.idle, conn)
		delete(p.open, deed.Tx)
		_, err = conn.ExecContext(ctx, deed.SQL)
		return "", err
	}
	if strings.HasPrefix(deed.SQL, "select ") {
		return p.query(ctx, conn, deed)
	}
	affected := int64(0)
	result, err := conn.ExecContext(ctx, deed.SQL)
	if err == nil {
		affected, err = result.RowsAffected()
	}
	var failed *mysql.MySQLError
	switch {
	case errors.As(err, &failed) && isLockError(int(failed.Number)):
		return "", errCut
	case errors.As(err, &failed) && deed.Errno == int(failed.Number) && keyOf(deed.Message) == keyOf(failed.Message):
		return "", nil
	case err != nil && deed.Errno == 0:
		return fmt.Sprintf("it succeeds on the model, and fails on the server: %v", err), nil
	case err != nil:
		return fmt.Sprintf("it fails on the model with %q, and on the server with %q", deed.Message, err), nil
	case deed.Errno != 0:
		return fmt.Sprintf("it fails on the model with %q, and succeeds on the server", deed.Message), nil
	case uint64(affected) != deed.Affected:
		return fmt.Sprintf("it affects %d rows on the model, and %d on the server", deed.Affected, affected), nil
	}
	return "", nil
}

// keyOf is the unique key that a message of a duplicate names. The value in it is not
// compared: the server shortens it, and what it is is not what merge backoff goes by.
func keyOf(message string) string {
	_, key, _ := strings.Cut(message, "' for key ")
	key, _, _ = strings.Cut(key, " (errno")
	return key
}

func (p *replay) query(ctx context.Context, conn *sql.Conn, deed Deed) (difference string, err error) {
	table := p.tables[strings.Fields(deed.SQL[strings.Index(deed.SQL, " from "):])[1]]
	found, err := p.read(ctx, conn, table, deed.SQL, false)
	if err != nil {
		return "", err
	}
	want := deed.Found
	if len(found) != len(want) || len(want) > 0 && !slices.EqualFunc(want[0], found[0], equalValues) {
		return fmt.Sprintf("it finds %q on the model, and %q on the server", want, found), nil
	}
	return "", nil
}

// read reads rows, with their values as a row image has them; those of generated
// columns are NULL if they are not asked for.
func (p *replay) read(ctx context.Context, conn *sql.Conn, table *sim.TableDef, text string, generated bool) (all [][]string, err error) {
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(names))
		for i, value := range values {
			row[i] = sim.Null
			if c := column(table, names[i]); value.Valid && (c.Generated == nil || generated) {
				row[i] = imageOf(c, value.String)
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// compareRows compares what is committed when all is done.
func (p *replay) compareRows(ctx context.Context) (difference string, err error) {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	for _, name := range slices.Sorted(maps.Keys(p.tables)) {
		table := p.tables[name]
		found, err := p.read(ctx, conn, table, "select * from "+name, true)
		if err != nil {
			return "", err
		}
		var want [][]string
		for key, row := range p.Rows {
			if !strings.HasPrefix(key, name+"(") {
				continue
			}
			values := make([]string, len(row))
			for i, value := range row {
				values[i] = value
				if value != sim.Null {
					values[i] = imageOf(&table.Columns[i], value)
				}
			}
			want = append(want, values)
		}
		if difference := differentRows(want, found); difference != "" {
			return "in the end table " + name + " has " + difference, nil
		}
	}
	return "", nil
}

// report tells of a difference, with what led to it.
func (p *replay) report(at int, difference string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d: %s\n", p.Name, p.Seed, difference)
	for _, name := range slices.Sorted(maps.Keys(p.History.Tables)) {
		fmt.Fprintf(&b, "  create table %s %s\n", name, p.History.Tables[name])
	}
	const most = 40
	for i, deed := range p.Deeds[:at+1] {
		if i < at+1-most {
			continue
		}
		fmt.Fprintf(&b, "  %5d  tx %d: %s", i, deed.Tx, deed.SQL)
		if deed.Errno != 0 {
			fmt.Fprintf(&b, "  -- %s", deed.Message)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
