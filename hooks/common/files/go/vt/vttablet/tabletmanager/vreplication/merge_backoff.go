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

package vreplication

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/prototext"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle/throttlerapp"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// mergePlayer lets merge backoff work a vplayer. See the mergebackoff package,
// whose doc.go numbers the duties that the comments here refer to. A nil
// mergePlayer is one that is switched off.
type mergePlayer struct {
	vp      *vplayer
	backoff *mergebackoff.Backoff
	relay   *relayLog

	// The player's own way of sending statements, which isolation replaces for
	// as long as it lasts.
	query        func(ctx context.Context, sql string) (*sqltypes.Result, error)
	commit       func() error
	batchMode    bool
	maxBatchSize int64

	// What Mark remembers, and Rollback returns to.
	pos          replication.Position
	unsavedEvent *binlogdatapb.VEvent
	state        binlogdatapb.VReplicationWorkflowState

	// tables has what merge backoff knows of each plan.
	tables map[*TablePlan]*mergebackoff.Table
}

// newMergePlayer returns the merge backoff of a player that is about to read
// from the relay log, or nil if the workflow has it switched off.
func newMergePlayer(vp *vplayer, relay *relayLog) *mergePlayer {
	vr := vp.vr
	if vr.workflowConfig.ExperimentalFlags&vttablet.VReplicationExperimentalFlagMergeBackoff == 0 {
		return nil
	}
	mp := &mergePlayer{
		vp:           vp,
		relay:        relay,
		query:        vp.query,
		commit:       vp.commit,
		batchMode:    vp.batchMode,
		maxBatchSize: *vp.mergeBatchSize(),
		tables:       make(map[*TablePlan]*mergebackoff.Table),
	}
	mp.Mark()
	mp.backoff = mergebackoff.New(mp, &vr.vre.mergeHub, mergebackoff.Config{
		ID:       vr.id,
		Position: replication.EncodePosition(vp.startPos),
		Tables:   slices.Sorted(maps.Keys(vr.colInfoMap)),
		Limit:    vr.workflowConfig.MaxTimeToRetryError,
	})
	return mp
}

// fetch returns the next events to apply, from the relay log or from what a
// resolution has left.
func (vp *vplayer) fetch(ctx context.Context, relay *relayLog) ([][]*binlogdatapb.VEvent, error) {
	if vp.merge == nil {
		return relay.Fetch()
	}
	if err := vp.merge.backoff.HoldBack(ctx); err != nil {
		return nil, err
	}
	if items := vp.merge.backoff.Leftover(); items != nil {
		return items, nil
	}
	items, err := relay.Fetch()
	if err != nil {
		return nil, err
	}
	return items, vp.merge.backoff.Fetched(items)
}

// skip reports whether the next event was committed when a conflict was
// resolved.
func (mp *mergePlayer) skip() bool {
	return mp != nil && mp.backoff.Skip()
}

// group reports whether a COMMIT that another follows may be put off.
func (mp *mergePlayer) group(event *binlogdatapb.VEvent) bool {
	return mp == nil || mp.backoff.Group(event)
}

