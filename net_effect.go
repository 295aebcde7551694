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
	"slices"

	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// How a change is to be written on the target.
type changeKind int

const (
	// changeDelete deletes the row of the before image.
	changeDelete changeKind = iota
	// changeUpdate updates the row of the before image, as vplayer does.
	changeUpdate
	// changeInsert inserts the after image.
	changeInsert
	// changeRecreate inserts the after image of an update whose JSON values are
	// differences to the before image.
	changeRecreate
	// changeAsIs is a change of a table that is applied in order.
	changeAsIs
)

// Change is one change of a row on the target.
type Change struct {
	// Table is the table's plan at the time of the change.
	Table *Table
	// Row is the change. Nobody may write to it: it is kept for another attempt.
	Row *binlogdatapb.RowChange

	kind changeKind
}

// Recreates reports whether Row is an update, of which only the after image is
// to be inserted: the row of the before image was deleted in this transaction.
func (c Change) Recreates() bool {
	return c.kind == changeRecreate
}

// packs reports whether two changes can be made by one statement: both insert a
// complete row, or both delete one.
func (c Change) packs(other Change) bool {
	return c.Table == other.Table && c.kind == other.kind &&
		(c.kind == changeDelete || c.kind == changeInsert && c.Row.DataColumns == nil && other.Row.DataColumns == nil &&
			jsonPartials(c.Row) == nil && jsonPartials(other.Row) == nil)
}

// Deletes reports whether the row of the before image is only deleted.
func (c Change) Deletes() bool {
	return c.kind == changeDelete
}

// after returns the image that the change leaves, or nil.
func (c Change) after() *querypb.Row {
	if c.kind == changeDelete {
		return nil
	}
	return c.Row.After
}

type (
	// netEffect folds the row changes of whole source transactions of one stream
	// into what they come to: per row its first and its last image. A value that
	// was taken and freed in between never touches the table. It is right for
	// the reason that grouping is: the target sees a coarser step of one shard.
	//
	// Adding a change costs its own size.
	netEffect struct {
		chains map[chainKey]*chain
		// order has the chains by their first change, so that equal histories
		// give equal statements.
		order []*chain
		// asIs are the changes of tables that are applied in order.
		asIs []Change
	}

	chainKey struct {
		table string
		row   rowKey
	}

	// chain is what happened to the row of one key.
	chain struct {
		// known is set once a change of the row was seen.
		known bool
		// first is the deletion of the row that the target holds now; it has no
		// image if the target holds none.
		first Change
		// steps lead to the row that the target is to hold; it is empty if it is
		// to hold none. All are updates, but the first of a row that was born
		// within the window, which is an insert. Each has the plan of its time,
		// for a DDL that only moves the position may lie between two.
		steps []Change
		born  bool
		// gone is set while the row is known not to exist.
		gone bool
	}
)

func newNetEffect() *netEffect {
	return &netEffect{chains: make(map[chainKey]*chain)}
}

// add folds the changes of a ROW event.
func (ne *netEffect) add(table *Table, event *binlogdatapb.RowEvent) error {
	for _, change := range event.RowChanges {
		if table.InOrder != "" {
			ne.asIs = append(ne.asIs, Change{Table: table, Row: change, kind: changeAsIs})
			continue
		}
		if err := ne.addChange(table, change); err != nil {
			return vterrors.Wrapf(err, "net effect of table %s", table.Name)
		}
	}
	return nil
}

func (ne *netEffect) addChange(table *Table, row *binlogdatapb.RowChange) error {
	change := Change{Table: table, Row: row}
	switch {
	case row.Before == nil && row.After == nil:
		return corrupt("a change without any image")
	case row.Before == nil:
		return ne.chain(table, row.After).insert(change)
	case row.After == nil:
		return ne.chain(table, row.Before).delete(change)
	}
	before, after := ne.chain(table, row.Before), ne.chain(table, row.After)
	if before == after {
		return before.update(change)
	}
	// A change of the primary key is a delete of one row and an insert of
	// another. vplayer cannot write it either if the after image lacks columns.
	if !recreatable(table, row) {
		return corrupt("an update of the primary key whose images are not complete")
	}
	if err := before.delete(change); err != nil {
		return err
	}
	return after.insert(change)
}

// chain returns the chain of the row of an image.
func (ne *netEffect) chain(table *Table, row *querypb.Row) *chain {
	key := chainKey{table: table.Name, row: table.key(row)}
	c := ne.chains[key]
	if c == nil {
		c = &chain{}
		ne.chains[key] = c
		ne.order = append(ne.order, c)
	}
	return c
}

// insert notes that the row is born.
func (c *chain) insert(change Change) error {
	if c.known && !c.gone {
		return corrupt("an insert of a row that exists")
	}
	change.kind = changeInsert
	if change.Row.Before != nil {
		change.kind = changeRecreate
	}
	c.steps = []Change{change}
	c.known, c.born, c.gone = true, true, false
	return nil
}

