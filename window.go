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
	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

type (
	// window is the blocked source transaction of a stream and those behind it
	// that have arrived whole. It grows as events arrive, and shrinks from its
	// front as its units are committed.
	window struct {
		planner Planner
		units   []*unit
		// building is the transaction that has not arrived whole.
		building *unit
		// read is the number of events, counted from the queue's first, that are
		// in the units or in building.
		read int
		// closed is why nothing behind the last unit can be part of the window;
		// empty while it can.
		closed string
		// plans are the plans that FIELD events in the window lead to. They
		// become the player's own once the events are committed.
		plans map[string]*Table
		// reshaped is a table whose row images before and after a DDL do not go
		// together; empty if there is none.
		reshaped string
		// touches has, for each row, the units that change it, by their number.
		touches map[chainKey][]touch
		// readUntil is the source's time, in its own seconds, of the last event
		// that the window has read.
		readUntil int64
		// first is the number of the first unit; they are counted on for as long as
		// the window lives.
		first int
		// forgotten is what first was when touches were last cleared of former
		// units.
		forgotten int
	}

	// unit is a source transaction, or an event that only moves the position.
	unit struct {
		// events is how many events the unit takes, from the one behind the unit
		// before it.
		events int
		// gtid is the position that the unit leads to, as its GTID event has it;
		// empty if it does not move the position.
		gtid string
		// timestamp is the source's time of its last event, in seconds.
		timestamp int64
		rows      []unitRows
		// changes is the number of its row changes.
		changes int
		// refuse is why the unit cannot be folded; empty if it can.
		refuse string
		// stops is set if the stream's stop position is reached with the unit.
		stops bool
	}

	unitRows struct {
		table *Table
		event *binlogdatapb.RowEvent
	}

	// touch is a change of a row by a unit.
	touch struct {
		unit          int
		table         *Table
		before, after *querypb.Row
	}

	// Planner tells a window about the stream's plans and its stop position.
	Planner interface {
		// Table returns the plan that the FIELD events applied so far have built
		// for a source table.
		Table(name string) (*Table, error)
		// Plan builds the plan that a FIELD event leads to, without applying it.
		Plan(event *binlogdatapb.FieldEvent) (*Table, error)
		// SkipsDDL reports whether a DDL event only moves the position.
		SkipsDDL() bool
		// StopsAt reports whether the stream's stop position is reached with the
		// position of a GTID event.
		StopsAt(gtid string) bool
	}
)

// eventRowsQuery is VEventType_ROWS_QUERY, which release lines before v24 do not
// have.
const eventRowsQuery binlogdatapb.VEventType = 22

func newWindow(planner Planner) *window {
	return &window{
		planner:  planner,
		building: &unit{},
		plans:    make(map[string]*Table),
		touches:  make(map[chainKey][]touch),
	}
}

// extend reads on in the events of the queue.
func (w *window) extend(events []*binlogdatapb.VEvent) error {
	for w.read < len(events) && w.closed == "" {
		event := events[w.read]
		if err := w.add(event); err != nil {
			return err
		}
		if !event.Throttled {
			w.readUntil = max(w.readUntil, event.Timestamp)
		}
		w.read++
	}
	return nil
}

// add reads one event. What it does not know closes the window, as do the events
// that vplayer must act on itself.
func (w *window) add(event *binlogdatapb.VEvent) error {
	u := w.building
	switch event.Type {
	case binlogdatapb.VEventType_BEGIN, eventRowsQuery, binlogdatapb.VEventType_VERSION,
		binlogdatapb.VEventType_HEARTBEAT:
		// A heartbeat belongs to no transaction; left where it stands it would
		// end every window.
	case binlogdatapb.VEventType_FIELD:
		table, err := w.planner.Plan(event.FieldEvent)
		if err != nil {
			return err
		}
		if former := w.plans[event.FieldEvent.TableName]; former != nil && !former.fits(table) {
			w.reshaped = table.Name
		}
		w.plans[event.FieldEvent.TableName] = table
	case binlogdatapb.VEventType_ROW:
		if err := w.addRows(event.RowEvent); err != nil {
			return err
		}
	case binlogdatapb.VEventType_INSERT, binlogdatapb.VEventType_UPDATE, binlogdatapb.VEventType_DELETE,
		binlogdatapb.VEventType_REPLACE, binlogdatapb.VEventType_SAVEPOINT:
		u.refuse = "it holds a statement instead of rows"
	case binlogdatapb.VEventType_GTID:
		u.gtid = event.Gtid
		u.stops = w.planner.StopsAt(event.Gtid)
	case binlogdatapb.VEventType_COMMIT, binlogdatapb.VEventType_OTHER:
		w.endUnit(event)
		return nil
	case binlogdatapb.VEventType_DDL:
		if !w.planner.SkipsDDL() {
			w.closed = "a DDL that is executed, or stops the stream"
			return nil
		}
		w.endUnit(event)
		return nil
	default:
		w.closed = "an event of type " + event.Type.String()
		return nil
	}
	u.events++
	return nil
}

