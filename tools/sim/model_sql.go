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
	"regexp"
	"slices"
	"strings"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is the SQL that the sources of the model understand.

var (
	ddlColumn = regexp.MustCompile(`^(\w+)\s+(\w+)`)
	ddlKey    = regexp.MustCompile(`^(primary|unique)\s+key\s*(\w*)\s*\(([^)]*)\)`)
	insertSQL = regexp.MustCompile(`^insert into (\S+) values\s*(.*)$`)
	updateSQL = regexp.MustCompile(`^update (\S+) set (.*) where (.*)$`)
	deleteSQL = regexp.MustCompile(`^delete from (\S+) where (.*)$`)
	valueSQL  = regexp.MustCompile(`^\s*('(?:[^']|'')*'|[-\w.]+)\s*`)
)

// ParseTable reads the definition of a table, as scenarios have it.
func ParseTable(name, ddl string) (*TableDef, error) {
	table := &TableDef{Name: name}
	for _, part := range split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(ddl), "("), ")")) {
		if m := ddlKey.FindStringSubmatch(part); m != nil {
			var columns []int
			for _, column := range strings.Split(m[3], ",") {
				i := table.column(strings.TrimSpace(column))
				if i < 0 {
					return nil, fmt.Errorf("key of unknown column %s", column)
				}
				columns = append(columns, i)
			}
			if m[1] == "primary" {
				table.Key = columns
			} else {
				table.Unique = append(table.Unique, KeyDef{Name: m[2], Columns: columns})
			}
			continue
		}
		m := ddlColumn.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("the model does not understand %q", part)
		}
		table.Columns = append(table.Columns, ColumnDef{Name: m[1], JSON: m[2] == "json", Blob: strings.HasSuffix(m[2], "blob") || m[2] == "text"})
	}
	if table.Key == nil {
		return nil, fmt.Errorf("the model needs a primary key")
	}
	return table, nil
}

func (t *TableDef) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c ColumnDef) bool { return c.Name == name })
}

// split splits at commas outside of parentheses and quotes.
func split(text string) (parts []string) {
	depth, quoted, start := 0, false, 0
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}

func literal(text string) (string, error) {
	m := valueSQL.FindStringSubmatch(text)
	if m == nil || len(m[0]) != len(text) {
		return "", fmt.Errorf("the model does not understand the value %q", text)
	}
	if strings.EqualFold(m[1], "null") {
		return Null, nil
	}
	return strings.ReplaceAll(strings.Trim(m[1], "'"), "''", "'"), nil
}

// SQL runs one transaction on the source: statements of a scenario, whose table
// is {n}, or has its name. Rows are found by equality of columns.
func (s *Stream) SQL(statements ...string) (*Txn, error) {
	var deltas []RowDelta
	for _, sql := range statements {
		more, err := s.parse(strings.TrimSpace(sql))
		if err != nil {
			return nil, err
		}
		for _, delta := range more {
			s.apply(delta)
		}
		deltas = append(deltas, more...)
	}
	return s.log(binlogdatapb.VEventType_COMMIT, strings.Join(statements, "; "), deltas), nil
}

func (s *Stream) table(name string) (*TableDef, error) {
	if table := s.World.Tables[name]; table != nil {
		return table, nil
	}
	if strings.HasPrefix(name, "{") && len(s.World.Tables) == 1 {
		for _, table := range s.World.Tables {
			return table, nil
		}
	}
	return nil, fmt.Errorf("unknown table %s", name)
}

func (s *Stream) parse(sql string) (deltas []RowDelta, err error) {
	if m := insertSQL.FindStringSubmatch(sql); m != nil {
		table, err := s.table(m[1])
		if err != nil {
			return nil, err
		}
		for _, tuple := range split(m[2]) {
			var row Row
			for _, part := range split(strings.TrimSuffix(strings.TrimPrefix(tuple, "("), ")")) {
				value, err := literal(part)
				if err != nil {
					return nil, err
				}
				row = append(row, value)
			}
			if len(row) != len(table.Columns) {
				return nil, fmt.Errorf("%s: %d values for %d columns", sql, len(row), len(table.Columns))
			}
			deltas = append(deltas, RowDelta{Table: table, After: row})
		}
		return deltas, nil
	}
	name, set, where := "", "", ""
	if m := updateSQL.FindStringSubmatch(sql); m != nil {
		name, set, where = m[1], m[2], m[3]
	} else if m := deleteSQL.FindStringSubmatch(sql); m != nil {
		name, where = m[1], m[2]
	} else {
		return nil, fmt.Errorf("the model does not understand %q", sql)
	}
	table, err := s.table(name)
	if err != nil {
		return nil, err
	}
	found, err := assignments(table, strings.Split(where, " and "))
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Rows)) {
		row := s.Rows[key]
		if !strings.HasPrefix(key, table.Name+"(") || slices.ContainsFunc(found, func(a assignment) bool { return row[a.column] != a.value }) {
			continue
		}
		delta := RowDelta{Table: table, Before: row}
		if set != "" {
			values, err := assignments(table, split(set))
			if err != nil {
				return nil, err
			}
			delta.After = slices.Clone(row)
			for _, a := range values {
				delta.After[a.column] = a.value
			}
		}
		deltas = append(deltas, delta)
	}
	if len(deltas) == 0 {
		return nil, fmt.Errorf("%s finds no row on source %d", sql, s.ID-1)
	}
	return deltas, nil
}

func assignments(table *TableDef, parts []string) (all []assignment, err error) {
	for _, part := range parts {
		name, text, ok := strings.Cut(part, "=")
		column := table.column(strings.TrimSpace(name))
		if !ok || column < 0 {
			return nil, fmt.Errorf("the model does not understand %q", part)
		}
		value, err := literal(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		all = append(all, assignment{column: column, value: value})
	}
	return all, nil
}
