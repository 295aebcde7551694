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

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// transaction makes one transaction, or several of one application transaction.
func (g *generator) transaction() *Action {
	for range 20 {
		var parts []Action
		n := 1
		if g.rng.IntN(8) == 0 {
			n = 2 + g.rng.IntN(2)
		}
		if n > 1 && g.rng.IntN(2) == 0 {
			parts = g.exchange(n)
		} else {
			for range n {
				parts = append(parts, g.one())
			}
		}
		if len(parts) == 0 || slices.ContainsFunc(parts, func(a Action) bool { return len(a.SQL) == 0 || g.gone[a.Stream] }) {
			continue
		}
		if action := g.attempt(true, parts...); action != nil {
			return action
		}
	}
	return nil
}

// one is a transaction of a few statements on one source, which may leave the
// sources invalid.
func (g *generator) one() Action {
	stream := g.rng.IntN(len(g.world.Streams))
	s := g.world.Streams[stream]
	action := Action{Kind: Transaction, Stream: stream}
	table := g.table()
	n := 1
	if g.rng.IntN(4) == 0 {
		n = 2 + g.rng.IntN(3)
	}
	for range n {
		if g.rng.IntN(4) == 0 {
			table = g.table()
		}
		sql := g.statement(stream, table)
		// The next one has to do with what this one leaves.
		if _, err := s.Execute([]*SQL{sql}); err == nil {
			action.SQL = append(action.SQL, sql)
		}
	}
	for range action.SQL {
		s.Revert()
	}
	return action
}

func (g *generator) table() *TableDef {
	return g.tables[g.rng.IntN(len(g.tables))]
}

// statement makes a statement that may or may not be valid.
func (g *generator) statement(stream int, table *TableDef) *SQL {
	sql := &SQL{Table: sqlName(table, stream)}
	row := g.someRow(stream, table)
	if row == nil || g.rng.IntN(10) < 3 {
		g.insert(sql, stream, table)
		return sql
	}
	sql.Where = g.where(table, row)
	if g.rng.IntN(10) >= 3 {
		g.update(sql, stream, table, row)
	}
	return sql
}

// someRow is a row of the source, or nil.
func (g *generator) someRow(stream int, table *TableDef) Row {
	keys := g.keys[stream][slices.Index(g.tables, table)]
	if len(keys) == 0 {
		return nil
	}
	return g.world.Streams[stream].Rows()[keys[g.rng.IntN(len(keys))]]
}

func (g *generator) insert(sql *SQL, stream int, table *TableDef) {
	generated := slices.ContainsFunc(table.Columns, func(c ColumnDef) bool { return c.Generated != nil })
	n := 1
	if g.rng.IntN(6) == 0 {
		n = 2
	}
	for range n {
		var values []*expr
		for i, c := range table.Columns {
			if c.Generated == nil {
				values = append(values, g.value(stream, table, i, Null))
			}
		}
		sql.Insert = append(sql.Insert, values)
	}
	if !generated {
		return
	}
	for _, c := range table.Columns {
		if c.Generated == nil {
			sql.Columns = append(sql.Columns, c.Name)
		}
	}
}

func (g *generator) update(sql *SQL, stream int, table *TableDef, row Row) {
	// A row whose images lack values cannot get another primary key: vplayer
	// itself refuses that.
	keepKey := g.h.Images.NoBlob && slices.ContainsFunc(table.Columns, func(c ColumnDef) bool { return c.Blob })
	for i, c := range table.Columns {
		isKey := !table.NoKey && slices.Contains(table.Key, i)
		if isKey && keepKey || c.Generated != nil || table.NoKey && c.Name != "val" {
			continue
		}
		odds := 3
		switch {
		case isKey:
			odds = 12
		case unique(table, i):
			odds = 2
		}
		if g.rng.IntN(odds) == 0 {
			sql.Set = append(sql.Set, setting{c.Name, g.value(stream, table, i, row[i])})
		}
	}
	if len(sql.Set) == 0 {
		i := len(table.Columns) - 1
		sql.Set = append(sql.Set, setting{table.Columns[i].Name, g.value(stream, table, i, row[i])})
	}
}

func sqlName(table *TableDef, stream int) string {
	return "{" + strconv.Itoa(stream) + "}" + strings.TrimPrefix(table.Name, "t")
}

// where chooses a row by its primary key.
func (g *generator) where(table *TableDef, row Row) *expr {
	var all *expr
	for _, i := range table.Key {
		e := &expr{op: "=", args: []*expr{{op: "column", value: table.Columns[i].Name}, literal(row[i])}}
		if all != nil {
			e = &expr{op: "and", args: []*expr{all, e}}
		}
		all = e
	}
	return all
}

// unique reports whether a column is part of a unique key, if only by what is
// generated from it.
func unique(table *TableDef, column int) bool {
	return slices.ContainsFunc(table.Unique, func(key KeyDef) bool {
		return slices.ContainsFunc(key.Columns, func(i int) bool {
			c := &table.Columns[i]
			return i == column || c.Generated != nil && c.Generated.String() == table.Columns[column].Name+"*10"
		})
	})
}

// names are values of a text that is a key: some are equal to MySQL.
var names = []string{"ann", "Ann", "ANN", "bob", "Bobby", "änn", "cid", "cidre", "dora"}