func (w *window) addRows(event *binlogdatapb.RowEvent) error {
	u := w.building
	table := w.plans[event.TableName]
	if table == nil {
		var err error
		if table, err = w.planner.Table(event.TableName); err != nil {
			return err
		}
		if table == nil {
			return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "merge backoff: unexpected event on table %s", event.TableName)
		}
		w.plans[event.TableName] = table
	}
	if table.Refuse != "" {
		u.refuse = "table " + table.Name + ": " + table.Refuse
	}
	u.rows = append(u.rows, unitRows{table: table, event: event})
	u.changes += len(event.RowChanges)
	if table.InOrder != "" {
		return nil
	}
	number := w.first + len(w.units)
	for _, change := range event.RowChanges {
		w.touch(table, number, change.Before, change.After)
	}
	return nil
}

// touch notes a change of a row. One of its key is the end of one row and the
// beginning of another.
func (w *window) touch(table *Table, unit int, before, after *querypb.Row) {
	if before != nil && after != nil && table.key(before) != table.key(after) {
		w.touch(table, unit, before, nil)
		w.touch(table, unit, nil, after)
		return
	}
	row := before
	if row == nil {
		row = after
	}
	key := chainKey{table: table.Name, row: table.key(row)}
	w.touches[key] = append(w.touches[key], touch{unit: unit, table: table, before: before, after: after})
}

// endUnit ends the unit with its last event.
func (w *window) endUnit(last *binlogdatapb.VEvent) {
	u := w.building
	u.events++
	u.timestamp = last.Timestamp
	w.units = append(w.units, u)
	w.building = &unit{}
	if u.stops {
		w.closed = "the stop position"
	}
}

// events returns the number of events of the first n units.
func (w *window) events(n int) (events int) {
	for _, u := range w.units[:n] {
		events += u.events
	}
	return events
}

// position returns the position that the first n units lead to, and its time.
func (w *window) position(n int) (gtid string, timestamp int64) {
	for _, u := range w.units[:n] {
		if u.gtid != "" {
			gtid, timestamp = u.gtid, u.timestamp
		}
	}
	return gtid, timestamp
}

// consume lets go of the first events, which are committed, and reports whether
// the window can go on: what is left must begin with a unit.
func (w *window) consume(events int) bool {
	if events > w.read {
		return false
	}
	w.read -= events
	for len(w.units) > 0 && w.units[0].events <= events {
		events -= w.units[0].events
		w.units = w.units[1:]
		w.first++
	}
	// What remains are heartbeats that stand in front of the next unit.
	front := w.building
	if len(w.units) > 0 {
		front = w.units[0]
	}
	if front.events < events || (events > 0 && len(front.rows) > 0) {
		return false
	}
	front.events -= events
	w.forget()
	return true
}

// forget drops what is known of rows that only former units have touched, once
// there are enough of those to be worth a look at all rows.
func (w *window) forget() {
	if 2*(w.first-w.forgotten) < len(w.touches) {
		return
	}
	w.forgotten = w.first
	for key, touches := range w.touches {
		for len(touches) > 0 && touches[0].unit < w.first {
			touches = touches[1:]
		}
		if len(touches) == 0 {
			delete(w.touches, key)
		} else {
			w.touches[key] = touches
		}
	}
}

// release returns the index of the first unit, from the given index on, in which
// the row gives up the value that it has in a unique index.
func (w *window) release(row chainKey, index string, from int) (unit int, ok bool) {
	for _, t := range w.touches[row] {
		unit := t.unit - w.first
		if unit < from || unit >= len(w.units) || t.before == nil {
			continue
		}
		key := t.table.unique(index)
		if t.after == nil || key == nil || !sameColumns(key.Columns, t.before, t.after) {
			return unit, true
		}
	}
	return 0, false
}
