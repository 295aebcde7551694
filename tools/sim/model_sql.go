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
	"regexp"
	"slices"
	"strings"
)

// This file is the SQL that the sources of the model understand.

type (
	// SQL is a statement on a source. A row of an insert may leave columns out.
	SQL struct {
		// Table is the table's name, or {n} in a scenario.
		Table string
		// Insert are the rows to insert, and Columns what their values are for, if
		// not for all.
		Insert  [][]*expr
		Columns []string
		// Set is what an update sets; a statement that neither inserts nor sets
		// deletes. Where chooses the rows; nil is all.
		Set   []setting
		Where *expr
	}

	setting struct {
		column string
		value  *expr
	}

	// sqlParser reads one statement. The first error stays.
	sqlParser struct {
		tokens []string
		err    error
	}
)

// token is a string, a {n} with what follows, a name or number, or a sign.
var token = regexp.MustCompile(`^\s*('(?:[^']|'')*'|\{\d+\}\w*|[\w.]+|->>|<>|[-+*%(),=<>;])`)

func newSQLParser(text string) *sqlParser {
	p := &sqlParser{}
	for rest := text; strings.TrimSpace(rest) != ""; {
		m := token.FindStringSubmatch(rest)
		if m == nil {
			p.fail("the model does not understand %q", strings.TrimSpace(rest))
			break
		}
		p.tokens = append(p.tokens, m[1])
		rest = rest[len(m[0]):]
	}
	return p
}

func (p *sqlParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.tokens = nil
}

