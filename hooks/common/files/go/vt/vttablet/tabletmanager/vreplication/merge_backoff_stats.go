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
	"strings"

	"vitess.io/vitess/go/stats"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
)

// mergeBlockedTimings has how long streams were blocked, block by block.
var mergeBlockedTimings = stats.NewMultiTimings("VReplicationMergeBlockedTimings",
	"How long streams of a merge were blocked by a conflict, per stream", mergeLabels)

func init() {
	// Not the value: the engine's tests put another one in its place.
	registerMergeStats(func() *vrStats { return globalStats })
}

// registerMergeStats exports what merge backoff counts: a metric per stream and,
// for what is counted, one across all streams.
func registerMergeStats(current func() *vrStats) {
	perStream := func(add func(result map[string]int64, label string, counts mergebackoff.Counts)) func() map[string]int64 {
		return func() map[string]int64 {
			st := current()
			st.mu.Lock()
			defer st.mu.Unlock()
			result := make(map[string]int64, len(st.controllers))
			for _, ct := range st.controllers {
				add(result, strings.Join(ct.mergeLabelValues(), "."), ct.vre.mergeHub.Counts(ct.id))
			}
			return result
		}
	}
	counter := func(name, help string, labels []string, perStream func() map[string]int64) {
		stats.NewCountersFuncWithMultiLabels(name, help+", per stream", labels, perStream)
		stats.NewCounterFunc(name+"Total", help+", across all streams", func() (sum int64) {
			for _, n := range perStream() {
				sum += n
			}
			return sum
		})
	}
	counter("VReplicationMergeConflictCount", "Duplicate keys and lock errors that streams of a merge met", mergeLabels,
		perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
			result[label] = counts.Conflicts
		}))
	counter("VReplicationMergeResolutionCount", "What became of the conflicts that streams of a merge met", append(mergeLabels[:len(mergeLabels):len(mergeLabels)], "rung"),
		perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
			for how, n := range counts.Resolutions {
				result[label+"."+string(how)] = n
			}
		}))
	counter("VReplicationMergeGenuineDuplicateCount", "Duplicate keys that the sources of a merge really hold, and that ended a stream", mergeLabels,
		perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
			result[label] = counts.Genuine
		}))
	stats.NewGaugesFuncWithMultiLabels("VReplicationMergeBlockedStreams",
		"Whether a stream of a merge waits for another stream now", mergeLabels,
		perStream(func(result map[string]int64, label string, counts mergebackoff.Counts) {
			result[label] = 0
			if counts.Blocked {
				result[label] = 1
			}
		}))
}