// applyMerged applies an event through merge backoff, where there is one.
func (vp *vplayer) applyMerged(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error {
	if vp.merge == nil {
		return vp.applyEvent(ctx, event, mustSave)
	}
	return vp.merge.backoff.Apply(ctx, event, mustSave)
}

func (mp *mergePlayer) Apply(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error {
	return mp.vp.applyEvent(ctx, event, mustSave)
}

func (mp *mergePlayer) InTransaction() bool {
	return mp.vp.vr.dbClient.InTransaction
}

func (mp *mergePlayer) StopReached() bool {
	return !mp.vp.stopPos.IsZero() && mp.vp.pos.AtLeast(mp.vp.stopPos)
}

func (mp *mergePlayer) Mark() {
	mp.pos = mp.vp.pos
	mp.unsavedEvent = mp.vp.unsavedEvent
	mp.state = mp.vp.vr.state
}

func (mp *mergePlayer) Rollback() error {
	dbClient := mp.vp.vr.dbClient
	if err := dbClient.Rollback(); err != nil {
		return err
	}
	// The client keeps the statements for Retry, which would run them all again
	// in front of the replay's own.
	dbClient.queries = nil
	dbClient.queriesPos = 0
	dbClient.batchSize = 0
	// The statement that sets foreign_key_checks may have been in a batch that
	// never ran, so what the session has is not known.
	mp.vp.foreignKeyChecksStateInitialized = false
	mp.vp.pos = mp.pos
	mp.vp.unsavedEvent = mp.unsavedEvent
	if vr := mp.vp.vr; vr.state != mp.state {
		// The transaction had reached the stop position.
		vr.state = mp.state
		vr.stats.State.Store(mp.state.String())
		vr.vre.setMergeState(vr.id, mp.state)
	}
	return nil
}

func (mp *mergePlayer) SetBatching(on bool) error {
	vp := mp.vp
	if on {
		vp.query, vp.commit = mp.query, mp.commit
	} else {
		// No ExecuteWithRetry: it sleeps through a stop, and its retry starts a
		// transaction again from a list of statements. The ladder retries.
		vp.query = func(_ context.Context, sql string) (*sqltypes.Result, error) {
			return vp.vr.dbClient.Execute(sql)
		}
		vp.commit = func() error { return vp.vr.dbClient.Commit() }
	}
	if !mp.batchMode {
		return nil
	}
	vp.batchMode = on
	*vp.mergeBatchSize() = 0
	if on {
		*vp.mergeBatchSize() = mp.maxBatchSize
	}
	return vp.setMergeConnection()
}

func (mp *mergePlayer) Drain() ([][]*binlogdatapb.VEvent, error) {
	return mp.relay.drain()
}

func (mp *mergePlayer) Arrived() (arrived <-chan struct{}, release func()) {
	return mp.relay.arrived()
}

func (mp *mergePlayer) Claim(ids []int32) (release func() error, ok bool, err error) {
	return claimMergeStreams(mp.vp.vr.dbClient, ids)
}

func (mp *mergePlayer) Begin() error {
	return mp.vp.vr.dbClient.Begin()
}

func (mp *mergePlayer) Exec(ctx context.Context, sql string) (*sqltypes.Result, error) {
	start := time.Now()
	var result *sqltypes.Result
	var err error
	if mp.vp.batchMode {
		result, err = mp.vp.query(ctx, sql)
	} else {
		// Without vplayer's own retry, see SetBatching.
		result, err = mp.vp.vr.dbClient.Execute(sql)
	}
	mp.vp.vr.stats.QueryTimings.Record(mp.vp.phase, start)
	mp.vp.vr.stats.QueryCount.Add(mp.vp.phase, 1)
	return result, err
}

func (mp *mergePlayer) Commit() error {
	return mp.vp.commit()
}

func (mp *mergePlayer) SavePosition(ctx context.Context, gtid string, timestamp int64) (stopped bool, err error) {
	pos, err := binlogplayer.DecodePosition(gtid)
	if err != nil {
		return false, err
	}
	mp.vp.pos = pos
	return mp.vp.updatePos(ctx, timestamp)
}

func (mp *mergePlayer) PositionUpdate(gtid string, timestamp int64) (string, error) {
	pos, err := binlogplayer.DecodePosition(gtid)
	if err != nil {
		return "", err
	}
	vr := mp.vp.vr
	return binlogplayer.GenerateUpdatePos(vr.id, pos, time.Now().Unix(), timestamp, vr.stats.CopyRowCount.Get(), vr.workflowConfig.StoreCompressedGTID), nil
}

// Advance does what applying these events does to the player, but for what they
// do to the target.
func (mp *mergePlayer) Advance(events []*binlogdatapb.VEvent) error {
	vp := mp.vp
	for _, event := range events {
		switch event.Type {
		case binlogdatapb.VEventType_GTID:
			pos, err := binlogplayer.DecodePosition(event.Gtid)
			if err != nil {
				return err
			}
			vp.pos = pos
		case binlogdatapb.VEventType_FIELD:
			tplan, err := vp.replicatorPlan.buildExecutionPlan(event.FieldEvent)
			if err != nil {
				return err
			}
			vp.tablePlans[event.FieldEvent.TableName] = tplan
		case binlogdatapb.VEventType_DDL:
			vp.vr.stats.DDLEventActions.Add(vp.vr.source.OnDdl.String(), 1)
		}
		if event.Timestamp != 0 && event.Type != binlogdatapb.VEventType_HEARTBEAT {
			vp.lastTimestampNs = event.Timestamp * 1e9
		}
	}
	vp.unsavedEvent = nil
	vp.timeLastSaved = time.Now()
	vp.numAccumulatedHeartbeats = 0
	vp.vr.stats.SetLastPosition(vp.pos)
	return nil
}

func (mp *mergePlayer) StopsAt(gtid string) bool {
	if mp.vp.stopPos.IsZero() {
		return false
	}
	pos, err := binlogplayer.DecodePosition(gtid)
	// A position that does not parse is an error once it is applied.
	return err != nil || pos.AtLeast(mp.vp.stopPos)
}

func (mp *mergePlayer) SkipsDDL() bool {
	return mp.vp.vr.source.OnDdl == binlogdatapb.OnDDLAction_IGNORE
}

func (mp *mergePlayer) Throttled(ctx context.Context) bool {
	vp := mp.vp
	checkResult, ok := vp.vr.vre.throttlerClient.ThrottleCheckOKOrWaitAppName(ctx, throttlerapp.Name(vp.throttlerAppName))
	if ok {
		return false
	}
	vp.deferStall()
	_ = vp.vr.updateTimeThrottled(throttlerapp.VPlayerName, checkResult.Summary())
	vp.estimateLag()
	return true
}

func (mp *mergePlayer) KeepAlive() error {
	vp := mp.vp
	// A stream that waits for a peer does not drain its relay log, as one that
	// is throttled does not. Neither is a stall.
	vp.deferStall()
	vp.estimateLag()
	vp.numAccumulatedHeartbeats++
	return vp.recordHeartbeat()
}

func (mp *mergePlayer) SetMessage(message string) error {
	// Without a row in vreplication_log, which setMessage would add: waits come
	// and go too often for that.
	vr := mp.vp.vr
	query := "update _vt.vreplication set message=" + encodeString(message) + " where id=" + strconv.Itoa(int(vr.id))
	_, err := vr.dbClient.Execute(query)
	return err
}

// estimateLag exports how far the player is behind, judged by the last event
// that it applied.
func (vp *vplayer) estimateLag() {
	behind := (time.Now().UnixNano() - vp.lastTimestampNs - vp.timeOffsetNs) / 1e9
	vp.vr.stats.ReplicationLagSeconds.Store(behind)
	vp.setLag(behind)
}

// drain returns what the log holds, and empties it. It does not wait.
func (rl *relayLog) drain() ([][]*binlogdatapb.VEvent, error) {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if err := rl.checkDone(); err != nil {
		return nil, err
	}
	items := rl.items
	rl.items = nil
	rl.curSize = 0
	rl.canAccept.Broadcast()
	return items, nil
}

// arrived returns a channel that is closed once the log holds anything. It takes
// nothing out.
func (rl *relayLog) arrived() (arrived <-chan struct{}, release func()) {
	ch := make(chan struct{})
	released := false
	go func() {
		rl.mu.Lock()
		defer rl.mu.Unlock()
		for len(rl.items) == 0 && !released && rl.checkDone() == nil {
			rl.hasItems.Wait()
		}
		if len(rl.items) > 0 {
			close(ch)
		}
	}()
	return ch, func() {
		rl.mu.Lock()
		defer rl.mu.Unlock()
		released = true
		rl.hasItems.Broadcast()
	}
}

// addToMerge tells the engine's hub of the stream of a row of _vt.vreplication,
// so that others find out that it is a peer of theirs. A row that cannot be read
// is told of as well: nobody can say which tables it would write.
func (vre *Engine) addToMerge(row map[string]string) {
	if vre == nil {
		return
	}
	id, err := strconv.ParseInt(row["id"], 10, 32)
	if err != nil {
		mergeLogError("merge backoff: a row of _vt.vreplication has no valid id, so its stream is nobody's peer", slog.String("id", row["id"]))
		return
	}
	workflowType, typeErr := strconv.ParseInt(row["workflow_type"], 10, 32)
	if row["workflow_type"] == "" {
		typeErr = nil
	}
	stream := mergebackoff.Stream{
		ID:           int32(id),
		Workflow:     row["workflow"],
		WorkflowType: binlogdatapb.VReplicationWorkflowType(workflowType),
		Source:       &binlogdatapb.BinlogSource{},
		State:        binlogdatapb.VReplicationWorkflowState(binlogdatapb.VReplicationWorkflowState_value[row["state"]]),
	}
	if err := errors.Join(typeErr, prototext.Unmarshal([]byte(row["source"]), stream.Source)); err != nil {
		stream.Err = err
		mergeLogError("merge backoff: a row of _vt.vreplication cannot be read",
			slog.String("workflow", stream.Workflow),
			slog.Int("id", int(stream.ID)),
			slog.Any("error", err),
		)
	}
	if config, err := processWorkflowOptions(row); err == nil {
		stream.Silent = config.ExperimentalFlags&vttablet.VReplicationExperimentalFlagMergeBackoff == 0
	}
	vre.mergeHub.Put(stream)
}

// setMergeState tells the engine's hub of a stream's new state.
func (vre *Engine) setMergeState(id int32, state binlogdatapb.VReplicationWorkflowState) {
	if vre != nil {
		vre.mergeHub.SetState(id, state)
	}
}
