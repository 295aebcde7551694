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
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

func plannerOf(tables ...*Table) *fakePlanner {
	p := &fakePlanner{tables: map[string]*Table{}}
	for _, table := range tables {
		p.tables[table.Name] = table
	}
	return p
}

func concat(parts ...[]*binlogdatapb.VEvent) (events []*binlogdatapb.VEvent) {
	for _, part := range parts {
		events = append(events, part...)
	}
	return events
}

// TestWindow: how events become units, what makes a unit refuse to be folded,
// and what closes the window.
func TestWindow(t *testing.T) {
	row := func(id int) *binlogdatapb.VEvent { return rowsOf("t", insertOf(image(id, id, "a", "{}"))) }
	refused := testTable()
	refused.Name, refused.Refuse = "fk", "it has a foreign key"
	tests := []struct {
		name     string
		events   []*binlogdatapb.VEvent
		skipsDDL bool
		stop     string
		// units are the numbers of their events.
		units  []int
		closed string
		// refused is why the last unit cannot be folded.
		refused string
		// read is the number of events that were read; 0 is all.
		read int
	}{
		{
			name:   "two transactions",
			events: concat(transactionOf("g1", 1, row(1)), transactionOf("g2", 2, row(2), row(3))),
			units:  []int{4, 5},
		},
		{
			name:   "the second has not arrived whole",
			events: concat(transactionOf("g1", 1, row(1)), transactionOf("g2", 2, row(2))[:3]),
			units:  []int{4},
		},
		{
			name:   "an empty transaction",
			events: concat(transactionOf("g1", 1), transactionOf("g2", 2, row(2))),
			units:  []int{3, 4},
		},
		{
			name:   "FIELD events, comments and versions",
			events: transactionOf("g1", 1, eventOf(binlogdatapb.VEventType_VERSION), fieldEvent("t"), eventOf(eventRowsQuery), row(1)),
			units:  []int{7},
		},
		{
			// Left where it stands it would end every window.
			name:   "heartbeats between transactions and within",
			events: concat([]*binlogdatapb.VEvent{heartbeatEvent()}, transactionOf("g1", 1, heartbeatEvent(), row(1)), []*binlogdatapb.VEvent{heartbeatEvent()}, transactionOf("g2", 1, row(2))),
			units:  []int{6, 5},
		},
		{
			name:   "a heartbeat behind the last",
			events: concat(transactionOf("g1", 1, row(1)), []*binlogdatapb.VEvent{heartbeatEvent()}),
			units:  []int{4},
		},
		{
			name:   "an OTHER event moves the position",
			events: concat(transactionOf("g1", 1, row(1)), []*binlogdatapb.VEvent{gtidEvent("g2"), otherEvent()}, transactionOf("g3", 1, row(2))),
			units:  []int{4, 2, 4},
		},
		{
			name:     "so does a DDL that is ignored",
			events:   concat(transactionOf("g1", 1, row(1)), []*binlogdatapb.VEvent{gtidEvent("g2"), ddlEvent()}, transactionOf("g3", 1, row(2))),
			skipsDDL: true,
			units:    []int{4, 2, 4},
		},
		{
			name:   "a DDL that is executed ends it",
			events: concat(transactionOf("g1", 1, row(1)), []*binlogdatapb.VEvent{gtidEvent("g2"), ddlEvent()}, transactionOf("g3", 1, row(2))),
			units:  []int{4},
			closed: "a DDL",
			read:   6,
		},
		{
			name:   "a journal ends it",
			events: concat(transactionOf("g1", 1, row(1)), []*binlogdatapb.VEvent{eventOf(binlogdatapb.VEventType_JOURNAL)}, transactionOf("g3", 1, row(2))),
			units:  []int{4},
			closed: "an event of type JOURNAL",
			read:   5,
		},
		{
			name:   "the stop position ends it, with its transaction",
			events: concat(transactionOf("g1", 1, row(1)), transactionOf("g2", 1, row(2)), transactionOf("g3", 1, row(3))),
			stop:   "g2",
			units:  []int{4, 4},
			closed: "the stop position",
			read:   8,
		},
		{
			name:    "a statement cannot be folded",
			events:  transactionOf("g1", 1, &binlogdatapb.VEvent{Type: binlogdatapb.VEventType_INSERT, Dml: "insert into t values (1)"}),
			units:   []int{4},
			refused: "a statement",
		},
		{
			name:    "nor can a table with a foreign key",
			events:  transactionOf("g1", 1, row(1), rowsOf("fk", insertOf(image(1)))),
			units:   []int{5},
			refused: "table fk: it has a foreign key",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			planner := plannerOf(testTable(), refused)
			planner.skipsDDL, planner.stop = tt.skipsDDL, tt.stop
			// Read at once, and event by event, it comes to the same.
			for _, step := range []int{len(tt.events), 1} {
				w := newWindow(planner)
				for n := step; n <= len(tt.events); n += step {
					require.NoError(t, w.extend(tt.events[:n]))
				}
				var units []int
				refused := ""
				for _, u := range w.units {
					units = append(units, u.events)
					refused = u.refuse
				}
				assert.Equal(t, tt.units, units)
				assert.Contains(t, refused, tt.refused)
				assert.Equal(t, tt.refused == "", refused == "")
				assert.Contains(t, w.closed, tt.closed)
				assert.Equal(t, tt.closed == "", w.closed == "")
				read := tt.read
				if read == 0 {
					read = len(tt.events)
				}
				assert.LessOrEqual(t, w.read, read)
				if tt.closed == "" {
					assert.Equal(t, read, w.read)
				}
			}
		})
	}
}

