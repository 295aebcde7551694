//go:build go1.24

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

package mergebackoff

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// written writes changes as people do: -row is a delete, before>after an update,
// +row an insert, +(before>after) the insert of an update's after image.
func written(changes []Change) (texts []string) {
	for _, c := range changes {
		switch {
		case c.kind == changeDelete:
			texts = append(texts, "-"+show(c.Row.Before))
		case c.kind == changeInsert:
			texts = append(texts, "+"+show(c.Row.After))
		case c.Recreates():
			texts = append(texts, "+("+show(c.Row.Before)+">"+show(c.Row.After)+")")
		case c.kind == changeAsIs:
			texts = append(texts, "as is "+show(c.Row.Before)+">"+show(c.Row.After))
		default:
			texts = append(texts, show(c.Row.Before)+">"+show(c.Row.After))
		}
	}
	return texts
}

// jsonOf is an update whose JSON value, of column 3, is a difference.
func jsonOf(change *binlogdatapb.RowChange) *binlogdatapb.RowChange {
	if change.DataColumns == nil {
		change.DataColumns = bitmap(4, 0, 1, 2, 3)
	}
	change.JsonPartialValues = bitmap(1, 0)
	return change
}

// TestNetEffect: what a chain of changes of one row comes to, and which chains
// are refused.
func TestNetEffect(t *testing.T) {
	a := image(1, 10, "a", "{}")
	b := image(1, 20, "b", "{}")
	c := image(1, 30, "c", "{}")
	// sameKeys differs from a in a column of no unique index.
	sameKeys := image(1, 10, "z", "{}")
	moved := image(2, 10, "a", "{}")
	keepRow := testTable()
	keepRow.KeepRow = "column x is not written by this workflow"
	unknownKey := testTable()
	unknownKey.Unique = append(unknownKey.Unique, UniqueKey{Name: "expression"})
	inOrder := testTable()
	inOrder.InOrder = "it has no unique key"
	composite := testTable()
	composite.Key = []int{1, 2}
	noBlob := func(uid any) *binlogdatapb.RowChange {
		return partialOf(image(1, 10, nil, nil), image(1, uid, nil, nil), 0, 1)
	}

	tests := []struct {
		name                      string
		table                     *Table
		changes                   []*binlogdatapb.RowChange
		deletes, updates, inserts []string
		err                       string
	}{
		{
			name:    "insert",
			changes: []*binlogdatapb.RowChange{insertOf(a)},
			inserts: []string{"+1,10,a,{}"},
		},
		{
			name:    "delete",
			changes: []*binlogdatapb.RowChange{deleteOf(a)},
			deletes: []string{"-1,10,a,{}"},
		},
		{
			// A DELETE would remove the row that another stream has put under the
			// same key.
			name:    "insert + delete is nothing",
			changes: []*binlogdatapb.RowChange{insertOf(a), deleteOf(a)},
		},
		{
			name:    "insert + update + delete is nothing",
			changes: []*binlogdatapb.RowChange{insertOf(a), updateOf(a, b), deleteOf(b)},
		},
		{
			name:    "insert + update is an insert of the last image",
			changes: []*binlogdatapb.RowChange{insertOf(a), updateOf(a, b), updateOf(b, c)},
			inserts: []string{"+1,30,c,{}"},
		},
		{
			name:    "update that leaves the keys alone stays an update",
			changes: []*binlogdatapb.RowChange{updateOf(a, sameKeys)},
			updates: []string{"1,10,a,{}>1,10,z,{}"},
		},
		{
			name:    "update of a unique key is a delete and an insert",
			changes: []*binlogdatapb.RowChange{updateOf(a, b)},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+1,20,b,{}"},
		},
		{
			name:    "update + update goes from the first to the last",
			changes: []*binlogdatapb.RowChange{updateOf(a, b), updateOf(b, c)},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+1,30,c,{}"},
		},
		{
			name:    "updates there and back leave the keys alone",
			changes: []*binlogdatapb.RowChange{updateOf(a, b), updateOf(b, sameKeys)},
			updates: []string{"1,20,b,{}>1,10,z,{}"},
		},
		{
			name:    "update + delete deletes the row that the target holds",
			changes: []*binlogdatapb.RowChange{updateOf(a, b), deleteOf(b)},
			deletes: []string{"-1,10,a,{}"},
		},
		{
			name:    "delete + insert",
			changes: []*binlogdatapb.RowChange{deleteOf(a), insertOf(b)},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+1,20,b,{}"},
		},
		{
			name:    "delete + insert + delete is the first delete",
			changes: []*binlogdatapb.RowChange{deleteOf(a), insertOf(b), deleteOf(b)},
			deletes: []string{"-1,10,a,{}"},
		},
		{
			name:    "insert + delete + insert is the last insert",
			changes: []*binlogdatapb.RowChange{insertOf(a), deleteOf(a), insertOf(b)},
			inserts: []string{"+1,20,b,{}"},
		},
		{
			name:    "a change of the primary key is a delete and an insert",
			changes: []*binlogdatapb.RowChange{updateOf(a, moved)},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+(1,10,a,{}>2,10,a,{})"},
		},
		{
			name:    "a change of the primary key and back",
			changes: []*binlogdatapb.RowChange{updateOf(a, moved), updateOf(moved, b)},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+(2,10,a,{}>1,20,b,{})"},
		},
		{
			name:    "a change of the primary key of a new row",
			changes: []*binlogdatapb.RowChange{insertOf(a), updateOf(a, moved)},
			inserts: []string{"+(1,10,a,{}>2,10,a,{})"},
		},
		{
			name: "two rows exchange their primary keys over a third",
			changes: []*binlogdatapb.RowChange{
				updateOf(image(1, 10, "a", "{}"), image(3, 10, "a", "{}")),
				updateOf(image(2, 20, "b", "{}"), image(1, 20, "b", "{}")),
				updateOf(image(3, 10, "a", "{}"), image(2, 10, "a", "{}")),
			},
			deletes: []string{"-1,10,a,{}", "-2,20,b,{}"},
			inserts: []string{"+(2,20,b,{}>1,20,b,{})", "+(3,10,a,{}>2,10,a,{})"},
		},
		{
			// The bytes decide, with their lengths.
			name:  "composite keys that look alike",
			table: composite,
			changes: []*binlogdatapb.RowChange{
				insertOf(image(1, "a.b", "c", "{}")), insertOf(image(1, "a", "b.c", "{}")),
				insertOf(image(1, "", "x", "{}")), insertOf(image(1, nil, "x", "{}")),
			},
			inserts: []string{"+1,a.b,c,{}", "+1,a,b.c,{}", "+1,,x,{}", "+1,NULL,x,{}"},
		},
		{
			// Another column keeps its value on the target, so the row must stay.
			name:    "a row that must be kept is updated in place",
			table:   keepRow,
			changes: []*binlogdatapb.RowChange{updateOf(a, b), updateOf(b, c)},
			updates: []string{"1,20,b,{}>1,30,c,{}"},
		},
		{
			name:    "a key whose columns are not known may change with any update",
			table:   unknownKey,
			changes: []*binlogdatapb.RowChange{updateOf(a, sameKeys)},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+1,10,z,{}"},
		},
		{
			name:    "a table without unique keys is applied in order",
			table:   inOrder,
			changes: []*binlogdatapb.RowChange{insertOf(a), deleteOf(a), insertOf(a)},
			updates: []string{"as is ->1,10,a,{}", "as is 1,10,a,{}>-", "as is ->1,10,a,{}"},
		},
		{
			// NOBLOB: the after image lacks val and doc.
			name:    "an incomplete update stays an update",
			changes: []*binlogdatapb.RowChange{noBlob(20)},
			updates: []string{"1,10,NULL,NULL>1,20,NULL,NULL"},
		},
		{
			name:    "incomplete updates carry the last key",
			changes: []*binlogdatapb.RowChange{noBlob(20), noBlob(30), noBlob(40)},
			updates: []string{"1,10,NULL,NULL>1,40,NULL,NULL", "1,10,NULL,NULL>1,40,NULL,NULL", "1,10,NULL,NULL>1,40,NULL,NULL"},
		},
		{
			name:    "a new row with incomplete updates carries it as well",
			changes: []*binlogdatapb.RowChange{insertOf(a), noBlob(20), noBlob(30)},
			updates: nil,
			inserts: []string{"+1,30,a,{}", "1,10,NULL,NULL>1,30,NULL,NULL", "1,10,NULL,NULL>1,30,NULL,NULL"},
		},
		{
			name:    "a complete update behind incomplete ones replaces them",
			changes: []*binlogdatapb.RowChange{noBlob(20), updateOf(b, c)},
			deletes: []string{"-1,10,NULL,NULL"},
			inserts: []string{"+1,30,c,{}"},
		},
		{
			name:    "an incomplete row that is deleted is deleted",
			changes: []*binlogdatapb.RowChange{noBlob(20), deleteOf(b)},
			deletes: []string{"-1,10,NULL,NULL"},
		},
		{
			name:    "an incomplete change of the primary key is refused",
			changes: []*binlogdatapb.RowChange{partialOf(image(1, 10, nil, nil), image(2, 10, nil, nil), 0, 1)},
			err:     "images are not complete",
		},
		{
			// The before image has the value that the difference is to.
			name:    "a JSON difference that takes a key is recreated",
			changes: []*binlogdatapb.RowChange{jsonOf(updateOf(a, image(1, 20, "b", "json_set(%s)")))},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+(1,10,a,{}>1,20,b,json_set(%s))"},
		},
		{
			name: "JSON differences recreate from the last before image",
			changes: []*binlogdatapb.RowChange{
				jsonOf(updateOf(a, image(1, 20, "b", "one(%s)"))),
				jsonOf(updateOf(image(1, 20, "b", "{1}"), image(1, 30, "c", "two(%s)"))),
			},
			deletes: []string{"-1,10,a,{}"},
			inserts: []string{"+(1,20,b,{1}>1,30,c,two(%s))"},
		},
		{
			name: "JSON differences that leave the keys alone are applied in order",
			changes: []*binlogdatapb.RowChange{
				jsonOf(updateOf(a, image(1, 10, "b", "one(%s)"))),
				jsonOf(updateOf(image(1, 10, "b", "{1}"), image(1, 10, "c", "two(%s)"))),
			},
			updates: []string{"1,10,a,{}>1,10,b,one(%s)", "1,10,b,{1}>1,10,c,two(%s)"},
		},
		{
			name: "JSON differences without the value before carry the last key",
			changes: []*binlogdatapb.RowChange{
				jsonOf(updateOf(image(1, 10, "a", nil), image(1, 20, "b", "one(%s)"))),
				jsonOf(updateOf(image(1, 20, "b", nil), image(1, 30, "c", "two(%s)"))),
			},
			updates: []string{"1,10,a,NULL>1,30,b,one(%s)", "1,20,b,NULL>1,30,c,two(%s)"},
		},
		{
			name:    "insert + insert is corrupt",
			changes: []*binlogdatapb.RowChange{insertOf(a), insertOf(b)},
			err:     "an insert of a row that exists",
		},
		{
			name:    "update + insert is corrupt",
			changes: []*binlogdatapb.RowChange{updateOf(a, b), insertOf(b)},
			err:     "an insert of a row that exists",
		},
		{
			name:    "delete + delete is corrupt",
			changes: []*binlogdatapb.RowChange{deleteOf(a), deleteOf(a)},
			err:     "a change of a row that was deleted",
		},
		{
			name:    "delete + update is corrupt",
			changes: []*binlogdatapb.RowChange{deleteOf(a), updateOf(a, b)},
			err:     "a change of a row that was deleted",
		},
		{
			name:    "a move onto a row that exists is corrupt",
			changes: []*binlogdatapb.RowChange{insertOf(moved), updateOf(a, moved)},
			err:     "an insert of a row that exists",
		},
		{
			name:    "no image at all is corrupt",
			changes: []*binlogdatapb.RowChange{{}},
			err:     "without any image",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			table := tt.table
			if table == nil {
				table = testTable()
			}
			before := make([]*binlogdatapb.RowChange, len(tt.changes))
			for i, change := range tt.changes {
				before[i] = change.CloneVT()
			}
			ne := newNetEffect()
			err := ne.add(table, rowsOf("t", tt.changes...).RowEvent)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.ErrorContains(t, err, "table t")
				return
			}
			require.NoError(t, err)
			for range 2 {
				// An attempt that fails is made again.
				s := ne.statements(false)
				assert.Equal(t, tt.deletes, written(s.deletes), "deletes")
				assert.Equal(t, tt.updates, written(s.updates), "updates")
				assert.Equal(t, tt.inserts, written(s.inserts), "inserts")
			}
			for i, change := range tt.changes {
				assert.Equal(t, before[i].String(), change.String(), "change %d was written to", i)
			}
		})
	}
}

