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

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is how the model of vplayer writes statements.

// plan is a new plan of a table, as each FIELD event makes one.
func (p *Player) plan(name string) *mergebackoff.Table {
	def := p.DB.tables[name]
	table := &mergebackoff.Table{Name: name, Columns: len(def.Columns), Key: def.Key, Plan: def, Refuse: def.Refuse}
	for _, c := range def.Columns {
		table.JSON = append(table.JSON, c.JSON)
		table.Names = append(table.Names, c.Name)
	}
	if def.NoKey {
		table.InOrder = "it has no unique key"
		return table
	}
	table.Unique = []mergebackoff.UniqueKey{{Name: "PRIMARY", Columns: def.Key}}
	for _, key := range def.Unique {
		columns := key.Columns
		for _, i := range columns {
			if p.Opaque || def.Columns[i].Generated != nil {
				columns = nil
			}
		}
		table.Unique = append(table.Unique, mergebackoff.UniqueKey{Name: key.Name, Columns: columns})
	}
	return table
}

// Render packs rows into one statement, unless that would be larger than a batch.
func (p *Player) Render(changes []mergebackoff.Change) (statements []string, err error) {
	def := changes[0].Table.Plan.(*TableDef)
	if len(changes) == 1 {
		return p.render(def, changes[0].Row.CloneVT(), changes[0].Recreates())
	}
	rows := make([]*binlogdatapb.RowChange, len(changes))
	for i, change := range changes {
		rows[i] = change.Row
	}
	return p.renderBulk(def, rows), nil
}

// renderBulk writes rows that are all to be deleted, or all to be inserted.
func (p *Player) renderBulk(def *TableDef, changes []*binlogdatapb.RowChange) (statements []string) {
	size, from := 0, 0
	for i, change := range changes {
		length := 16 + len(change.GetAfter().GetValues())
		if i > from && size+length > p.MaxBatch {
			statements = append(statements, p.bulk(def, changes[from:i]))
			size, from = 0, i
		}
		size += length
	}
	return append(statements, p.bulk(def, changes[from:]))
}

func (p *Player) bulk(def *TableDef, changes []*binlogdatapb.RowChange) string {
	s := statement{table: def}
	if changes[0].After == nil {
		var all []Row
		for _, change := range changes {
			row := def.rowOf(change.Before)
			s.deletes = append(s.deletes, def.key(row))
			all = append(all, row)
		}
		s.text = deleteSQL(def, all)
	} else {
		for _, change := range changes {
			s.inserts = append(s.inserts, def.rowOf(change.After))
		}
		s.text = def.insertSQL(s.inserts)
	}
	return p.DB.register(s)
}

func (p *Player) insertion(def *TableDef, row Row) string {
	rows := []Row{row}
	return p.DB.register(statement{text: def.insertSQL(rows), table: def, inserts: rows})
}

func (p *Player) deletion(def *TableDef, row Row) string {
	return p.DB.register(statement{text: deleteSQL(def, []Row{row}), table: def, deletes: []string{def.key(row)}})
}

// render is TablePlan.applyChange. Like that it writes to the change.
func (p *Player) render(def *TableDef, change *binlogdatapb.RowChange, recreates bool) ([]string, error) {
	switch {
	case change.Before == nil:
		return []string{p.insertion(def, def.rowOf(change.After))}, nil
	case change.After == nil:
		return []string{p.deletion(def, def.rowOf(change.Before))}, nil
	}
	before, after := def.rowOf(change.Before), def.rowOf(change.After)
	json := 0
	diff := make([]bool, len(after))
	for i, c := range def.Columns {
		if !c.JSON {
			continue
		}
		if change.JsonPartialValues != nil && bitSet(change.JsonPartialValues, json) && after[i] != Null {
			diff[i] = true
			if after[i] == "" {
				change.DataColumns.Cols[i/8] &^= 1 << (i % 8)
			}
		}
		json++
	}
	carried := func(i int) bool { return change.DataColumns == nil || bitSet(change.DataColumns, i) }
	if def.sameKey(before, after) && !recreates {
		s := statement{table: def, update: def.key(before)}
		for i, value := range after {
			if carried(i) && def.Columns[i].Generated == nil {
				s.set = append(s.set, assignment{column: i, value: value, diff: diff[i]})
			}
		}
		s.text = def.updateSQL(before, s.set)
		return []string{p.DB.register(s)}, nil
	}
	var statements []string
	if !recreates {
		statements = append(statements, p.deletion(def, before))
	}
	for i := range after {
		switch {
		case diff[i]:
			if before[i] == Null {
				return nil, fmt.Errorf("no value to apply a difference to in %v", before)
			}
			value, err := patched(before[i], after[i])
			if err != nil {
				return nil, err
			}
			after[i] = value
		case !carried(i):
			return nil, fmt.Errorf("binary log event missing a needed value for %s.%s", def.Name, def.Columns[i].Name)
		}
	}
	return append(statements, p.insertion(def, after)), nil
}