// TestWindowPosition: the position that the first units lead to is that of the
// last one which has one.
func TestWindowPosition(t *testing.T) {
	w := newWindow(plannerOf(testTable()))
	require.NoError(t, w.extend(concat(
		transactionOf("g1", 10, rowsOf("t", insertOf(image(1, 1, "a", "{}")))),
		// A transaction that is all filtered out may come without a GTID.
		[]*binlogdatapb.VEvent{beginEvent(), commitEvent(11)},
		transactionOf("g3", 12),
	)))
	for n, want := range []struct {
		gtid      string
		timestamp int64
		events    int
	}{{"", 0, 0}, {"g1", 10, 4}, {"g1", 10, 6}, {"g3", 12, 9}} {
		gtid, timestamp := w.position(n)
		assert.Equal(t, want.gtid, gtid)
		assert.Equal(t, want.timestamp, timestamp)
		assert.Equal(t, want.events, w.events(n))
	}
}

// TestWindowConsume: a window goes on behind what was committed if that ends
// with a unit, and is begun anew otherwise.
func TestWindowConsume(t *testing.T) {
	row := func(id int) *binlogdatapb.VEvent { return rowsOf("t", insertOf(image(id, id, "a", "{}"))) }
	first, second, third := transactionOf("g1", 1, row(1)), transactionOf("g2", 1, row(2)), transactionOf("g3", 1, row(3))
	tests := []struct {
		name    string
		events  []*binlogdatapb.VEvent
		consume int
		goesOn  bool
		// left are the units that remain, by their events.
		left []int
	}{
		{
			name:   "a unit",
			events: concat(first, second), consume: 4, goesOn: true, left: []int{4},
		},
		{
			name:   "all of it",
			events: concat(first, second), consume: 8, goesOn: true,
		},
		{
			name:   "in the middle of a transaction",
			events: concat(first, second), consume: 6,
		},
		{
			name:   "more than was read",
			events: concat(first, second), consume: 9,
		},
		{
			// Grouping let the heartbeat go with the transaction before it.
			name:   "heartbeats in front of the next unit",
			events: concat(first, []*binlogdatapb.VEvent{heartbeatEvent(), heartbeatEvent()}, second, third), consume: 6,
			// consume cannot tell a heartbeat from a row, so it starts anew.
			goesOn: false,
		},
		{
			name:   "heartbeats with nothing behind them",
			events: concat(first, []*binlogdatapb.VEvent{heartbeatEvent()}), consume: 5, goesOn: true,
		},
		{
			name:   "a transaction that has not arrived whole stays",
			events: concat(first, second[:2]), consume: 4, goesOn: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWindow(plannerOf(testTable()))
			require.NoError(t, w.extend(tt.events))
			goesOn := w.consume(tt.consume)
			assert.Equal(t, tt.goesOn, goesOn)
			if !goesOn {
				// A new window takes its place.
				return
			}
			var left []int
			for _, u := range w.units {
				left = append(left, u.events)
			}
			assert.Equal(t, tt.left, left)
			assert.Equal(t, len(tt.events)-tt.consume, w.read)
			for key, touches := range w.touches {
				for _, touch := range touches {
					assert.GreaterOrEqual(t, touch.unit, w.first, "%v is forgotten", key)
				}
			}
			// It goes on from where it is.
			rest := append(append([]*binlogdatapb.VEvent{}, tt.events[tt.consume:]...), third...)
			require.NoError(t, w.extend(rest))
			assert.Equal(t, len(rest), w.read)
			assert.Equal(t, "g3", w.units[len(w.units)-1].gtid)
		})
	}
}

