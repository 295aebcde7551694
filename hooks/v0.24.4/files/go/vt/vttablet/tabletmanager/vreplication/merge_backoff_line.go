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
	"log/slog"
	"strconv"
	"time"

	"vitess.io/vitess/go/vt/log"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file has what merge backoff needs of vreplication that is not the same in
// all release lines.

// deferStall keeps the relay log from taking a wait for a stall, as vplayer does
// where it is throttled.
func (vp *vplayer) deferStall() {
	vp.lastThrottledNano.Store(int64(time.Since(vplayerThrottleEpoch)))
}

// setMergeConnection has the connection take several statements in one query, or
// not, as batchMode says.
func (vp *vplayer) setMergeConnection() error {
	return vp.setConnectionBatchMode()
}

// mergeBatchSize is the bound on the size of a batch, and of a bulk statement; zero
// is no batching.
func (vp *vplayer) mergeBatchSize() *int64 {
	return &vp.maxBatchSize
}

// mergeLabels are the labels of a stream's metrics, as the other metrics of
// vreplication have them. "counts" is the stream's id.
var mergeLabels = []string{"source_keyspace", "source_shard", "workflow", "workflow_type", "counts"}

// mergeLabelValues are the stream's values of mergeLabels.
func (ct *controller) mergeLabelValues() []string {
	return []string{ct.source.GetKeyspace(), ct.source.GetShard(), ct.workflow, binlogdatapb.VReplicationWorkflowType(ct.workflowType).String(), strconv.Itoa(int(ct.id))}
}

func (vr *vreplicator) mergeLabelValues() []string {
	return []string{vr.source.GetKeyspace(), vr.source.GetShard(), vr.WorkflowName, binlogdatapb.VReplicationWorkflowType(vr.WorkflowType).String(), strconv.Itoa(int(vr.id))}
}

// setLag exports how far the stream is behind, in seconds.
func (vp *vplayer) setLag(behind int64) {
	vp.vr.stats.VReplicationLagGauges.Set(strconv.Itoa(int(vp.vr.id)), behind)
}

// isGenerated reports whether a column of the plan is a generated one.
func isGenerated(cexpr *colExpr) bool {
	return cexpr.isGenerated
}

func mergeLogError(msg string, attrs ...slog.Attr) { log.Error(msg, attrs...) }
func mergeLogWarn(msg string, attrs ...slog.Attr)  { log.Warn(msg, attrs...) }
func mergeLogInfo(msg string, attrs ...slog.Attr)  { log.Info(msg, attrs...) }