func (p *Player) HolderQuery(change mergebackoff.Change, key *mergebackoff.UniqueKey) (string, error) {
	if p.Blind {
		return "", nil
	}
	def := change.Table.Plan.(*TableDef)
	row := def.complete(def.rowOf(change.Row.After))
	find, columns := def.key(row), def.Key
	var prefix map[int]int
	for i := range def.Unique {
		unique := &def.Unique[i]
		if unique.Name == key.Name {
			columns, prefix = unique.Columns, unique.Prefix
			if find = def.entry(unique, row); find == "" {
				return "", nil
			}
		}
	}
	text := def.selectSQL(def.Key, row, columns, prefix)
	return p.DB.register(statement{text: text, table: def, find: find}), nil
}

func (p *Player) RowQuery(deletion mergebackoff.Change) (string, error) {
	def := deletion.Table.Plan.(*TableDef)
	row := def.rowOf(deletion.Row.Before)
	text := def.selectSQL(nil, row, def.Key, nil)
	return p.DB.register(statement{text: text, table: def, find: def.key(row), whole: true}), nil
}

// The texts of statements are SQL, so that a real MySQL understands them as well.

func (t *TableDef) insertSQL(rows []Row) string {
	text := append(make([]byte, 0, 128), "insert into "+t.Name+"("...)
	comma := ""
	for _, c := range t.Columns {
		if c.Generated == nil {
			text = append(append(text, comma...), c.Name...)
			comma = ","
		}
	}
	text = append(text, ") values "...)
	for k, row := range rows {
		if k > 0 {
			text = append(text, ',')
		}
		comma = "("
		for i, value := range row {
			if t.Columns[i].Generated == nil {
				text = append(append(text, comma...), literalSQL(value)...)
				comma = ","
			}
		}
		text = append(text, ')')
	}
	return string(text)
}

func deleteSQL(t *TableDef, rows []Row) string {
	conditions := make([]string, len(rows))
	for i, row := range rows {
		conditions[i] = t.whereSQL(row, t.Key, nil)
	}
	return "delete from " + t.Name + " where " + strings.Join(conditions, " or ")
}

func (t *TableDef) updateSQL(row Row, set []assignment) string {
	var b strings.Builder
	b.WriteString("update " + t.Name + " set ")
	for i, a := range set {
		if i > 0 {
			b.WriteString(", ")
		}
		name := t.Columns[a.column].Name
		value := literalSQL(a.value)
		if a.diff {
			value = "json_merge_patch(" + name + ", " + value + ")"
		}
		b.WriteString(name + "=" + value)
	}
	b.WriteString(" where " + t.whereSQL(row, t.Key, nil))
	return b.String()
}

func (t *TableDef) selectSQL(columns []int, row Row, by []int, prefix map[int]int) string {
	names := "*"
	for i, c := range columns {
		if i == 0 {
			names = t.Columns[c].Name
		} else {
			names += "," + t.Columns[c].Name
		}
	}
	return "select " + names + " from " + t.Name + " where " + t.whereSQL(row, by, prefix)
}

func (t *TableDef) whereSQL(row Row, columns []int, prefix map[int]int) string {
	terms := make([]string, 0, len(columns))
	for _, i := range columns {
		name, value := t.Columns[i].Name, literalSQL(row[i])
		if n := prefix[i]; n > 0 {
			name, value = fmt.Sprintf("left(%s,%d)", name, n), fmt.Sprintf("left(%s,%d)", value, n)
		}
		terms = append(terms, name+"="+value)
	}
	return strings.Join(terms, " and ")
}
