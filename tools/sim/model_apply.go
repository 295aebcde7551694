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
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is how the model of vplayer applies events.

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
		statements, err := p.statements(table.Plan.(*TableDef), event.RowEvent.RowChanges)
		if err != nil {
			return err
		}
		for _, sql := range statements {
			if err := p.query(ctx, sql); err != nil {
				return err
			}
		}
	case binlogdatapb.VEventType_OTHER, binlogdatapb.VEventType_DDL:
		return p.applyOther(ctx, event)
	case binlogdatapb.VEventType_HEARTBEAT:
		if !p.inTx {
			return p.recordHeartbeat()
		}
	}
	return nil
}

func (p *Player) applyOther(ctx context.Context, event *binlogdatapb.VEvent) error {
	if p.inTx {
		return fmt.Errorf("internal error: vplayer is in a transaction on event: %v", event)
	}
	if event.Type == binlogdatapb.VEventType_DDL && executed(p.OnDDL) && p.Execute != nil {
		p.Execute(p.pos)
	}
	stopped, err := p.updatePos(ctx)
	if err != nil {
		return err
	}
	if event.Type == binlogdatapb.VEventType_DDL && p.OnDDL == binlogdatapb.OnDDLAction_STOP && !stopped {
		stopped = true
		if err := p.stop(ctx); err != nil {
			return err
		}
	}
	if stopped {
		return io.EOF
	}
	return nil
}

// executed reports whether a DDL is executed on the target.
func executed(action binlogdatapb.OnDDLAction) bool {
	return action == binlogdatapb.OnDDLAction_EXEC || action == binlogdatapb.OnDDLAction_EXEC_IGNORE
}

// statements are those of a ROW event. Rows that are all inserted, or all deleted,
// go into one where the player batches.
func (p *Player) statements(def *TableDef, changes []*binlogdatapb.RowChange) (statements []string, err error) {
	inserts, deletes := 0, 0
	for _, change := range changes {
		switch {
		case change.Before == nil:
			inserts++
		case change.After == nil:
			deletes++
		}
	}
	if n := len(changes); p.batching && n > 1 && (inserts == n || deletes == n && len(def.Key) == 1) {
		return p.renderBulk(def, changes), nil
	}
	for _, change := range changes {
		more, err := p.render(def, change, false)
		if err != nil {
			return nil, err
		}
		statements = append(statements, more...)
	}
	return statements, nil
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
	return true, p.stop(ctx)
}

// stop is setState, for a player that ends by itself.
func (p *Player) stop(ctx context.Context) error {
	if err := p.query(ctx, p.streamUpdate("state Stopped", func(row *StreamRow) { row.State = "Stopped" })); err != nil {
		return err
	}
	p.stopped = true
	p.Hub.SetState(p.ID, binlogdatapb.VReplicationWorkflowState_Stopped)
	return nil
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
		p.sent = append(p.sent, sql)
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
	p.checkClaims()
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

// checkClaims blames a transaction that saves the position of a stream which could
// start again while it is under way.
func (p *Player) checkClaims() {
	p.DB.mu.Lock()
	positions := p.tx.positions()
	p.DB.mu.Unlock()
	for id := range positions {
		if id != p.ID && !slices.Contains(p.claims, id) {
			p.DB.Blame("stream %d saves the position of stream %d, which it has not claimed", p.ID, id)
		}
	}
}
