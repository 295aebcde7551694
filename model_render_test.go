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
	"maps"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is how the model of vplayer writes statements.

func (p *Player) Render(changes []mergebackoff.Change) (statements []string, err error) {
	for _, change := range changes {
		more, err := p.render(change.Table.Plan.(*TableDef), change.Row.CloneVT(), change.Recreates())
		if err != nil {
			return nil, err
		}
		statements = append(statements, more...)
	}
	return statements, nil
}

func (p *Player) HolderQuery(change mergebackoff.Change, key *mergebackoff.UniqueKey) (string, error) {
	if p.Blind {
		return "", nil
	}
	def := change.Table.Plan.(*TableDef)
	row := rowOf(change.Row.After)
	find := def.key(row)
	for _, unique := range def.Unique {
		if unique.Name == key.Name {
			if find = def.entry(unique, row); find == "" {
				return "", nil
			}
		}
	}
	return p.DB.register(statement{text: "select " + find, table: def, find: find}), nil
}

func (p *Player) RowQuery(deletion mergebackoff.Change) (string, error) {
	def := deletion.Table.Plan.(*TableDef)
	key := def.key(rowOf(deletion.Row.Before))
	return p.DB.register(statement{text: "select * " + key, table: def, find: key, whole: true}), nil
}

// render is TablePlan.applyChange. Like that it writes to the change.
func (p *Player) render(def *TableDef, change *binlogdatapb.RowChange, recreates bool) ([]string, error) {
	var before, after Row
	if change.Before != nil {
		before = rowOf(change.Before)
	}
	if change.After != nil {
		after = rowOf(change.After)
	}
	del := func() string {
		key := def.key(before)
		return p.DB.register(statement{text: "delete " + key, table: def, delete: key})
	}
	ins := func(row Row) string {
		return p.DB.register(statement{text: "insert into " + def.Name + " values (" + strings.Join(row, ", ") + ")", table: def, insert: row})
	}
	json := 0
	diff := make(map[int]bool)
	for i, c := range def.Columns {
		if !c.JSON {
			continue
		}
		if change.JsonPartialValues != nil && bitSet(change.JsonPartialValues, json) && after != nil && after[i] != Null {
			diff[i] = true
			if after[i] == "" {
				change.DataColumns.Cols[i/8] &^= 1 << (i % 8)
			}
		}
		json++
	}
	switch {
	case before == nil:
		return []string{ins(after)}, nil
	case after == nil:
		return []string{del()}, nil
	case def.key(before) == def.key(after) && !recreates:
		s := statement{table: def, update: def.key(before)}
		var texts []string
		for i, value := range after {
			if change.DataColumns == nil || bitSet(change.DataColumns, i) {
				s.set = append(s.set, assignment{column: i, value: value, diff: diff[i]})
				texts = append(texts, fmt.Sprintf("%s=%s", def.Columns[i].Name, value))
			}
		}
		s.text = "update " + s.update + " set " + strings.Join(texts, ", ")
		if len(diff) > 0 {
			s.text += " with differences"
		}
		return []string{p.DB.register(s)}, nil
	}
	var statements []string
	if !recreates {
		statements = append(statements, del())
	}
	for i := range after {
		switch {
		case diff[i]:
			if before[i] == Null {
				return nil, fmt.Errorf("no value to apply a difference to in %v", before)
			}
			after[i] = before[i] + after[i]
		case change.DataColumns != nil && !bitSet(change.DataColumns, i):
			return nil, fmt.Errorf("binary log event missing a needed value for %s.%s", def.Name, def.Columns[i].Name)
		}
	}
	return append(statements, ins(after)), nil
}

// PlannedTables are the names of the target's tables.
func (db *Database) PlannedTables() []string {
	return slices.Sorted(maps.Keys(db.tables))
}