func (p *sqlParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *sqlParser) next() string {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes these words, if they are next.
func (p *sqlParser) accept(words ...string) bool {
	for i, word := range words {
		if i >= len(p.tokens) || !strings.EqualFold(p.tokens[i], word) {
			return false
		}
	}
	p.tokens = p.tokens[len(words):]
	return true
}

func (p *sqlParser) expect(word string) {
	if t := p.peek(); !p.accept(word) {
		p.fail("the model expects %q instead of %q", word, t)
	}
}

// ParseSQL reads an insert, an update or a delete.
func ParseSQL(text string) (*SQL, error) {
	p := newSQLParser(text)
	s := &SQL{}
	switch {
	case p.accept("insert", "into"):
		s.Table = p.next()
		p.insert(s)
	case p.accept("update"):
		s.Table = p.next()
		p.expect("set")
		for p.err == nil {
			column := p.next()
			p.expect("=")
			s.Set = append(s.Set, setting{column, p.sum()})
			if !p.accept(",") {
				break
			}
		}
		p.where(s)
	case p.accept("delete", "from"):
		s.Table = p.next()
		p.where(s)
	default:
		p.fail("the model has no such statement")
	}
	if t := p.peek(); t != "" {
		p.fail("the model does not understand %q", t)
	}
	if p.err != nil {
		return nil, fmt.Errorf("%s: %w", text, p.err)
	}
	return s, nil
}

func (p *sqlParser) insert(s *SQL) {
	if p.accept("(") {
		for p.err == nil {
			s.Columns = append(s.Columns, p.next())
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	p.expect("values")
	for p.err == nil {
		p.expect("(")
		s.Insert = append(s.Insert, p.list())
		if !p.accept(",") {
			return
		}
	}
}

func (p *sqlParser) where(s *SQL) {
	if p.accept("where") {
		s.Where = p.condition()
	}
}

// list reads expressions up to the parenthesis that ends them.
func (p *sqlParser) list() (all []*expr) {
	for p.err == nil && !p.accept(")") {
		all = append(all, p.sum())
		if p.peek() != ")" {
			p.expect(",")
		}
	}
	return all
}

func (p *sqlParser) condition() *expr {
	e := p.comparison()
	for p.err == nil && p.accept("and") {
		e = &expr{op: "and", args: []*expr{e, p.comparison()}}
	}
	return e
}

func (p *sqlParser) comparison() *expr {
	e := p.sum()
	switch {
	case p.accept("in"):
		p.expect("(")
		return &expr{op: "in", args: append([]*expr{e}, p.list()...)}
	case p.accept("between"):
		low := p.sum()
		p.expect("and")
		return &expr{op: "between", args: []*expr{e, low, p.sum()}}
	case p.accept("="):
		return &expr{op: "=", args: []*expr{e, p.sum()}}
	}
	p.fail("the model does not understand the condition at %q", p.peek())
	return e
}

func (p *sqlParser) sum() *expr {
	e := p.product()
	for p.err == nil && (p.peek() == "+" || p.peek() == "-") {
		e = &expr{op: p.next(), args: []*expr{e, p.product()}}
	}
	return e
}

func (p *sqlParser) product() *expr {
	e := p.operand()
	for p.err == nil && (p.peek() == "*" || p.peek() == "%") {
		e = &expr{op: p.next(), args: []*expr{e, p.operand()}}
	}
	return e
}

func (p *sqlParser) operand() *expr {
	switch t := p.next(); {
	case t == "":
		p.fail("the statement ends too early")
	case t == "(":
		e := p.sum()
		p.expect(")")
		return e
	case t == "-":
		return &expr{value: "-" + p.next()}
	case t[0] == '\'':
		return &expr{value: strings.ReplaceAll(t[1:len(t)-1], "''", "'")}
	case t[0] >= '0' && t[0] <= '9':
		return &expr{value: t}
	case strings.EqualFold(t, "null"):
		return &expr{value: Null}
	case p.accept("("):
		return &expr{op: strings.ToLower(t), args: p.list()}
	default:
		return &expr{op: "column", value: t}
	}
	return &expr{}
}

// String writes the statement.
func (s *SQL) String() string {
	var b strings.Builder
	switch {
	case s.Insert != nil:
		b.WriteString("insert into " + s.Table)
		if s.Columns != nil {
			b.WriteString(" (" + strings.Join(s.Columns, ",") + ")")
		}
		b.WriteString(" values ")
		for i, tuple := range s.Insert {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("(" + joinExprs(tuple) + ")")
		}
		return b.String()
	case s.Set != nil:
		b.WriteString("update " + s.Table + " set ")
		for i, set := range s.Set {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(set.column + "=" + set.value.String())
		}
	default:
		b.WriteString("delete from " + s.Table)
	}
	if s.Where != nil {
		b.WriteString(" where " + s.Where.String())
	}
	return b.String()
}

// afters returns what the statement makes of a row: the rows of an insert, one of
// an update, and nil of a delete.
func (s *SQL) afters(table *TableDef, before Row) (rows []Row, err error) {
	if s.Insert == nil && s.Set == nil {
		return []Row{nil}, nil
	}
	if s.Insert == nil {
		after := slices.Clone(before)
		// MySQL makes the assignments from left to right.
		for _, set := range s.Set {
			if err := after.set(table, set.column, set.value); err != nil {
				return nil, err
			}
		}
		return []Row{table.complete(after)}, nil
	}
	columns := s.Columns
	if columns == nil {
		for _, c := range table.Columns {
			columns = append(columns, c.Name)
		}
	}
	for _, tuple := range s.Insert {
		if len(tuple) != len(columns) {
			return nil, fmt.Errorf("%s: %d values for %d columns", s, len(tuple), len(columns))
		}
		row := slices.Repeat(Row{Null}, len(table.Columns))
		for i, value := range tuple {
			if err := row.set(table, columns[i], value); err != nil {
				return nil, err
			}
		}
		rows = append(rows, table.complete(row))
	}
	return rows, nil
}

func (row Row) set(table *TableDef, column string, value *expr) error {
	i := table.column(column)
	if i < 0 {
		return fmt.Errorf("table %s has no column %s", table.Name, column)
	}
	v, err := value.eval(table, row)
	if err != nil {
		return err
	}
	if v != Null && table.Columns[i].JSON {
		// As it would be read again.
		if v, err = patched(v, "{}"); err != nil {
			return err
		}
	}
	row[i] = v
	return nil
}

// keyOf returns the primary key that a condition asks for, if it asks for one.
func (t *TableDef) keyOf(condition *expr) (key string, ok bool) {
	row := make(Row, len(t.Columns))
	found := 0
	for c := condition; c != nil; {
		equation := c
		c = nil
		if equation.op == "and" {
			c, equation = equation.args[0], equation.args[1]
		}
		if equation.op != "=" || equation.args[0].op != "column" || equation.args[1].op != "" {
			return "", false
		}
		i := t.column(equation.args[0].value)
		if i < 0 || !slices.Contains(t.Key, i) || row[i] != "" {
			return "", false
		}
		row[i] = equation.args[1].value
		found++
	}
	return t.key(t.complete(row)), found == len(t.Key)
}
