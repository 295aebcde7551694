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
	"vitess.io/vitess/go/stats"
	"vitess.io/vitess/go/vt/log"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle/throttlerapp"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// mergePlayer lets merge backoff work a vplayer. See the mergebackoff package,
// whose doc.go numbers the duties that the comments here refer to.
type mergePlayer struct {
	vp *vplayer

	// The player's own way of sending statements, which isolation replaces for
	// as long as it lasts.
	query        func(ctx context.Context, sql string) (*sqltypes.Result, error)
	commit       func() error
	batchMode    bool
	maxBatchSize int64

	// What Mark remembers, and Rollback returns to.
	pos          replication.Position
	unsavedEvent *binlogdatapb.VEvent
}

// newMergeBackoff returns the merge backoff of a player, or nil if the workflow
// has it switched off. It covers the replicate phase.
func newMergeBackoff(vp *vplayer) *mergebackoff.Backoff {
	vr := vp.vr
	if vr.workflowConfig.ExperimentalFlags&vttablet.VReplicationExperimentalFlagMergeBackoff == 0 || vp.phase != "replicate" {
		return nil
	}
	player := &mergePlayer{
		vp:           vp,
		query:        vp.query,
		commit:       vp.commit,
		batchMode:    vp.batchMode,
		maxBatchSize: vp.maxBatchSize,
	}
	player.Mark()
	return mergebackoff.New(player, &vr.vre.mergeHub, mergebackoff.Config{
		ID:     vr.id,
		Tables: slices.Sorted(maps.Keys(vr.colInfoMap)),
		Limit:  vr.workflowConfig.MaxTimeToRetryError,
	})
}

// applyEventInMerge applies an event through merge backoff, where there is one.
func (vp *vplayer) applyEventInMerge(ctx context.Context, event *binlogdatapb.VEvent, mustSave bool) error {
	if vp.mergeBackoff == nil {
		return vp.applyEvent(ctx, event, mustSave)
	}
	return vp.mergeBackoff.Apply(ctx, event, mustSave)
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
	vp.maxBatchSize = 0
	if on {
		vp.maxBatchSize = mp.maxBatchSize
	}
	return vp.setConnectionBatchMode()
}

func (mp *mergePlayer) Throttled(ctx context.Context) bool {
	vp := mp.vp
	checkResult, ok := vp.vr.vre.throttlerClient.ThrottleCheckOKOrWaitAppName(ctx, throttlerapp.Name(vp.throttlerAppName))
	if ok {
		return false
	}
	vp.lastThrottledNano.Store(int64(time.Since(vplayerThrottleEpoch)))
	_ = vp.vr.updateTimeThrottled(throttlerapp.VPlayerName, checkResult.Summary())
	vp.estimateLag()
	return true
}

func (mp *mergePlayer) KeepAlive() error {
	vp := mp.vp
	// A stream that waits for a peer does not drain its relay log, as one that
	// is throttled does not. Neither is a stall.
	vp.lastThrottledNano.Store(int64(time.Since(vplayerThrottleEpoch)))
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
	behind := time.Now().UnixNano() - vp.lastTimestampNs - vp.timeOffsetNs
	vp.vr.stats.ReplicationLagSeconds.Store(behind / 1e9)
	vp.vr.stats.VReplicationLagGauges.Set(strconv.Itoa(int(vp.vr.id)), behind/1e9)
}

// addToMerge tells the engine's hub of the stream of a row of _vt.vreplication,
// so that others find out that it is a peer of theirs. A row that cannot be read
// is told of as well: nobody can say which tables it would write.
func (vre *Engine) addToMerge(row map[string]string) {
	id, err := strconv.ParseInt(row["id"], 10, 32)
	if err != nil {
		log.Error("merge backoff: a row of _vt.vreplication has no valid id, so its stream is nobody's peer", slog.String("id", row["id"]))
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
		log.Error("merge backoff: a row of _vt.vreplication cannot be read",
			slog.String("workflow", stream.Workflow),
			slog.Int("id", int(stream.ID)),
			slog.Any("error", err),
		)
	}
	vre.mergeHub.Put(stream)
}

func init() {
	registerMergeStats(globalStats)
}

// registerMergeStats exports what merge backoff counts, a pair of metrics each.
func registerMergeStats(st *vrStats) {
	perStream := func(add func(result map[string]int64, label string, counts mergebackoff.Counts)) func() map[string]int64 {
		return func() map[string]int64 {
			st.mu.Lock()
			defer st.mu.Unlock()
			result := make(map[string]int64, len(st.controllers))
			for _, ct := range st.controllers {
				add(result, ct.workflow+"."+strconv.Itoa(int(ct.id)), ct.vre.mergeHub.Counts(ct.id))
			}
			return result
		}
	}
	total := func(perStream func() map[string]int64) func() int64 {
		return func() (sum int64) {
			for _, n := range perStream() {
				sum += n
			}
			return sum
		}
	}
	conflicts := perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
		result[label] = counts.Conflicts
	})
	resolutions := perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
		for how, n := range counts.Resolutions {
			result[label+"."+string(how)] = n
		}
	})
	blocked := perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
		result[label] = 0
		if counts.Blocked {
			result[label] = 1
		}
	})
	stats.NewCountersFuncWithMultiLabels("VReplicationMergeConflictCount",
		"Duplicate keys and lock errors that streams of a merge met, per stream", []string{"workflow", "counts"}, conflicts)
	stats.NewCounterFunc("VReplicationMergeConflictCountTotal",
		"Duplicate keys and lock errors that streams of a merge met, across all streams", total(conflicts))
	stats.NewCountersFuncWithMultiLabels("VReplicationMergeResolutionCount",
		"What became of the conflicts that streams of a merge met, per stream and rung", []string{"workflow", "counts", "rung"}, resolutions)
	stats.NewCounterFunc("VReplicationMergeResolutionCountTotal",
		"What became of the conflicts that streams of a merge met, across all streams", total(resolutions))
	stats.NewGaugesFuncWithMultiLabels("VReplicationMergeBlockedStreams",
		"Whether a stream of a merge waits for another stream now", []string{"workflow", "counts"}, blocked)
}
