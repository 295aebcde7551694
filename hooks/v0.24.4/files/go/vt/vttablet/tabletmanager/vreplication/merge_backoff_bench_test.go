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
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/vstreamer/testenv"
)

type (
	// benchCase is one row of the benchmark's table.
	benchCase struct {
		name    string
		streams int
		// percent of the source transactions hand over a hot value.
		percent float64
		stock   bool
		// against is the case that the rate is divided by, and atLeast what the
		// ratio shall be.
		against string
		atLeast float64
	}

	// benchDrain is what one drain of a backlog came to.
	benchDrain struct {
		Seconds     float64                           `json:"seconds"`
		PerSecond   float64                           `json:"transactions_per_second"`
		Conflicts   int64                             `json:"conflicts"`
		PeakRSS     float64                           `json:"peak_rss_mib"`
		Commits     int64                             `json:"target_commits"`
		Rollbacks   int64                             `json:"target_rollbacks"`
		Statements  int64                             `json:"target_statements"`
		Resolutions map[mergebackoff.Resolution]int64 `json:"resolutions,omitempty"`
		Error       string                            `json:"error,omitempty"`
	}

	// benchResult is a case with its drains, one a round.
	benchResult struct {
		Name         string       `json:"name"`
		Streams      int          `json:"streams"`
		Percent      float64      `json:"percent"`
		Transactions int          `json:"transactions"`
		Against      string       `json:"against,omitempty"`
		AtLeast      float64      `json:"at_least,omitempty"`
		Ratio        float64      `json:"ratio,omitempty"`
		Median       benchDrain   `json:"median"`
		Drains       []benchDrain `json:"drains"`
	}

	// benchReport is what is written as JSON.
	benchReport struct {
		MySQL        string         `json:"mysql"`
		Go           string         `json:"go"`
		CPUs         int            `json:"cpus"`
		Transactions int            `json:"transactions"`
		Rounds       int            `json:"rounds"`
		Results      []*benchResult `json:"results"`
		Latency      *benchLatency  `json:"latency,omitempty"`
	}
)

const (
	benchSingleStock = "1 stream, stock"
	benchStock       = "3 streams, no conflict, stock"
	benchNone        = "3 streams, no conflict"
	benchThirty      = "3 streams, 30 % hand-overs"

	// benchLimit is how long a drain may take.
	benchLimit = 5 * time.Minute
	// benchReserve is what remains of the test's time for its end.
	benchReserve = 2 * time.Minute
)

var benchCases = []benchCase{
	{name: benchSingleStock, streams: 1, stock: true},
	{name: "1 stream without peers", streams: 1, against: benchSingleStock, atLeast: 0.99},
	{name: benchStock, streams: 3, stock: true},
	{name: benchNone, streams: 3, against: benchStock, atLeast: 0.97},
	{name: "3 streams, 5 % hand-overs", streams: 3, percent: 5, against: benchNone, atLeast: 0.8},
	{name: benchThirty, streams: 3, percent: 30, against: benchNone, atLeast: 0.6},
	{name: "3 streams, 90 % hand-overs", streams: 3, percent: 90, against: benchNone, atLeast: 0.7},
	{name: "16 streams, 30 % hand-overs", streams: 16, percent: 30, against: benchThirty, atLeast: 0.8},
}

// benchStart is when the benchmark began.
var benchStart time.Time

