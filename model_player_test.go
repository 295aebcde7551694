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
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
)

// This file is a model of vplayer: what it does with events, as far as that
// matters to merge backoff. tools/sim has a copy of it.

type (
	// Player is one run of a player of the model.
	Player struct {
		DB  *Database
		ID  int32
		Hub *mergebackoff.Hub
		// Backoff is nil for a player that has merge backoff switched off.
		Backoff *mergebackoff.Backoff
		Relay   Relay
		// Batches sends a transaction's statements together, up to MaxBatch bytes.
		Batches  bool
		MaxBatch int
		// StopPos ends the stream.
		StopPos string
		// ExecutesDDL has a DDL end a window.
		ExecutesDDL bool
		// Blind has it not find out who holds a value, and Opaque not know which
		// columns a unique key covers, as for an index on an expression.
		Blind, Opaque bool
		// Throttle, if set, is asked for the throttler's answer.
		Throttle func() bool
		// Enter, if set, is called first in every call. An error is that of a
		// connection that broke. If done is set it broke behind the statement.
		Enter func(call string) (err error, done bool)

		// Calls are the names of the calls, if they are to be recorded.
		Record bool
		Calls  []string
		// Heartbeats counts the heartbeats that were written.
		Heartbeats atomic.Int64
		// Fetching is set while the player waits for events as vplayer does.
		Fetching atomic.Bool

		tx         *Tx
		inTx       bool
		batching   bool
		isolated   bool
		queued     []string
		queuedSize int
		sent       []string
		lost       bool
		instant    time.Time
		calls      int
		plans      map[string]*mergebackoff.Table

		pos, markedPos         string
		unsaved, markedUnsaved *binlogdatapb.VEvent
		timeLastSaved          time.Time
	}

	// Relay is the relay log of one run.
	Relay struct {
		mu    sync.Mutex
		items [][]*binlogdatapb.VEvent
		has   chan struct{}
	}
)

const idleTimeout = time.Second

// Send appends an item.
func (r *Relay) Send(events ...*binlogdatapb.VEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, events)
	if r.has != nil {
		close(r.has)
		r.has = nil
	}
}

// Len is the number of items in it.
func (r *Relay) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.items)
}

func (r *Relay) drain() [][]*binlogdatapb.VEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := r.items
	r.items = nil
	return items
}

func (r *Relay) arrived() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) > 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if r.has == nil {
		r.has = make(chan struct{})
	}
	return r.has
}

// Run is vplayer's applyEvents, with the hooks of merge backoff.
func (p *Player) Run(ctx context.Context) error {
	p.pos = p.DB.Stream(p.ID).Pos
	p.plans = make(map[string]*mergebackoff.Table)
	p.timeLastSaved = time.Now()
	p.batching = p.Batches
	defer func() {
		if p.tx != nil {
			p.tx.Rollback()
		}
		p.inTx = false
	}()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.Fetching.Store(true)
		if p.Throttled(ctx) {
			continue
		}
		p.Fetching.Store(false)
		items, err := p.fetch(ctx)
		if err != nil {
			return err
		}
		if time.Since(p.timeLastSaved) >= idleTimeout && p.unsaved != nil {
			if _, err := p.updatePos(ctx); err != nil {
				return err
			}
		}
		for i, events := range items {
			for j, event := range events {
				if p.Backoff.Skip() {
					continue
				}
				mustSave := false
				if event.Type == binlogdatapb.VEventType_COMMIT {
					if p.stopReached() {
						mustSave = true
					} else if hasAnotherCommit(items, i, j+1) && p.Backoff.Group(event) {
						continue
					}
				}
				apply := p.Apply
				if p.Backoff != nil {
					apply = p.Backoff.Apply
				}
				if err := apply(ctx, event, mustSave); err != nil {
					if err != io.EOF {
						err = vterrors.Wrapf(err, "error applying event")
					}
					return err
				}
			}
		}
	}
}

