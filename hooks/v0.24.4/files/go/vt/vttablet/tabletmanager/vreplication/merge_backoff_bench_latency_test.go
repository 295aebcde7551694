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
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// benchLatency is how soon a stream goes on that waited for a peer.
type benchLatency struct {
	Samples int `json:"samples"`
	// Milliseconds is the median time from the answer to the COMMIT that
	// releases a value to the answer to the COMMIT that takes it.
	Milliseconds float64 `json:"milliseconds"`
	// CommitMilliseconds is the median target transaction, of the streams that
	// release: one row and the position, in one request.
	CommitMilliseconds float64 `json:"commit_milliseconds"`
	Commits            float64 `json:"commits"`
	AtMost             float64 `json:"at_most"`
}

// fed is a source that sends a message of its recording for every token.
func (r *benchRecording) fed(tokens <-chan struct{}) benchSource {
	return func(ctx context.Context, _ replication.Position, send func([]*binlogdatapb.VEvent) error) error {
		f, err := os.Open(r.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in := bufio.NewReader(f)
		for {
			select {
			case <-ctx.Done():
				return io.EOF
			case <-tokens:
			}
			response, err := readBenchMessage(in)
			if err != nil {
				return err
			}
			if err := send(response.Events); err != nil {
				return err
			}
		}
	}
}

// measureLatency has stream 1 wait for a value again and again which stream 0
// then releases. Both commits are timed where their clients get the answers.
func measureLatency(t *testing.T) *benchLatency {
	t.Helper()
	samples := benchNumber(t, "MERGE_BACKOFF_BENCH_SAMPLES", 200)
	commits := &benchCommits{last: make(map[int]benchCommit)}
	useBenchEngine(t, commits)
	m := newMergeTest(t, 2, mergeDDL, mergeFlag(vttablet.VReplicationExperimentalFlagVPlayerBatching, true))
	n := 0
	history := m.record(t.TempDir(), "latency", 4*samples, func() string {
		n++
		// Source 0 takes the value and releases it, then source 1 does.
		source, id := (n-1)/2%2, (n-1)/2+1
		if n%2 == 1 {
			return fmt.Sprintf("%d insert into {} values (%d, 1, 'a value')", source, id)
		}
		return fmt.Sprintf("%d delete from {} where id=%d", source, id)
	})
	tokens := []chan struct{}{make(chan struct{}), make(chan struct{})}
	sources := make(map[string]benchSource)
	for i, source := range m.sources {
		sources[source] = history.sources[i].fed(tokens[i])
	}
	setBenchSources(sources)
	for i := range m.ids {
		m.createStream(i, mergeStream{pos: history.start})
	}
	feed := func(i int) {
		select {
		case tokens[i] <- struct{}{}:
		case <-time.After(mergeTimeout):
			require.Fail(t, "no stream reads its source")
		}
	}
	committed := func(i int) (commit benchCommit) {
		m.waitForSoon(fmt.Sprintf("stream %d commits", i), func() (ok bool) {
			commit, ok = commits.take(m.ids[i])
			return ok
		})
		return commit
	}
	var latencies, durations []float64
	for sample := range samples {
		if sample%50 == 0 {
			benchProgress("latency: %d of %d conflicts", sample, samples)
		}
		feed(0)
		committed(0)
		feed(1)
		m.waitForSoon("stream 1 waits", func() bool { return playerEngine.mergeHub.Counts(int32(m.ids[1])).Blocked })
		// At any point of the delay between two attempts.
		time.Sleep(time.Duration(sample%40) * time.Millisecond)
		feed(0)
		released, taken := committed(0), committed(1)
		latencies = append(latencies, milliseconds(taken.answered.Sub(released.answered)))
		durations = append(durations, milliseconds(released.answered.Sub(released.sent)))
		feed(1)
		committed(1)
	}
	latency := &benchLatency{Samples: samples, Milliseconds: median(latencies), CommitMilliseconds: median(durations), AtMost: 5}
	latency.Commits = latency.Milliseconds / latency.CommitMilliseconds
	benchProgress("latency: %.2f ms, a target commit takes %.2f ms", latency.Milliseconds, latency.CommitMilliseconds)
	return latency
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}

// waitForSoon is waitFor for what is looked up in memory and comes at once.
func (m *mergeTest) waitForSoon(what string, condition func() bool) {
	m.t.Helper()
	deadline := time.Now().Add(mergeTimeout)
	for !condition() {
		if time.Now().After(deadline) {
			require.FailNow(m.t, "timed out waiting until "+what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}
