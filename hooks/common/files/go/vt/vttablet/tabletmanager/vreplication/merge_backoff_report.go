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
	"fmt"
	"log/slog"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
)

// Blocked reports a block that lasts, in vreplication_log and in the log. Both get
// one entry a block, and one at its end, however often the stream has tried
// meanwhile: that is what bounds their rate.
func (mp *mergePlayer) Blocked(block mergebackoff.Block) {
	vr := mp.vp.vr
	insertLog(vr.dbClient, LogMessage, vr.id, vr.state.String(), block.Message)
	mergeLogWarn("merge backoff: the stream is blocked", mp.blockAttrs(block)...)
}

// Unblocked notes how long a block lasted, and reports its end if it was reported.
func (mp *mergePlayer) Unblocked(block mergebackoff.Block) {
	vr := mp.vp.vr
	mergeBlockedTimings.Add(vr.mergeLabelValues(), block.Lasted)
	attrs := append(mp.blockAttrs(block), slog.Duration("blocked", block.Lasted), slog.String("end", string(block.End)))
	switch {
	case block.End == mergebackoff.GivenUp:
		// The state's change has a row in vreplication_log already.
		mergeLogError(block.Message, attrs...)
	case block.Reported && block.End != "":
		insertLog(vr.dbClient, LogMessage, vr.id, vr.state.String(), fmt.Sprintf("%sgoing on after %v (%s)",
			mergebackoff.MessagePrefix, block.Lasted.Round(time.Millisecond), block.End))
		mergeLogInfo("merge backoff: the stream goes on", attrs...)
	}
}

// blockAttrs are the attributes of a block's entries in the log.
func (mp *mergePlayer) blockAttrs(block mergebackoff.Block) []slog.Attr {
	peers := make([]string, len(block.Peers))
	for i, peer := range block.Peers {
		peers[i] = peer.String()
	}
	return []slog.Attr{
		slog.String("workflow", mp.vp.vr.WorkflowName),
		slog.Int("stream", int(mp.vp.vr.id)),
		slog.String("key", block.Key),
		slog.String("value", block.Value),
		slog.Time("since", block.Since),
		slog.String("peers", strings.Join(peers, ", ")),
	}
}
