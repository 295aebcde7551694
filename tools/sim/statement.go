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
	"strings"
)

// statement makes a statement that may or may not be valid.
func (g *generator) statement(s *Stream, table *TableDef) string {
	name := sqlName(table, s)
	keys := rowsOf(s, table)
	if len(keys) == 0 || g.rng.IntN(10) < 3 {
		n := 1
		if g.rng.IntN(6) == 0 {
			n = 2
		}
		var tuples []string
		for range n {
			row := make([]string, len(table.Columns))
			for i := range row {
				row[i] = g.value(table, i, Null)
			}
			tuples = append(tuples, "("+strings.Join(row, ",")+")")
		}
		return "insert into " + name + " values " + strings.Join(tuples, ",")
	}
	row := s.Rows[keys[g.rng.IntN(len(keys))]]
	where := g.where(table, row)
	if g.rng.IntN(10) < 3 {
		return "delete from " + name + " where " + where
	}
	var set []string
	// A row whose images lack values cannot get another primary key: vplayer
	// itself refuses that.
	keepKey := g.images.NoBlob && slices.ContainsFunc(table.Columns, func(c ColumnDef) bool { return c.Blob || c.JSON })
	for i := range table.Columns {
		if keepKey && slices.Contains(table.Key, i) {
			continue
		}
		odds := 3
		switch {
		case slices.Contains(table.Key, i):
			odds = 12
		case g.unique(table, i):
			odds = 2
		}
		if g.rng.IntN(odds) == 0 {
			set = append(set, table.Columns[i].Name+"="+g.value(table, i, row[i]))
		}
	}
	if len(set) == 0 {
		i := len(table.Columns) - 1
		set = append(set, table.Columns[i].Name+"="+g.value(table, i, row[i]))
	}
	return "update " + name + " set " + strings.Join(set, ", ") + " where " + where
}

func sqlName(table *TableDef, s *Stream) string {
	return fmt.Sprintf("{%d}%s", s.ID-1, strings.TrimPrefix(table.Name, "t"))
}

func (g *generator) where(table *TableDef, row Row) string {
	var parts []string
	for _, i := range table.Key {
		parts = append(parts, table.Columns[i].Name+"="+row[i])
	}
	return strings.Join(parts, " and ")
}

func (g *generator) unique(table *TableDef, column int) bool {
	return slices.ContainsFunc(table.Unique, func(key KeyDef) bool { return slices.Contains(key.Columns, column) })
}

func (g *generator) value(table *TableDef, column int, before string) string {
	c := table.Columns[column]
	switch {
	case slices.Contains(table.Key, column):
		if len(table.Key) > 1 {
			return fmt.Sprint(1 + g.rng.IntN(3))
		}
		return fmt.Sprint(1 + g.rng.IntN(g.ids))
	case g.unique(table, column):
		if g.rng.IntN(6) == 0 {
			return "null"
		}
		return fmt.Sprint(10 * (1 + g.rng.IntN(g.values)))
	case c.JSON && before != Null && len(before) < 20 && g.rng.IntN(4) > 0:
		g.docs++
		return fmt.Sprintf("'%s+%d'", before, g.docs)
	}
	g.docs++
	return fmt.Sprintf("'v%d'", g.docs)
}

// exchange has rows on different sources exchange values, or move, at once.
func (g *generator) exchange(n int) (parts []Action) {
	table := g.table()
	type place struct {
		s   *Stream
		row Row
	}
	var places []place
	for _, i := range g.rng.Perm(len(g.world.Streams)) {
		s := g.world.Streams[i]
		if keys := rowsOf(s, table); len(keys) > 0 {
			places = append(places, place{s, s.Rows[keys[g.rng.IntN(len(keys))]]})
		}
	}
	if len(places) < 2 {
		return nil
	}
	places = places[:min(n, len(places))]
	unique := table.Unique[g.rng.IntN(len(table.Unique))]
	for i, p := range places {
		next := places[(i+1)%len(places)].row
		part := Action{Kind: Transaction, Stream: int(p.s.ID) - 1}
		name, where := sqlName(table, p.s), g.where(table, p.row)
		if g.rng.IntN(3) == 0 {
			// Each gets the other's whole row.
			values := make([]string, len(next))
			for c, value := range next {
				values[c] = quote(table, c, value)
			}
			part.SQL = []string{"delete from " + name + " where " + where, "insert into " + name + " values (" + strings.Join(values, ",") + ")"}
		} else {
			var set, clear []string
			for _, c := range unique.Columns {
				set = append(set, table.Columns[c].Name+"="+quote(table, c, next[c]))
				clear = append(clear, table.Columns[c].Name+"=null")
			}
			if g.rng.IntN(2) == 0 {
				part.SQL = append(part.SQL, "update "+name+" set "+strings.Join(clear, ", ")+" where "+where)
			}
			part.SQL = append(part.SQL, "update "+name+" set "+strings.Join(set, ", ")+" where "+where)
		}
		parts = append(parts, part)
	}
	return parts
}

func quote(table *TableDef, column int, value string) string {
	if value == Null {
		return "null"
	}
	if strings.Trim(value, "0123456789") == "" {
		return value
	}
	return "'" + value + "'"
}

// duplicate makes a transaction after which two sources hold one value.
func (g *generator) duplicate() *Action {
	for range 200 {
		if action := g.attempt(false, g.one()); action != nil {
			return action
		}
	}
	return nil
}
