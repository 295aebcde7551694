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
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/log"
)

// This file has what merge backoff needs of vreplication that is not the same in
// all release lines.

// deferStall keeps the relay log from taking a wait for a stall.
func (vp *vplayer) deferStall() {
	vp.merge.relay.waited.Store(time.Now().UnixNano())
}

// stallDeferral is how much longer a full relay log is no stall: the deadline runs
// from when the applier last said that it waits.
func (rl *relayLog) stallDeferral() time.Duration {
	return vplayerProgressDeadline - time.Since(time.Unix(0, rl.waited.Load()))
}

// applyRecovered is applyEvents, but for a panic, which ends the run with an error
// instead of the process.
func (vp *vplayer) applyRecovered(ctx context.Context, relay *relayLog) (err error) {
	defer func() {
		if vp.merge == nil {
			return
		}
		if x := recover(); x != nil {
			log.Errorf("stream %d of workflow %s: caught panic: %v\n%s", vp.vr.id, vp.vr.WorkflowName, x, debug.Stack())
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return vp.applyEvents(ctx, relay)
}

// setMergeConnection does nothing: every connection takes several statements in
// one query.
func (vp *vplayer) setMergeConnection() error {
	return nil
}

// mergeBatchSize is the bound on the size of a batch, and of a bulk statement; zero
// is no batching.
func (vp *vplayer) mergeBatchSize() *int64 {
	return &vp.vr.dbClient.maxBatchSize
}

// mergeLabels are the labels of a stream's metrics, as the other metrics of
// vreplication have them. "counts" is the stream's id.
var mergeLabels = []string{"source_keyspace", "source_shard", "workflow", "counts"}

// mergeLabelValues are the stream's values of mergeLabels.
func (ct *controller) mergeLabelValues() []string {
	return []string{ct.source.GetKeyspace(), ct.source.GetShard(), ct.workflow, strconv.Itoa(int(ct.id))}
}

func (vr *vreplicator) mergeLabelValues() []string {
	return []string{vr.source.GetKeyspace(), vr.source.GetShard(), vr.WorkflowName, strconv.Itoa(int(vr.id))}
}

// setLag exports how far the stream is behind, in seconds.
func (vp *vplayer) setLag(behind int64) {
	vp.vr.stats.VReplicationLags.Add(strconv.Itoa(int(vp.vr.id)), time.Duration(behind)*time.Second)
}

// isGenerated reports whether a column of the plan is a generated one: here the plan
// has none of these.
func isGenerated(_ *colExpr) bool {
	return false
}

func mergeLogError(msg string, attrs ...slog.Attr) { log.Error(withAttrs(msg, attrs)) }
func mergeLogWarn(msg string, attrs ...slog.Attr)  { log.Warning(withAttrs(msg, attrs)) }
func mergeLogInfo(msg string, attrs ...slog.Attr)  { log.Info(withAttrs(msg, attrs)) }

func withAttrs(msg string, attrs []slog.Attr) string {
	var b strings.Builder
	b.WriteString(msg)
	for _, attr := range attrs {
		fmt.Fprintf(&b, " %s=%q", attr.Key, attr.Value)
	}
	return b.String()
}
