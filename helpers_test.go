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
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
)

// image builds a row image: strings and numbers are values, nil is NULL, or a
// column that the image does not carry.
func image(values ...any) *querypb.Row {
	row := &querypb.Row{}
	for _, value := range values {
		if value == nil {
			row.Lengths = append(row.Lengths, -1)
			continue
		}
		text := fmt.Sprint(value)
		row.Lengths = append(row.Lengths, int64(len(text)))
		row.Values = append(row.Values, text...)
	}
	return row
}

// show writes an image as people do.
func show(row *querypb.Row) string {
	if row == nil {
		return "-"
	}
	values := make([]string, len(row.Lengths))
	for i := range row.Lengths {
		values[i] = "NULL"
		if v := column(row, i); v != nil {
			values[i] = string(v)
		}
	}
	return strings.Join(values, ",")
}

func insertOf(after *querypb.Row) *binlogdatapb.RowChange {
	return &binlogdatapb.RowChange{After: after}
}

func deleteOf(before *querypb.Row) *binlogdatapb.RowChange {
	return &binlogdatapb.RowChange{Before: before}
}

func updateOf(before, after *querypb.Row) *binlogdatapb.RowChange {
	return &binlogdatapb.RowChange{Before: before, After: after}
}

// bitmap sets the bits of these columns, of count columns.
func bitmap(count int, columns ...int) *binlogdatapb.RowChange_Bitmap {
	b := &binlogdatapb.RowChange_Bitmap{Count: int64(count), Cols: make([]byte, (count+7)/8)}
	for _, c := range columns {
		b.Cols[c/8] |= 1 << (c % 8)
	}
	return b
}

// partialOf is an update whose after image carries only some columns.
func partialOf(before, after *querypb.Row, carried ...int) *binlogdatapb.RowChange {
	return &binlogdatapb.RowChange{Before: before, After: after, DataColumns: bitmap(len(after.Lengths), carried...)}
}

func rowsOf(table string, changes ...*binlogdatapb.RowChange) *binlogdatapb.VEvent {
	return &binlogdatapb.VEvent{
		Type:     binlogdatapb.VEventType_ROW,
		RowEvent: &binlogdatapb.RowEvent{TableName: table, RowChanges: changes},
	}
}

func eventOf(t binlogdatapb.VEventType) *binlogdatapb.VEvent {
	return &binlogdatapb.VEvent{Type: t}
}

func beginEvent() *binlogdatapb.VEvent     { return eventOf(binlogdatapb.VEventType_BEGIN) }
func heartbeatEvent() *binlogdatapb.VEvent { return eventOf(binlogdatapb.VEventType_HEARTBEAT) }
func otherEvent() *binlogdatapb.VEvent     { return eventOf(binlogdatapb.VEventType_OTHER) }
func ddlEvent() *binlogdatapb.VEvent       { return eventOf(binlogdatapb.VEventType_DDL) }

func commitEvent(timestamp int64) *binlogdatapb.VEvent {
	return &binlogdatapb.VEvent{Type: binlogdatapb.VEventType_COMMIT, Timestamp: timestamp}
}

func gtidEvent(gtid string) *binlogdatapb.VEvent {
	return &binlogdatapb.VEvent{Type: binlogdatapb.VEventType_GTID, Gtid: gtid}
}

func fieldEvent(table string) *binlogdatapb.VEvent {
	return &binlogdatapb.VEvent{Type: binlogdatapb.VEventType_FIELD, FieldEvent: &binlogdatapb.FieldEvent{TableName: table}}
}

// transactionOf is what a source sends of one transaction.
func transactionOf(gtid string, timestamp int64, rows ...*binlogdatapb.VEvent) []*binlogdatapb.VEvent {
	events := append([]*binlogdatapb.VEvent{beginEvent()}, rows...)
	return append(events, gtidEvent(gtid), commitEvent(timestamp))
}

// testTable has the columns id (the primary key), uid (unique), val, and doc,
// which is JSON.
func testTable() *Table {
	return &Table{
		Name:    "t",
		Columns: 4,
		JSON:    []bool{false, false, false, true},
		Key:     []int{0},
		Unique:  []UniqueKey{{Name: "PRIMARY", Columns: []int{0}}, {Name: "uid_uk", Columns: []int{1}}},
	}
}

// fakePlanner plans every table in one way.
type fakePlanner struct {
	tables   map[string]*Table
	skipsDDL bool
	stop     string
	plans    int
	err      error
}

func (p *fakePlanner) Table(name string) (*Table, error) { return p.tables[name], p.err }

func (p *fakePlanner) Plan(event *binlogdatapb.FieldEvent) (*Table, error) {
	p.plans++
	if p.err != nil {
		return nil, p.err
	}
	table := *p.tables[event.TableName]
	return &table, nil
}

func (p *fakePlanner) SkipsDDL() bool           { return p.skipsDDL }
func (p *fakePlanner) StopsAt(gtid string) bool { return p.stop != "" && gtid >= p.stop }

// duplicateError is MySQL's answer to a duplicate key, as the client returns it.
func duplicateError(entry, key string) error {
	return sqlerror.NewSQLErrorf(sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, "Duplicate entry '%s' for key '%s' during query: insert into t", entry, key)
}

func lockError(number sqlerror.ErrorCode) error {
	return sqlerror.NewSQLError(number, sqlerror.SSUnknownSQLState, "try restarting transaction")
}

func noRows() *sqltypes.Result { return &sqltypes.Result{} }

// fold returns the net effect of changes of one table.
func fold(t *testing.T, table *Table, changes ...*binlogdatapb.RowChange) *netEffect {
	t.Helper()
	ne := newNetEffect()
	require.NoError(t, ne.add(table, rowsOf(table.Name, changes...).RowEvent))
	return ne
}
