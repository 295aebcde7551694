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
	"slices"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
)

// This file is a model of row images.

func bitSet(bitmap *binlogdatapb.RowChange_Bitmap, i int) bool {
	return bitmap.Cols[i/8]&(1<<(i%8)) != 0
}

// rowOf reads an image. A column that it does not carry looks NULL.
func (t *TableDef) rowOf(image *querypb.Row) Row {
	row := make(Row, len(image.Lengths))
	values := string(image.Values)
	for i, length := range image.Lengths {
		if length < 0 {
			row[i] = Null
			continue
		}
		row[i] = t.Columns[i].value(values[:length])
		values = values[length:]
	}
	return row
}

// Image writes a row as an image that carries some of its columns.
func (t *TableDef) Image(row Row, carried func(column int) bool) *querypb.Row {
	image := &querypb.Row{Lengths: make([]int64, len(row))}
	for i, value := range row {
		if value == Null || (carried != nil && !carried(i)) {
			image.Lengths[i] = -1
			continue
		}
		value = t.Columns[i].image(value)
		image.Lengths[i] = int64(len(value))
		image.Values = append(image.Values, value...)
	}
	return image
}

// Images says how a source writes row images.
type Images struct {
	NoBlob, PartialJSON bool
}

// Change writes the change of a row as a source does. before or after may be nil.
func (images Images) Change(def *TableDef, before, after Row) *binlogdatapb.RowChange {
	change := &binlogdatapb.RowChange{}
	if before == nil || after == nil {
		if before != nil {
			change.Before = def.Image(before, nil)
		}
		if after != nil {
			change.After = def.Image(after, nil)
		}
		return change
	}
	// A blob is left out unless it changes; a before image leaves it out in any case.
	// JSON is no blob to MySQL.
	carriedBefore := func(i int) bool { return !images.NoBlob || !def.Columns[i].Blob }
	row := slices.Clone(after)
	columns := &binlogdatapb.RowChange_Bitmap{Count: int64(len(row)), Cols: make([]byte, (len(row)+7)/8)}
	var partial *binlogdatapb.RowChange_Bitmap
	json := 0
	for i := range def.Columns {
		c := &def.Columns[i]
		if carriedBefore(i) || before[i] != after[i] {
			columns.Cols[i/8] |= 1 << (i % 8)
		}
		if !c.JSON {
			continue
		}
		if images.PartialJSON && before[i] != Null && after[i] != Null {
			if text, ok := difference(before[i], after[i]); ok {
				if partial == nil {
					partial = &binlogdatapb.RowChange_Bitmap{Cols: make([]byte, (len(row)+7)/8)}
				}
				partial.Cols[json/8] |= 1 << (json % 8)
				row[i] = text
				// It is marked as carried, even if the difference is empty.
				columns.Cols[i/8] |= 1 << (i % 8)
			}
		}
		json++
	}
	if partial != nil {
		partial.Count = int64(json)
		change.JsonPartialValues = partial
	}
	change.Before = def.Image(before, carriedBefore)
	change.After = def.Image(row, func(i int) bool { return bitSet(columns, i) })
	if images.NoBlob || partial != nil {
		change.DataColumns = columns
	}
	return change
}
