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
	"time"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is what merge backoff needs of the model of vplayer.

func (p *Player) InTransaction() bool { return p.inTx }

func (p *Player) StopReached() bool { return p.stopReached() }

func (p *Player) Mark() {
	p.outside("Mark")
	p.markedPos, p.markedUnsaved, p.markedStopped = p.pos, p.unsaved, p.stopped
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
	if p.stopped != p.markedStopped {
		// The transaction had reached the stop position.
		p.stopped = p.markedStopped
		p.Hub.SetState(p.ID, binlogdatapb.VReplicationWorkflowState_Running)
	}
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

func (p *Player) Claim(ids []int32) (release func() error, ok bool, err error) {
	p.outside("Claim")
	if err := p.enter("Claim"); err != nil {
		return nil, false, err
	}
	p.claims = ids
	return func() error {
		p.claims = nil
		return p.enter("release of what was claimed")
	}, true, nil
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
	// vplayer's own retry would run it again.
	p.sent = append(p.sent, sql)
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

func (p *Player) SkipsDDL() bool { return p.OnDDL == binlogdatapb.OnDDLAction_IGNORE }

func (p *Player) StopsAt(gtid string) bool { return p.StopPos != "" && gtid >= p.StopPos }

func (p *Player) Blocked(block mergebackoff.Block) {
	p.outside("Blocked")
	p.Blocks = append(p.Blocks, block)
}

func (p *Player) Unblocked(block mergebackoff.Block) {
	p.Blocks = append(p.Blocks, block)
}