func (g *generator) value(stream int, table *TableDef, column int, before string) *expr {
	c := &table.Columns[column]
	number := func(n int) *expr { return literal(strconv.Itoa(1 + g.rng.IntN(n))) }
	switch isKey, isUnique := slices.Contains(table.Key, column), unique(table, column); {
	case table.NoKey:
		return g.logValue(stream, c)
	case c.Enum != nil:
		return literal(c.Enum[g.rng.IntN(len(c.Enum))])
	case c.Fold != nil && (isKey || isUnique && g.rng.IntN(6) > 0):
		return literal(names[g.rng.IntN(len(names))])
	case isKey && len(table.Key) > 1:
		return number(3)
	case isKey:
		return number(g.ids)
	case isUnique && g.rng.IntN(6) == 0:
		return literal(Null)
	case isUnique:
		return literal(strconv.Itoa(10 * (1 + g.rng.IntN(g.values))))
	case c.JSON:
		return g.document(c.Name, before)
	}
	g.docs++
	return literal("v" + strconv.Itoa(g.docs))
}

// logValue is a value of a table without any key, whose rows are all different.
func (g *generator) logValue(stream int, c *ColumnDef) *expr {
	g.docs++
	switch c.Name {
	case "source":
		return literal(strconv.Itoa(stream))
	case "seq":
		return literal(strconv.Itoa(g.docs))
	}
	return literal("v" + strconv.Itoa(g.docs))
}

// document is a new document, or the one before with a step.
func (g *generator) document(column, before string) *expr {
	g.docs++
	name, value := string(rune('a'+g.rng.IntN(3))), literal(strconv.Itoa(g.docs))
	if before == Null || g.rng.IntN(4) == 0 {
		pad := fmt.Sprintf("p%d", g.docs)
		return &expr{op: "json_object", args: []*expr{literal(name), value, literal("pad"), literal(strings.Repeat(pad, g.rng.IntN(6)))}}
	}
	own := &expr{op: "column", value: column}
	if g.rng.IntN(5) == 0 {
		return &expr{op: "json_remove", args: []*expr{own, literal("$." + name)}}
	}
	return &expr{op: "json_set", args: []*expr{own, literal("$." + name), value}}
}

// exchange has rows on different sources exchange values, or move, at once.
func (g *generator) exchange(n int) (parts []Action) {
	table := g.table()
	if len(table.Unique) == 0 {
		return nil
	}
	type place struct {
		stream int
		row    Row
	}
	var places []place
	for _, i := range g.rng.Perm(len(g.world.Streams)) {
		if row := g.someRow(i, table); row != nil {
			places = append(places, place{i, row})
		}
	}
	if len(places) < 2 {
		return nil
	}
	places = places[:min(n, len(places))]
	key := table.Unique[g.rng.IntN(len(table.Unique))]
	for i, p := range places {
		next := places[(i+1)%len(places)].row
		part := Action{Kind: Transaction, Stream: p.stream}
		if g.rng.IntN(3) == 0 {
			part.SQL = g.replace(p.stream, table, p.row, next)
		} else {
			part.SQL = g.takeValue(p.stream, table, key, p.row, next)
		}
		parts = append(parts, part)
	}
	return parts
}

// replace has a row make place for another.
func (g *generator) replace(stream int, table *TableDef, row, next Row) []*SQL {
	insert := &SQL{Table: sqlName(table, stream), Insert: [][]*expr{nil}}
	for i, c := range table.Columns {
		if c.Generated == nil {
			insert.Columns = append(insert.Columns, c.Name)
			insert.Insert[0] = append(insert.Insert[0], literal(next[i]))
		}
	}
	return []*SQL{{Table: insert.Table, Where: g.where(table, row)}, insert}
}

// takeValue has a row take the value of another in a unique key.
func (g *generator) takeValue(stream int, table *TableDef, key KeyDef, row, next Row) (all []*SQL) {
	set := &SQL{Table: sqlName(table, stream), Where: g.where(table, row)}
	clear := &SQL{Table: set.Table, Where: set.Where}
	for _, i := range key.Columns {
		c := &table.Columns[i]
		if c.Generated != nil {
			// It follows the one that it is made of.
			i = table.column(c.Generated.args[0].value)
			c = &table.Columns[i]
		}
		set.Set = append(set.Set, setting{c.Name, literal(next[i])})
		clear.Set = append(clear.Set, setting{c.Name, literal(Null)})
	}
	if g.rng.IntN(2) == 0 {
		all = append(all, clear)
	}
	return append(all, set)
}

// duplicate makes a transaction after which two sources hold one value, and one
// that undoes it.
func (g *generator) duplicate() (duplicate, repair *Action) {
	for range 200 {
		one := g.one()
		if g.gone[one.Stream] {
			continue
		}
		action := g.attempt(false, one)
		if action == nil {
			continue
		}
		repair := &Action{Kind: Transaction, Stream: action.Stream}
		s := g.world.Streams[action.Stream]
		for _, delta := range s.Log[len(s.Log)-1].Rows {
			if delta.After == nil {
				continue
			}
			if row := s.Rows()[delta.Table.key(delta.After)]; row != nil && slices.Equal(row, delta.After) {
				repair.SQL = append(repair.SQL, &SQL{Table: sqlName(delta.Table, action.Stream), Where: g.where(delta.Table, row)})
			}
		}
		if repair = g.attempt(true, *repair); repair != nil {
			return action, repair
		}
		g.world.Streams[action.Stream].Revert()
	}
	return nil, nil
}