func (p *Player) fetch(ctx context.Context) ([][]*binlogdatapb.VEvent, error) {
	if err := p.Backoff.HoldBack(ctx); err != nil {
		return nil, err
	}
	if items := p.Backoff.Leftover(); items != nil {
		return items, nil
	}
	p.Fetching.Store(true)
	timer := time.NewTimer(idleTimeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, io.EOF
	case <-p.Relay.arrived():
	case <-timer.C:
	}
	if ctx.Err() != nil {
		return nil, io.EOF
	}
	if err := p.enter("Fetch"); err != nil {
		return nil, err
	}
	p.Fetching.Store(false)
	items := p.Relay.drain()
	return items, p.Backoff.Fetched(items)
}

func hasAnotherCommit(items [][]*binlogdatapb.VEvent, i, j int) bool {
	for ; i < len(items); i, j = i+1, 0 {
		for ; j < len(items[i]); j++ {
			switch items[i][j].Type {
			case binlogdatapb.VEventType_COMMIT:
				return true
			case binlogdatapb.VEventType_DDL, binlogdatapb.VEventType_OTHER, binlogdatapb.VEventType_JOURNAL:
				return false
			}
		}
	}
	return false
}

var errLost = sqlerror.NewSQLErrorf(sqlerror.CRServerLost, sqlerror.SSUnknownSQLState, "Lost connection to MySQL server during query")

// enter begins a call.
func (p *Player) enter(call string) error {
	_, err := p.enterOr(call)
	return err
}

func (p *Player) enterOr(call string) (done bool, err error) {
	if p.Record {
		p.Calls = append(p.Calls, call)
	}
	if p.Enter != nil {
		if err, done = p.Enter(call); err != nil {
			if !done {
				p.Lose()
			}
			return done, err
		}
	}
	// A player that does not come to an end at one instant never will.
	if now := time.Now(); now != p.instant {
		p.instant, p.calls = now, 0
	}
	if p.calls++; p.calls > maxCallsAtOnce {
		p.DB.Blame("stream %d makes calls without an end: %s", p.ID, call)
		p.Lose()
	}
	if p.lost {
		return false, errLost
	}
	return false, nil
}

const maxCallsAtOnce = 100_000

// Lose breaks the connection: the server rolls the transaction back.
func (p *Player) Lose() {
	p.lost = true
	if p.tx != nil {
		p.tx.Rollback()
	}
}

// Idle reports whether the player holds no lock, or waits for one.
func (p *Player) Idle() bool {
	return p.tx == nil || p.tx.Waits()
}

// outside blames a call that must not be made within a transaction.
func (p *Player) outside(call string) {
	if p.inTx {
		p.DB.Blame("stream %d calls %s within a transaction", p.ID, call)
	}
}

