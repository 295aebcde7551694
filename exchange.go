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
	"context"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// exchange is a row whose unique values change, and whose images do not carry
// every column: with binlog_row_image=NOBLOB a blob that did not change is
// missing, and a JSON value may be a difference to one that is. Such a row cannot
// be inserted from its images. It takes four steps within the transaction: its
// updates are made with the unique values that it has, so that MySQL works out
// the rest; what the images lack is read; the row is deleted; and at last it is
// inserted with the values that it is to have.
type exchange struct {
	updates  []Change
	deletion Change
	// steps are the updates as the source made them.
	steps []Change
}

// exchangeable reports whether the row may be written as an exchange.
func (c *chain) exchangeable() bool {
	if !c.keysChange() || c.last().Table.KeepRow != "" {
		return false
	}
	for _, step := range c.steps {
		// Images of another plan do not go together.
		if !step.Table.fits(c.first.Table) {
			return false
		}
	}
	return true
}

func (c *chain) exchange() exchange {
	x := exchange{deletion: c.first, steps: c.steps}
	for _, step := range c.steps {
		x.updates = append(x.updates, step.withKeys(c.first.Row.Before, func(int) bool { return true }))
	}
	return x
}

// run makes the updates, reads the row, and returns what is left to do, which is
// nothing if the row was not copied yet. It returns a collision if one of the updates
// meets a duplicate, as it may where a unique index is on an expression.
func (x exchange) run(ctx context.Context, j *joint, m *member) (left []Change, c *collision, err error) {
	for _, update := range x.updates {
		if c, err := j.writeChanges(ctx, m, []Change{update}); c != nil || err != nil {
			return nil, c, err
		}
	}
	query, err := m.player.RowQuery(x.deletion)
	if err != nil {
		return nil, nil, err
	}
	result, err := j.leader.player.Exec(ctx, query)
	if err != nil {
		if cause := classify(err); cause.kind != noConflict {
			return nil, &collision{conflict: cause, member: m, change: x.deletion, open: true}, nil
		}
		return nil, nil, err
	}
	if len(result.Rows) == 0 && x.deletion.Table.Copying {
		return nil, nil, nil
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != x.deletion.Table.Columns {
		return nil, nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL,
			"%sthe row of table %s with primary key %s is not on the target as its stream has left it",
			MessagePrefix, x.deletion.Table.Name, x.deletion.Table.describe(x.deletion.Table.key(x.deletion.Row.Before)))
	}
	return []Change{x.insertion(result.Rows[0])}, nil, nil
}

// insertion returns the insert of the row: each column as the last image has it
// that carries it, and the others as they are on the target.
func (x exchange) insertion(row []sqltypes.Value) Change {
	table := x.deletion.Table
	values := make([][]byte, table.Columns)
	for i, value := range row {
		if !value.IsNull() {
			values[i] = value.Raw()
		}
	}
	for _, step := range x.steps {
		differences := make(map[int]bool)
		for _, index := range jsonDiffs(table, step.Row) {
			differences[index] = true
		}
		for i := range values {
			if carries(step.Row, i) && !differences[i] && !table.JSON[i] {
				values[i] = column(step.Row.After, i)
			}
		}
	}
	after := &querypb.Row{}
	for _, value := range values {
		length := int64(len(value))
		if value == nil {
			length = -1
		}
		after.Lengths = append(after.Lengths, length)
		after.Values = append(after.Values, value...)
	}
	return Change{Table: table, Row: &binlogdatapb.RowChange{After: after}, kind: changeInsert}
}