// TestNetEffectOverTwoPlans has a FIELD event between two changes of one row, as
// after a DDL that only moves the position: each change keeps the plan of its
// time, and the row is recreated if its columns may have changed places.
func TestNetEffectOverTwoPlans(t *testing.T) {
	older, newer := testTable(), testTable()
	newer.Names = []string{"id", "uid", "doc", "val"}
	older.Names = []string{"id", "uid", "val", "doc"}
	ne := newNetEffect()
	require.NoError(t, ne.add(older, rowsOf("t", updateOf(image(1, 10, "a", "{}"), image(1, 20, "a", "{}"))).RowEvent))
	require.NoError(t, ne.add(newer, rowsOf("t", updateOf(image(1, 20, "a", "{}"), image(1, 10, "b", "{}"))).RowEvent))
	s := ne.statements(false)
	require.Len(t, s.deletes, 1)
	require.Len(t, s.inserts, 1)
	assert.Same(t, older, s.deletes[0].Table)
	assert.Same(t, newer, s.inserts[0].Table)
	assert.Empty(t, s.updates)
}

// TestNetEffectOverADDL has a DDL between two changes of a row that leaves its
// columns as they are: a value that only the first takes is not taken, though the
// images lack a column.
func TestNetEffectOverADDL(t *testing.T) {
	older, newer := testTable(), testTable()
	ne := newNetEffect()
	require.NoError(t, ne.add(older, rowsOf("t", partialOf(image(1, 10, "a", nil), image(1, 20, "a", nil), 0, 1, 2)).RowEvent))
	require.NoError(t, ne.add(newer, rowsOf("t", partialOf(image(1, 20, "a", nil), image(1, 30, "a", nil), 0, 1, 2)).RowEvent))
	assert.Equal(t, []string{"1,10,a,NULL>1,30,a,NULL", "1,20,a,NULL>1,30,a,NULL"}, written(ne.statements(false).updates))
}