// TestWindowRelease: which unit of a window releases the value that a row has
// in a unique index.
func TestWindowRelease(t *testing.T) {
	unknown := testTable()
	unknown.Unique = append(unknown.Unique, UniqueKey{Name: "expression"})
	rowKey := func(id any) chainKey {
		return chainKey{table: "t", row: testTable().key(image(id))}
	}
	unit := func(changes ...*binlogdatapb.RowChange) []*binlogdatapb.VEvent {
		return transactionOf("g", 1, rowsOf("t", changes...))
	}
	a, b, z := image(1, 10, "a", "{}"), image(1, 20, "a", "{}"), image(1, 10, "z", "{}")
	w := newWindow(plannerOf(unknown))
	require.NoError(t, w.extend(concat(
		unit(insertOf(a)),                            // 0: takes 10
		unit(updateOf(a, z)),                         // 1: leaves the keys alone
		unit(updateOf(z, b)),                         // 2: gives up 10
		unit(updateOf(b, image(2, 20, "a", "{}"))),   // 3: gives up its primary key, and so 20
		unit(deleteOf(image(2, 20, "a", "{}"))),      // 4: gives up all
		unit(insertOf(image(3, nil, "a", "{}"))),     // 5
		unit(deleteOf(image(3, nil, "a", "{}")))[:2], // has not arrived whole
	)))
	tests := []struct {
		name  string
		row   chainKey
		index string
		from  int
		unit  int
		ok    bool
	}{
		{name: "the update of the key", row: rowKey(1), index: "uid_uk", unit: 2, ok: true},
		{name: "from there on", row: rowKey(1), index: "uid_uk", from: 2, unit: 2, ok: true},
		{name: "behind it the change of the primary key", row: rowKey(1), index: "uid_uk", from: 3, unit: 3, ok: true},
		{name: "and then nothing: the row is another", row: rowKey(1), index: "uid_uk", from: 4},
		{name: "the primary key itself", row: rowKey(1), index: "PRIMARY", unit: 3, ok: true},
		{name: "the row under its new key", row: rowKey(2), index: "PRIMARY", unit: 4, ok: true},
		{name: "a key that may change with every update", row: rowKey(1), index: "expression", unit: 1, ok: true},
		{name: "an index that is not known", row: rowKey(1), index: "nothing", unit: 1, ok: true},
		{name: "what has not arrived whole does not count", row: rowKey(3), index: "uid_uk"},
		{name: "a row that nobody touches", row: rowKey(9), index: "uid_uk"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			unit, ok := w.release(tt.row, tt.index, tt.from)
			assert.Equal(t, tt.ok, ok)
			assert.Equal(t, tt.unit, unit)
		})
	}

	t.Run("units are counted on", func(t *testing.T) {
		require.True(t, w.consume(w.events(2)))
		unit, ok := w.release(rowKey(1), "uid_uk", 0)
		assert.True(t, ok)
		assert.Equal(t, 0, unit)
		require.True(t, w.consume(w.events(2)))
		_, ok = w.release(rowKey(1), "uid_uk", 0)
		assert.False(t, ok)
	})
}

// TestWindowPlans shows that a window uses the plan of the time of each change,
// and builds one only for a FIELD event.
func TestWindowPlans(t *testing.T) {
	planner := plannerOf(testTable())
	row := rowsOf("t", insertOf(image(1, 1, "a", "{}")))
	w := newWindow(planner)
	require.NoError(t, w.extend(concat(
		transactionOf("g1", 1, row), transactionOf("g2", 1, row), transactionOf("g3", 1, fieldEvent("t"), row),
	)))
	assert.Equal(t, 1, planner.plans)
	assert.Same(t, planner.tables["t"], w.units[0].rows[0].table)
	assert.Same(t, w.units[0].rows[0].table, w.units[1].rows[0].table)
	assert.NotSame(t, w.units[1].rows[0].table, w.units[2].rows[0].table)
}

// TestWindowErrors shows that what vplayer would fail at is an error here too.
func TestWindowErrors(t *testing.T) {
	planner := plannerOf(testTable())
	require.ErrorContains(t, newWindow(planner).extend(transactionOf("g1", 1, rowsOf("unknown"))), "unexpected event on table unknown")
	planner.err = errors.New("no plan")
	require.ErrorIs(t, newWindow(planner).extend(transactionOf("g1", 1, fieldEvent("t"))), planner.err)
	require.ErrorIs(t, newWindow(planner).extend(transactionOf("g1", 1, rowsOf("t"))), planner.err)
}