// benchProgress says what the benchmark does.
func benchProgress(format string, args ...any) {
	line := fmt.Sprintf("[%4.0fs] ", time.Since(benchStart).Seconds()) + fmt.Sprintf(format, args...)
	fmt.Println(line)
	if f, err := os.OpenFile(filepath.Join(os.Getenv("MERGE_BACKOFF_BENCH"), "progress"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644); err == nil {
		fmt.Fprintln(f, line)
		f.Close()
	}
}

func benchNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// TestMergeBackoffBench is a benchmark: it drains backlogs of source transactions
// and compares how long that takes. It runs if MERGE_BACKOFF_BENCH names a folder
// for its results. The rounds are interleaved, and ratios are those within a
// round, so that a busy machine slows what is compared alike.
//
//	MERGE_BACKOFF_BENCH_TRANSACTIONS  the size of a backlog, 100000
//	MERGE_BACKOFF_BENCH_ROUNDS        how often each is drained, 3
//	MERGE_BACKOFF_BENCH_CASES         a regular expression for the cases to run
//	MERGE_BACKOFF_BENCH_PERCENT       further percentages of hand-overs, "0.2 1"
//	MERGE_BACKOFF_BENCH_RATE          how many transactions the sources are to have
//	                                  made a second; as fast as they could
//	MERGE_BACKOFF_BENCH_PROFILE       a folder for a CPU profile of each drain
func TestMergeBackoffBench(t *testing.T) {
	dir := os.Getenv("MERGE_BACKOFF_BENCH")
	if dir == "" {
		t.Skip("MERGE_BACKOFF_BENCH is not set")
	}
	if runNoBlobTest {
		t.Skip("it has run with the other row image")
	}
	benchStart = time.Now()
	transactions := benchNumber(t, "MERGE_BACKOFF_BENCH_TRANSACTIONS", 100_000)
	rounds := benchNumber(t, "MERGE_BACKOFF_BENCH_ROUNDS", 3)
	selected := regexp.MustCompile(os.Getenv("MERGE_BACKOFF_BENCH_CASES"))

	report := &benchReport{MySQL: testenv.MySQLVersion, Go: runtime.Version(), CPUs: runtime.NumCPU(), Transactions: transactions}
	cases := slices.Clone(benchCases)
	for _, text := range strings.Fields(os.Getenv("MERGE_BACKOFF_BENCH_PERCENT")) {
		percent, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err, text)
		cases = append(cases, benchCase{name: fmt.Sprintf("3 streams, %s %% hand-overs", text), streams: 3, percent: percent, against: benchNone})
	}
	cases = slices.DeleteFunc(cases, func(c benchCase) bool { return !selected.MatchString(c.name) })
	backlogs := t.TempDir()
	histories := make(map[string]*benchHistory)
	for _, c := range cases {
		report.Results = append(report.Results, &benchResult{
			Name: c.name, Streams: c.streams, Percent: c.percent, Transactions: transactions, Against: c.against, AtLeast: c.atLeast,
		})
		if key := c.history(); histories[key] == nil {
			require.True(t, t.Run("backlog of "+key, func(t *testing.T) {
				histories[key] = recordHistory(t, backlogs, key, c.streams, transactions, c.percent)
			}))
		}
	}
	if selected.MatchString("latency") {
		t.Run("latency", func(t *testing.T) { report.Latency = measureLatency(t) })
	}
	useBenchEngine(t, nil)
	deadline, limited := t.Deadline()
	for report.Rounds < rounds {
		start := time.Now()
		for i := range cases {
			if report.Rounds%2 == 1 {
				// The other way round, so that none always comes first.
				i = len(cases) - 1 - i
			}
			c := cases[i]
			t.Run(fmt.Sprintf("round %d/%s", report.Rounds+1, c.name), func(t *testing.T) {
				d := c.drain(t, histories[c.history()], fmt.Sprintf("round %d of %d: %s", report.Rounds+1, rounds, c.name))
				report.Results[i].Drains = append(report.Results[i].Drains, d)
			})
		}
		report.Rounds++
		report.evaluate()
		report.write(t, dir)
		if limited && time.Until(deadline) < time.Since(start)+benchReserve {
			break
		}
	}
	report.write(t, dir)
}

func (c benchCase) history() string {
	return fmt.Sprintf("%d streams, %v %%", c.streams, c.percent)
}