func (p *Player) Apply(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error {
	if err := p.enter("Apply " + event.Type.String()); err != nil {
		return err
	}
	switch event.Type {
	case binlogdatapb.VEventType_GTID:
		p.pos = event.Gtid
		p.unsaved = nil
	case binlogdatapb.VEventType_COMMIT:
		if mustSave {
			p.begin()
		}
		if !p.inTx {
			p.unsaved = event
			return nil
		}
		stopped, err := p.updatePos(ctx)
		if err != nil {
			return err
		}
		if err := p.commit(); err != nil {
			return err
		}
		if stopped {
			return io.EOF
		}
	case binlogdatapb.VEventType_FIELD:
		p.begin()
		p.plans[event.FieldEvent.TableName] = p.plan(event.FieldEvent.TableName)
	case binlogdatapb.VEventType_ROW:
		p.begin()
		table := p.plans[event.RowEvent.TableName]
		if table == nil {
			return fmt.Errorf("unexpected event on table %s", event.RowEvent.TableName)
		}
		for _, change := range event.RowEvent.RowChanges {
			statements, err := p.render(table.Plan.(*TableDef), change, false)
			if err != nil {
				return err
			}
			for _, sql := range statements {
				if err := p.query(ctx, sql); err != nil {
					return err
				}
			}
		}
	case binlogdatapb.VEventType_OTHER, binlogdatapb.VEventType_DDL:
		if p.inTx {
			return fmt.Errorf("internal error: vplayer is in a transaction on event: %v", event)
		}
		stopped, err := p.updatePos(ctx)
		if err != nil {
			return err
		}
		if stopped {
			return io.EOF
		}
	case binlogdatapb.VEventType_HEARTBEAT:
		if !p.inTx {
			return p.recordHeartbeat()
		}
	}
	return nil
}

func (p *Player) recordHeartbeat() error {
	p.Heartbeats.Add(1)
	now := time.Now()
	return p.DB.Do(p.ID, p.streamUpdate("heartbeat "+now.Format(time.StampMilli), func(row *StreamRow) { row.Heartbeat = now }))
}

// streamUpdate is an update of the stream's row in _vt.vreplication.
func (p *Player) streamUpdate(what string, change func(*StreamRow)) string {
	return p.DB.register(statement{
		text:   fmt.Sprintf("update _vt.vreplication %s where id=%d", what, p.ID),
		stream: p.ID, change: change,
	})
}

func (p *Player) stopReached() bool {
	return p.StopPos != "" && p.pos >= p.StopPos
}

func (p *Player) updatePos(ctx context.Context) (stopped bool, err error) {
	if err := p.query(ctx, p.positionUpdate(p.pos)); err != nil {
		return false, fmt.Errorf("error %v updating position", err)
	}
	p.unsaved = nil
	p.timeLastSaved = time.Now()
	if !p.stopReached() {
		return false, nil
	}
	if err := p.query(ctx, p.streamUpdate("state Stopped", func(row *StreamRow) { row.State = "Stopped" })); err != nil {
		return false, err
	}
	p.Hub.SetState(p.ID, binlogdatapb.VReplicationWorkflowState_Stopped)
	return true, nil
}

func (p *Player) positionUpdate(pos string) string {
	return p.streamUpdate("pos "+pos, func(row *StreamRow) {
		if pos < row.Pos {
			row.State = "position moved back"
		}
		row.Pos, row.Message = pos, ""
	})
}

func (p *Player) begin() {
	if p.inTx {
		return
	}
	p.inTx = true
	p.tx, p.queued, p.queuedSize, p.sent = nil, nil, 0, nil
	if !p.batching {
		p.tx = p.DB.Begin(p.ID)
	}
}

// query sends a statement, or keeps it for the batch.
func (p *Player) query(ctx context.Context, sql string) error {
	switch {
	case !p.inTx:
		return p.DB.Do(p.ID, sql)
	case p.batching:
		if p.queuedSize+len(sql) > p.MaxBatch {
			if err := p.flush(); err != nil {
				return err
			}
		}
		p.queued = append(p.queued, sql)
		p.queuedSize += len(sql) + 1
		return nil
	case p.isolated:
		_, err := p.DB.Exec(p.tx, sql)
		return err
	}
	return p.execWithRetry(ctx, sql)
}

// execWithRetry is what a player that does not batch does about lock errors.
func (p *Player) execWithRetry(ctx context.Context, sql string) error {
	p.sent = append(p.sent, sql)
	_, err := p.DB.Exec(p.tx, sql)
	for err != nil {
		var sqlErr *sqlerror.SQLError
		if !errors.As(err, &sqlErr) || (sqlErr.Number() != sqlerror.ERLockDeadlock && sqlErr.Number() != sqlerror.ERLockWaitTimeout) {
			return err
		}
		p.tx.Rollback()
		time.Sleep(time.Second)
		if ctx.Err() != nil {
			p.inTx = false
			return io.EOF
		}
		if err := p.enter("Retry"); err != nil {
			return err
		}
		p.tx = p.DB.Begin(p.ID)
		for _, sql := range p.sent {
			if _, err = p.DB.Exec(p.tx, sql); err != nil {
				break
			}
		}
	}
	return nil
}

func (p *Player) flush() error {
	if p.tx == nil {
		p.tx = p.DB.Begin(p.ID)
	}
	queued := p.queued
	p.queued, p.queuedSize = nil, 0
	for _, sql := range queued {
		if _, err := p.DB.Exec(p.tx, sql); err != nil {
			return err
		}
	}
	return nil
}

func (p *Player) commit() error {
	if p.batching {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if done, err := p.enterOr("COMMIT"); err != nil {
		if done {
			p.tx.Commit()
			p.Lose()
		}
		return err
	}
	p.tx.Commit()
	p.inTx, p.tx = false, nil
	return nil
}

func (p *Player) InTransaction() bool { return p.inTx }
func (p *Player) StopReached() bool   { return p.stopReached() }

func (p *Player) Mark() {
	p.outside("Mark")
	p.markedPos, p.markedUnsaved = p.pos, p.unsaved
}

func (p *Player) Rollback() error {
	if err := p.enter("Rollback"); err != nil {
		return err
	}
	if p.tx != nil {
		p.tx.Rollback()
	}
	p.inTx, p.tx, p.queued, p.sent = false, nil, nil, nil
	p.pos, p.unsaved = p.markedPos, p.markedUnsaved
	return nil
}

func (p *Player) SetBatching(on bool) error {
	p.outside("SetBatching")
	if err := p.enter("SetBatching"); err != nil {
		return err
	}
	p.isolated = !on
	p.batching = on && p.Batches
	return nil
}

func (p *Player) Drain() ([][]*binlogdatapb.VEvent, error) {
	if err := p.enter("Drain"); err != nil {
		return nil, err
	}
	return p.Relay.drain(), nil
}

func (p *Player) Arrived() (arrived <-chan struct{}, release func()) {
	return p.Relay.arrived(), func() {}
}

func (p *Player) Begin() error {
	p.outside("Begin")
	if err := p.enter("Begin"); err != nil {
		return err
	}
	p.begin()
	return nil
}

func (p *Player) Exec(ctx context.Context, sql string) (*sqltypes.Result, error) {
	if err := p.enter("Exec " + sql); err != nil {
		return nil, err
	}
	if !p.inTx {
		p.DB.Blame("stream %d calls Exec outside of a transaction", p.ID)
	}
	if p.batching {
		return nil, p.query(ctx, sql)
	}
	return p.DB.Exec(p.tx, sql)
}

func (p *Player) Commit() error {
	return p.commit()
}

func (p *Player) SavePosition(ctx context.Context, gtid string, _ int64) (stopped bool, err error) {
	if err := p.enter("SavePosition"); err != nil {
		return false, err
	}
	p.pos = gtid
	return p.updatePos(ctx)
}

func (p *Player) PositionUpdate(gtid string, _ int64) (string, error) {
	return p.positionUpdate(gtid), nil
}

func (p *Player) Advance(events []*binlogdatapb.VEvent) error {
	p.outside("Advance")
	for _, event := range events {
		switch event.Type {
		case binlogdatapb.VEventType_GTID:
			p.pos = event.Gtid
		case binlogdatapb.VEventType_FIELD:
			p.plans[event.FieldEvent.TableName] = p.plan(event.FieldEvent.TableName)
		}
	}
	p.unsaved = nil
	p.timeLastSaved = time.Now()
	return nil
}

func (p *Player) Throttled(context.Context) bool {
	// There is no error to return: the next call has it.
	_ = p.enter("Throttled")
	return p.Throttle != nil && p.Throttle()
}

func (p *Player) KeepAlive() error {
	p.outside("KeepAlive")
	if err := p.enter("KeepAlive"); err != nil {
		return err
	}
	return p.recordHeartbeat()
}

func (p *Player) SetMessage(message string) error {
	p.outside("SetMessage")
	if err := p.enter("SetMessage"); err != nil {
		return err
	}
	return p.DB.Do(p.ID, p.streamUpdate("message "+message, func(row *StreamRow) { row.Message = message }))
}

func (p *Player) Table(name string) (*mergebackoff.Table, error) { return p.plans[name], nil }

func (p *Player) Plan(event *binlogdatapb.FieldEvent) (*mergebackoff.Table, error) {
	return p.plan(event.TableName), nil
}

func (p *Player) SkipsDDL() bool           { return !p.ExecutesDDL }
func (p *Player) StopsAt(gtid string) bool { return p.StopPos != "" && gtid >= p.StopPos }

// plan is a new plan of a table, as each FIELD event makes one.
func (p *Player) plan(name string) *mergebackoff.Table {
	def := p.DB.tables[name]
	table := &mergebackoff.Table{
		Name: name, Columns: len(def.Columns), Key: def.Key, Plan: def, Refuse: def.Refuse,
		Unique: []mergebackoff.UniqueKey{{Name: "PRIMARY", Columns: def.Key}},
	}
	for _, c := range def.Columns {
		table.JSON = append(table.JSON, c.JSON)
	}
	for _, key := range def.Unique {
		columns := key.Columns
		if p.Opaque {
			columns = nil
		}
		table.Unique = append(table.Unique, mergebackoff.UniqueKey{Name: key.Name, Columns: columns})
	}
	return table
}

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

func bitSet(bitmap *binlogdatapb.RowChange_Bitmap, i int) bool {
	return bitmap.Cols[i/8]&(1<<(i%8)) != 0
}

// rowOf reads an image. A column that it does not carry looks NULL.
func rowOf(image *querypb.Row) Row {
	row := make(Row, 0, len(image.Lengths))
	values := image.Values
	for _, length := range image.Lengths {
		if length < 0 {
			row = append(row, Null)
			continue
		}
		row = append(row, string(values[:length]))
		values = values[length:]
	}
	return row
}

// Image writes a row as an image that carries some of its columns.
func Image(row Row, carried func(column int) bool) *querypb.Row {
	image := &querypb.Row{}
	for i, value := range row {
		if value == Null || (carried != nil && !carried(i)) {
			image.Lengths = append(image.Lengths, -1)
			continue
		}
		image.Lengths = append(image.Lengths, int64(len(value)))
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
			change.Before = Image(before, nil)
		}
		if after != nil {
			change.After = Image(after, nil)
		}
		return change
	}
	changed := func(i int) bool { return before[i] != after[i] }
	// A blob, and JSON as well, is left out unless it changes; a before image
	// leaves it out in any case.
	carriedBefore := func(i int) bool { return !images.NoBlob || !(def.Columns[i].Blob || def.Columns[i].JSON) }
	carriedAfter := func(i int) bool { return carriedBefore(i) || changed(i) }
	row := slices.Clone(after)
	columns := &binlogdatapb.RowChange_Bitmap{Count: int64(len(row)), Cols: make([]byte, (len(row)+7)/8)}
	var partial *binlogdatapb.RowChange_Bitmap
	json := 0
	for i, c := range def.Columns {
		if carriedAfter(i) {
			columns.Cols[i/8] |= 1 << (i % 8)
		}
		if !c.JSON {
			continue
		}
		if images.PartialJSON && before[i] != Null && after[i] != Null && strings.HasPrefix(after[i], before[i]) {
			if partial == nil {
				partial = &binlogdatapb.RowChange_Bitmap{Cols: make([]byte, (len(row)+7)/8)}
			}
			partial.Cols[json/8] |= 1 << (json % 8)
			row[i] = after[i][len(before[i]):]
			// It is marked as carried, even if the difference is empty.
			columns.Cols[i/8] |= 1 << (i % 8)
		}
		json++
	}
	if partial != nil {
		partial.Count = int64(json)
		change.JsonPartialValues = partial
	}
	change.Before = Image(before, carriedBefore)
	change.After = Image(row, func(i int) bool { return bitSet(columns, i) })
	if images.NoBlob || partial != nil {
		change.DataColumns = columns
	}
	return change
}

// PlannedTables are the names of the target's tables.
func (db *Database) PlannedTables() []string {
	return slices.Sorted(maps.Keys(db.tables))
}
