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
	"strconv"

	"vitess.io/vitess/go/stats"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
)

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