// drain has the streams of a case drain a backlog.
func (c benchCase) drain(t *testing.T, history *benchHistory, title string) (d benchDrain) {
	t.Helper()
	m := newMergeTest(t, c.streams, mergeDDL,
		mergeFlag(vttablet.VReplicationExperimentalFlagVPlayerBatching, true),
		mergeFlag(vttablet.VReplicationExperimentalFlagMergeBackoff, !c.stock))
	var ready sync.WaitGroup
	gate := make(chan struct{})
	sources := make(map[string]benchSource)
	total := 0
	for i, source := range m.sources {
		ready.Add(1)
		sources[source] = gated(history.sources[i].play, &ready, gate)
		total += history.sources[i].transactions
	}
	setBenchSources(sources)
	for i := range m.ids {
		m.createStream(i, mergeStream{pos: history.start})
	}
	ready.Wait()

	before := m.benchStatus()
	debug.FreeOSMemory()
	resetPeakRSS()
	if stop := benchProfile(t); stop != nil {
		defer stop()
	}
	start := time.Now()
	close(gate)
	d.Error = m.waitDrained(history, title, start)
	d.Seconds = time.Since(start).Seconds()
	d.PerSecond = float64(total) / d.Seconds
	d.PeakRSS = peakRSS()
	after := m.benchStatus()
	d.Commits = after["Com_commit"] - before["Com_commit"]
	d.Rollbacks = after["Com_rollback"] - before["Com_rollback"]
	for _, name := range []string{"Com_insert", "Com_update", "Com_delete"} {
		d.Statements += after[name] - before[name]
	}
	d.Resolutions = make(map[mergebackoff.Resolution]int64)
	for _, id := range m.ids {
		counts := playerEngine.mergeHub.Counts(int32(id))
		d.Conflicts += counts.Conflicts
		for how, n := range counts.Resolutions {
			d.Resolutions[how] += n
		}
	}
	if d.Error == "" {
		if sum := m.checksum("vrepl.dst"); sum != history.union {
			d.Error = fmt.Sprintf("the target (%s) is not the union of the sources (%s)", sum, history.union)
		}
	}
	if d.Error != "" {
		d.PerSecond = 0
		t.Error(d.Error)
	}
	benchProgress("%s: %.1f s, %.0f transactions/s, %d conflicts, %d target commits %s", title, d.Seconds, d.PerSecond, d.Conflicts, d.Commits, d.Error)
	return d
}

// waitDrained waits until every stream has saved the end of its backlog. It
// returns what went wrong.
func (m *mergeTest) waitDrained(history *benchHistory, title string, start time.Time) string {
	m.t.Helper()
	controllers := make([]*controller, len(m.ids))
	playerEngine.mu.Lock()
	for i, id := range m.ids {
		controllers[i] = playerEngine.controllers[int32(id)]
	}
	playerEngine.mu.Unlock()
	said := start
	for i := 0; i < len(m.ids); {
		end := history.sources[i].end
		// The position in memory may be ahead of the saved one, and costs MySQL
		// nothing.
		if end.IsZero() || controllers[i].blpStats.LastPosition().AtLeast(end) && m.savedPosition(i).AtLeast(end) {
			i++
			continue
		}
		time.Sleep(2 * time.Millisecond)
		if time.Since(said) < 5*time.Second {
			continue
		}
		said = time.Now()
		benchProgress("  %s: draining for %.0f s", title, time.Since(start).Seconds())
		for j := range m.ids {
			if state, message := m.stream(j); state != "Running" {
				return fmt.Sprintf("stream %d is %s: %s", m.ids[j], state, message)
			}
		}
		if time.Since(start) > benchLimit {
			return fmt.Sprintf("not drained within %v", benchLimit)
		}
	}
	for i := range m.ids {
		if state, message := m.stream(i); state != "Running" || message != "" {
			return fmt.Sprintf("stream %d is %s: %s", m.ids[i], state, message)
		}
	}
	return ""
}

func (m *mergeTest) savedPosition(i int) replication.Position {
	m.t.Helper()
	pos, err := binlogplayer.DecodePosition(m.column(i, "pos"))
	require.NoError(m.t, err)
	return pos
}

// benchStatus returns MySQL's counters of statements.
func (m *mergeTest) benchStatus() map[string]int64 {
	m.t.Helper()
	qr, err := env.Mysqld.FetchSuperQuery(m.t.Context(), "show global status like 'Com\\_%'")
	require.NoError(m.t, err)
	status := make(map[string]int64)
	for _, row := range qr.Rows {
		status[row[0].ToString()], _ = strconv.ParseInt(row[1].ToString(), 10, 64)
	}
	return status
}

// benchProfile starts a CPU profile if one is asked for.
func benchProfile(t *testing.T) (stop func()) {
	t.Helper()
	dir := os.Getenv("MERGE_BACKOFF_BENCH_PROFILE")
	if dir == "" {
		return nil
	}
	name := regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-")
	f, err := os.Create(filepath.Join(dir, name+".pprof"))
	require.NoError(t, err)
	require.NoError(t, pprof.StartCPUProfile(f))
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}
}

