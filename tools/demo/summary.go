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

package demo

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// Summary is what came out of a run; what it did not come to is empty.
type Summary struct {
	Seed  uint64
	Stock bool

	Statements, Txns, Handovers, Retries int64
	// RetryError is why a client last had to look up what became of a statement.
	RetryError string

	// Faults counts the faults by their names, and Checkpoints how often the target
	// was compared with the sources in between.
	Faults      map[string]int
	Checkpoints int

	Conflicts cluster.Conflicts
	MaxLag    time.Duration
	Drain     time.Duration
	VDiff     string
	Switch    string
	Target    string
	Equal     bool
	Duration  time.Duration
}

// count copies what the clients counted.
func (s *Summary) count(stats *workload.Stats) {
	s.Statements = stats.Statements.Load()
	s.Txns = stats.Txns.Load()
	s.Handovers = stats.Handovers.Load()
	s.Retries = stats.Retries.Load()
	s.RetryError, _ = stats.LastError.Load().(string)
}

// Print writes the summary for a person.
func (s *Summary) Print(out io.Writer) {
	const notReached = "not reached"
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "\nSummary\n")
	tablet := "patched"
	if s.Stock {
		tablet = "stock, unpatched"
	}
	line("vttablet", "%s", tablet)
	line("seed", "%d", s.Seed)
	line("load", "%d statements, %d transactions, %d of them handed hot values over", s.Statements, s.Txns, s.Handovers)
	if s.Retries > 0 {
		line("client retries", "%d, the last after: %s", s.Retries, shorten(s.RetryError, 200))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Faults)) {
		line(name, "%d times", s.Faults[name])
	}
	if s.Checkpoints > 0 {
		line("compared", "%d times, equal", s.Checkpoints)
	}
	line("conflicts", "%s", s.Conflicts)
	caughtUp := "the streams never caught up"
	if s.Drain > 0 {
		caughtUp = fmt.Sprintf("caught up %.1fs after the load", s.Drain.Seconds())
	}
	line("largest lag", "%.0fs; %s", s.MaxLag.Seconds(), caughtUp)
	line("VDiff", "%s", cmp.Or(s.VDiff, notReached))
	line("SwitchTraffic", "%s", cmp.Or(s.Switch, notReached))
	line("target vs union", "%s", cmp.Or(s.Target, notReached))
	line("duration", "%.0fs", s.Duration.Seconds())
	w.Flush()
}
