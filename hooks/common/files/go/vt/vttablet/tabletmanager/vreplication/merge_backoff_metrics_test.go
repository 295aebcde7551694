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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/stats/prometheusbackend"
)

// exportMergeMetrics has Vitess's Prometheus backend export all metrics. That can
// be done once in a process.
var exportMergeMetrics = sync.OnceFunc(func() { prometheusbackend.Init("vttablet") })

// metric returns the value of a stream's metric as Prometheus gets it: of a
// histogram the number of its samples, and 0 where there is none. more are further
// labels and their values.
func (m *mergeTest) metric(name string, i int, more ...string) float64 {
	m.t.Helper()
	want := append([]string{"source_keyspace", "vttest", "source_shard", "0", "workflow", "merge", "counts", strconv.Itoa(m.ids[i])}, more...)
	families, err := prometheus.DefaultGatherer.Gather()
	require.NoError(m.t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := make(map[string]string)
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			matches := len(labels) == len(mergeLabels)+len(more)/2
			for j := 0; j < len(want); j += 2 {
				matches = matches && labels[want[j]] == want[j+1]
			}
			if matches {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return 0
}

const (
	metricConflicts   = "vttablet_v_replication_merge_conflict_count"
	metricResolutions = "vttablet_v_replication_merge_resolution_count"
	metricBlocked     = "vttablet_v_replication_merge_blocked_streams"
	metricTimings     = "vttablet_v_replication_merge_blocked_timings"
	metricGenuine     = "vttablet_v_replication_merge_genuine_duplicate_count"
)

// TestMergeBackoffMetrics shows what an operator's dashboards get of a stream that
// waits, goes on, and ends at a genuine duplicate. On stock there are no such
// metrics.
func TestMergeBackoffMetrics(t *testing.T) {
	exportMergeMetrics()
	m := newBlockedMerge(t)
	require.EqualValues(t, 1, m.metric(metricConflicts, 1))
	require.EqualValues(t, 1, m.metric(metricBlocked, 1))
	require.Zero(t, m.metric(metricBlocked, 0))
	// The second round of the framework has the same ids again.
	blocks := m.metric(metricTimings, 1)
	require.Zero(t, m.metric(metricResolutions, 1, "rung", "wait"))

	m.start(0)
	m.waitConverged()
	m.waitFor("the block is over", func() (bool, string) { return m.metric(metricBlocked, 1) == 0, "" })
	require.EqualValues(t, blocks+1, m.metric(metricTimings, 1))
	require.EqualValues(t, 1, m.metric(metricResolutions, 1, "rung", "wait"))
	require.Zero(t, m.metric(metricGenuine, 1))

	m.exec("insert into {0} values (3, 10, 'c')")
	m.waitDuplicate(0)
	require.EqualValues(t, 1, m.metric(metricGenuine, 0))
	require.EqualValues(t, 1, m.metric(metricResolutions, 0, "rung", "give_up"))
	require.Zero(t, m.metric(metricBlocked, 0))
}

// TestMergeBackoffLog shows that vreplication_log has one row when a stream was
// blocked for more than a few seconds, and one when it went on, however often it
// tried in between; and none of a block that is shorter. On stock the stream has
// ended by then.
func TestMergeBackoffLog(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newBlockedMerge(t, batching)
		rows := func() []string {
			return m.query(fmt.Sprintf("select state, message, count from _vt.vreplication_log where vrepl_id=%d and message like 'merge backoff: %%' order by id", m.ids[1]))
		}
		require.Empty(t, rows(), "the block has not lasted yet")
		m.waitFor("the block is logged", func() (bool, string) { return len(rows()) == 1, "" })
		require.Contains(t, rows()[0], "merge backoff: waiting since")
		require.Contains(t, rows()[0], fmt.Sprintf("stream %d (merge, source vttest/0, Stopped)", m.ids[0]))

		// A further second of tries adds nothing.
		before := m.column(1, "time_updated")
		m.waitFor("time has passed", func() (bool, string) { return m.column(1, "time_updated") > before, "" })
		require.Len(t, rows(), 1)

		m.start(0)
		m.waitConverged()
		m.waitFor("the end is logged", func() (bool, string) { return len(rows()) == 2, strings.Join(rows(), "; ") })
		require.Regexp(t, `merge backoff: going on after [0-9.]+s \((wait|isolate|joint|net_effect)\)`, rows()[1])

		// A short one.
		m.stop(0)
		m.exec("insert into {0} values (6, 60, 'f')", "delete from {0} where id=6", "update {0} set uid=70 where id=7")
		start := time.Now()
		m.start(0)
		m.waitConverged()
		if time.Since(start) < 5*time.Second {
			require.Len(t, rows(), 2)
		}
	})
}