func (c *chain) update(change Change) error {
	if err := c.meet(change); err != nil {
		return err
	}
	change.kind = changeUpdate
	switch {
	case !complete(change.Table, change.Row):
		c.steps = append(c.steps, change)
	case c.born:
		// A complete after image makes all steps before it superfluous.
		change.kind = changeInsert
		change.Row = &binlogdatapb.RowChange{After: change.Row.After}
		c.steps = []Change{change}
	default:
		// The row is found by its primary key, which every before image has.
		c.steps = []Change{change}
	}
	return nil
}

// delete notes that the row is gone. If it was born within the window the two
// come to nothing: a DELETE would remove the row that another stream has put
// under the same key.
func (c *chain) delete(change Change) error {
	if err := c.meet(change); err != nil {
		return err
	}
	c.steps, c.born, c.gone = nil, false, true
	return nil
}

// meet is called with a change of a row that must exist.
func (c *chain) meet(change Change) error {
	if c.gone {
		return corrupt("a change of a row that was deleted")
	}
	if !c.known {
		c.known = true
		c.first = Change{Table: change.Table, Row: &binlogdatapb.RowChange{Before: change.Row.Before}, kind: changeDelete}
	}
	return nil
}

// exists reports whether the target holds the row now.
func (c *chain) exists() bool {
	return c.first.Row != nil
}

func corrupt(what string) error {
	return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "the binary log holds %s", what)
}

// statements are the changes of a net effect in the order in which they are
// written. Deletes free values, and come first; updates of rows whose keys stay
// as they are neither free nor take any; inserts take values, and come last.
type statements struct {
	deletes, updates, inserts []Change
	// exchanges are rows that are deleted and inserted again, of which the
	// images do not carry every column.
	exchanges []exchange
}

// statements returns what the net effect comes to. Without exchanges a row whose
// images are not complete is updated where it stands, which does not do if it
// trades its value with another row.
func (ne *netEffect) statements(exchanges bool) statements {
	var s statements
	for _, c := range ne.order {
		c.write(&s, exchanges)
	}
	s.updates = append(s.updates, ne.asIs...)
	return s
}

func (c *chain) write(s *statements, exchanges bool) {
	switch {
	case len(c.steps) == 0 || c.born:
		if c.exists() {
			s.deletes = append(s.deletes, c.first)
		}
		s.inserts = append(s.inserts, c.birth()...)
	case c.keysChange() && c.last().Table.KeepRow == "" && recreatable(c.last().Table, c.last().Row):
		s.deletes = append(s.deletes, c.first)
		s.inserts = append(s.inserts, c.recreate())
	case exchanges && c.exchangeable():
		s.exchanges = append(s.exchanges, c.exchange())
	default:
		s.updates = append(s.updates, c.carryKeys()...)
	}
}

func (c *chain) last() Change {
	return c.steps[len(c.steps)-1]
}

// birth returns how a row that was born in the window is inserted: as it is last
// or, if that image is not complete, as it was first, and then update by update.
func (c *chain) birth() []Change {
	if len(c.steps) > 1 && recreatable(c.last().Table, c.last().Row) {
		return []Change{c.recreate()}
	}
	return c.carryKeys()
}

// recreate returns the insert of the row that the last step leaves.
func (c *chain) recreate() Change {
	change := c.last()
	change.kind = changeRecreate
	if complete(change.Table, change.Row) {
		change.kind = changeInsert
		change.Row = &binlogdatapb.RowChange{After: change.Row.After}
	}
	return change
}

// keysChange reports whether the row's last image differs from its first in a
// column of a unique index.
func (c *chain) keysChange() bool {
	last := c.last()
	return !c.first.Table.fits(last.Table) || slices.ContainsFunc(last.Table.Unique, func(key UniqueKey) bool {
		return !sameColumns(key.Columns, c.first.Row.Before, last.Row.After)
	})
}

// carryKeys returns the steps with each carrying, in the columns of the unique
// indexes, the values of the last: one that the chain only passed through is
// then never taken. Partial images carry those columns all the same, unless the
// column is a blob or JSON.
func (c *chain) carryKeys() []Change {
	if len(c.steps) < 2 {
		return c.steps
	}
	last := c.last()
	carried := slices.Clone(c.steps)
	for i, step := range c.steps[:len(c.steps)-1] {
		if step.Table.fits(last.Table) {
			carried[i] = step.withKeys(last.Row.After, func(index int) bool { return carries(last.Row, index) })
		}
	}
	return carried
}

// withKeys returns the change with the values that another image has in the
// columns of the unique indexes, as far as both images carry them.
func (c Change) withKeys(image *querypb.Row, carried func(index int) bool) Change {
	after := c.Row.After
	for _, key := range c.Table.Unique {
		for _, index := range key.Columns {
			if carried(index) && carries(c.Row, index) && !c.Table.JSON[index] {
				after = withColumn(after, index, column(image, index))
			}
		}
	}
	// The window keeps the change as it came.
	c.Row = c.Row.CloneVT()
	c.Row.After = after
	return c
}
