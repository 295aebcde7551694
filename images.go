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
	"bytes"
	"slices"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
)

// column returns the bytes of a column of an image; nil is NULL, or a column
// that the image does not carry.
func column(row *querypb.Row, index int) []byte {
	offset := int64(0)
	for i, length := range row.Lengths {
		if i == index {
			if length < 0 {
				return nil
			}
			return row.Values[offset : offset+length : offset+length]
		}
		if length > 0 {
			offset += length
		}
	}
	return nil
}

// sameColumns reports whether two images agree in these columns. Columns that
// are not known agree in nothing.
func sameColumns(columns []int, a, b *querypb.Row) bool {
	if columns == nil {
		return false
	}
	for _, index := range columns {
		x, y := column(a, index), column(b, index)
		if (x == nil) != (y == nil) || !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}

// complete reports whether the after image of a change has a value for every
// column.
func complete(table *Table, change *binlogdatapb.RowChange) bool {
	return carriesAll(table, change) && !hasJSONDiff(table, change)
}

// recreatable reports whether the row that an update leaves can be inserted from
// its two images: a JSON difference can be applied to the before image's value.
// With binlog_row_image=NOBLOB that value is missing, and looks like NULL.
func recreatable(table *Table, change *binlogdatapb.RowChange) bool {
	if !carriesAll(table, change) || change.Before == nil {
		return false
	}
	for _, index := range jsonDiffs(table, change) {
		if column(change.Before, index) == nil {
			return false
		}
	}
	return true
}

// carriesAll reports whether the after image carries every column, if only as a
// difference.
func carriesAll(table *Table, change *binlogdatapb.RowChange) bool {
	if change.DataColumns == nil || change.DataColumns.Count == 0 {
		return true
	}
	differences := jsonDiffs(table, change)
	for i := range table.Columns {
		// vplayer clears the bit of an empty difference in the event itself.
		if !bit(change.DataColumns.Cols, i) && !slices.Contains(differences, i) {
			return false
		}
	}
	return true
}

func hasJSONDiff(table *Table, change *binlogdatapb.RowChange) bool {
	return len(jsonDiffs(table, change)) > 0
}

// jsonDiffs returns the columns whose after value is a difference to the before
// value. The bitmap counts JSON columns only.
func jsonDiffs(table *Table, change *binlogdatapb.RowChange) (columns []int) {
	partials := jsonPartials(change)
	if partials == nil || partials.Count == 0 {
		return nil
	}
	jsonIndex := 0
	for i, isJSON := range table.JSON {
		if !isJSON {
			continue
		}
		if bit(partials.Cols, jsonIndex) && column(change.After, i) != nil {
			columns = append(columns, i)
		}
		jsonIndex++
	}
	return columns
}

// jsonPartials returns a change's JsonPartialValues, which release lines before v22
// do not have.
func jsonPartials(change *binlogdatapb.RowChange) *binlogdatapb.RowChange_Bitmap {
	if c, ok := any(change).(interface {
		GetJsonPartialValues() *binlogdatapb.RowChange_Bitmap
	}); ok {
		return c.GetJsonPartialValues()
	}
	return nil
}

func bit(bitmap []byte, index int) bool {
	return index/8 < len(bitmap) && bitmap[index/8]&(1<<(index%8)) != 0
}

// carries reports whether the after image has a value for the column.
func carries(change *binlogdatapb.RowChange, index int) bool {
	return change.DataColumns == nil || change.DataColumns.Count == 0 || bit(change.DataColumns.Cols, index)
}

// withColumn returns a copy of an image with another value in one column.
func withColumn(row *querypb.Row, index int, value []byte) *querypb.Row {
	changed := &querypb.Row{Lengths: make([]int64, len(row.Lengths))}
	for i := range row.Lengths {
		v := column(row, i)
		if i == index {
			v = value
		}
		changed.Lengths[i] = int64(len(v))
		if v == nil {
			changed.Lengths[i] = -1
		}
		changed.Values = append(changed.Values, v...)
	}
	return changed
}