// resetPeakRSS has the kernel forget the process's peak.
func resetPeakRSS() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakRSS returns the process's peak in MiB, or 0 if this is no Linux.
func peakRSS() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// evaluate computes the medians, and the ratios: those of each round, of which
// the median counts.
func (r *benchReport) evaluate() {
	for _, result := range r.Results {
		of := func(what func(d benchDrain) float64) float64 {
			var values []float64
			for _, d := range result.Drains {
				values = append(values, what(d))
			}
			return median(values)
		}
		result.Median = benchDrain{
			Seconds:    of(func(d benchDrain) float64 { return d.Seconds }),
			PerSecond:  of(func(d benchDrain) float64 { return d.PerSecond }),
			PeakRSS:    of(func(d benchDrain) float64 { return d.PeakRSS }),
			Conflicts:  int64(of(func(d benchDrain) float64 { return float64(d.Conflicts) })),
			Commits:    int64(of(func(d benchDrain) float64 { return float64(d.Commits) })),
			Rollbacks:  int64(of(func(d benchDrain) float64 { return float64(d.Rollbacks) })),
			Statements: int64(of(func(d benchDrain) float64 { return float64(d.Statements) })),
		}
		for _, how := range benchRungs {
			if n := of(func(d benchDrain) float64 { return float64(d.Resolutions[how]) }); n > 0 {
				if result.Median.Resolutions == nil {
					result.Median.Resolutions = make(map[mergebackoff.Resolution]int64)
				}
				result.Median.Resolutions[how] = int64(n)
			}
		}
		i := slices.IndexFunc(r.Results, func(other *benchResult) bool { return other.Name == result.Against })
		if i < 0 {
			continue
		}
		var ratios []float64
		for round, d := range result.Drains {
			if round < len(r.Results[i].Drains) && r.Results[i].Drains[round].PerSecond > 0 {
				ratios = append(ratios, d.PerSecond/r.Results[i].Drains[round].PerSecond)
			}
		}
		result.Ratio = math.Round(median(ratios)*1000) / 1000
	}
}

var benchRungs = []mergebackoff.Resolution{
	mergebackoff.ResolvedByIsolation, mergebackoff.ResolvedByWaiting,
	mergebackoff.ResolvedByNetEffect, mergebackoff.ResolvedByJoint,
}

// table is the report for people to read.
func (r *benchReport) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Drain of %d single-row source transactions, batching on; medians of %d rounds (MySQL %s, %s, %d CPUs)\n",
		r.Transactions, r.Rounds, r.MySQL, r.Go, r.CPUs)
	fmt.Fprintf(&b, "%-29s %9s %7s %9s %9s %9s %9s  %-34s %6s %6s %s\n", "", "tx/s", "s", "commits", "rollbacks", "conflicts", "peak MiB",
		"isolate / wait / net effect / joint", "ratio", "goal", "")
	for _, result := range r.Results {
		rungs := make([]string, 0, len(benchRungs))
		for _, how := range benchRungs {
			rungs = append(rungs, strconv.FormatInt(result.Median.Resolutions[how], 10))
		}
		ratio, goal, verdict := "", "", ""
		if result.Against != "" {
			ratio = fmt.Sprintf("%.3f", result.Ratio)
		}
		if result.AtLeast > 0 {
			goal = fmt.Sprintf("%.2f", result.AtLeast)
			verdict = benchVerdict(result.Ratio >= result.AtLeast)
		}
		fmt.Fprintf(&b, "%-29s %9.0f %7.1f %9d %9d %9d %9.0f  %-35s %6s %6s %s\n", result.Name,
			result.Median.PerSecond, result.Median.Seconds, result.Median.Commits, result.Median.Rollbacks,
			result.Median.Conflicts, result.Median.PeakRSS, strings.Join(rungs, " / "), ratio, goal, verdict)
	}
	if l := r.Latency; l != nil {
		fmt.Fprintf(&b, "From the peer's releasing commit to the waiting stream's: %.2f ms in the median of %d, or %.2f median target commits of %.2f ms; goal: at most %.0f %s\n",
			l.Milliseconds, l.Samples, l.Commits, l.CommitMilliseconds, l.AtMost, benchVerdict(l.Commits <= l.AtMost))
	}
	return b.String()
}

func benchVerdict(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}

// write writes the report.
func (r *benchReport) write(t *testing.T, dir string) {
	t.Helper()
	table := r.table()
	fmt.Println(table)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(table), 0o644))
	data, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bench.json"), append(data, '\n'), 0o644))
}
