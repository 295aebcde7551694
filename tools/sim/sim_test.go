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

package sim

import (
	"flag"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mergebackoff/tools/modelcopy"
)

var (
	runs       = flag.Int("runs", 2000, "how many histories to run")
	schedules  = flag.Int("schedules", 25, "how many schedules to run each scenario under, with each kind of images and batches")
	everywhere = flag.Int("everywhere", 4, "how many histories to run with each fault at each step")
	seed       = flag.Uint64("seed", 1, "the first seed")
)

// deterministic has a test run on one thread, so that the order in which streams
// wake up, and a seed's run, is the same every time.
func deterministic(t *testing.T) {
	procs := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
}

// reportFailure ends a test with a failure, if it is one.
func reportFailure(t *testing.T, failure *Failure) {
	t.Helper()
	if failure != nil {
		report, _ := failure.Report(t)
		t.Fatal(report)
	}
}

// TestModelIsThePackages shows that the model is the one that the package's own
// tests use.
func TestModelIsThePackages(t *testing.T) {
	copies, err := modelcopy.Copies(filepath.Join("..", ".."))
	require.NoError(t, err)
	stale, err := modelcopy.Stale(".", copies)
	require.NoError(t, err)
	assert.Empty(t, stale, "run go generate in tools/sim")
}

// TestHistories runs random histories; -runs and -seed choose them.
func TestHistories(t *testing.T) {
	deterministic(t)
	if testing.Short() {
		*runs /= 10
	}
	begun := time.Now()
	summary := &Summary{}
	for i := range uint64(*runs) {
		h, err := Generate(*seed+i, i%10 == 9)
		require.NoError(t, err)
		reportFailure(t, summary.Try(t, h, *seed+i))
	}
	t.Logf("%d histories in %v: %s", *runs, time.Since(begun), summary)
}

// TestSeedGivesOneRun shows that a run can be repeated.
func TestSeedGivesOneRun(t *testing.T) {
	deterministic(t)
	for seed := range uint64(20) {
		h, err := Generate(seed, false)
		require.NoError(t, err)
		first, second := Run(t, h, How{Seed: seed, Trace: true}), Run(t, h, How{Seed: seed, Trace: true})
		for i, line := range first.Trace {
			if i >= len(second.Trace) || second.Trace[i] != line {
				t.Fatalf("seed %d: decision %d was %q", seed, i, line)
			}
		}
		assert.Equal(t, first.Steps, second.Steps)
	}
}
