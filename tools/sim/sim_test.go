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
	runs = flag.Int("runs", 2000, "how many histories to run")
	seed = flag.Uint64("seed", 1, "the first history's seed")
)

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
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if testing.Short() {
		*runs /= 10
	}
	begun := time.Now()
	summary := &Summary{}
	for i := range *runs {
		if failure := summary.Try(t, *seed+uint64(i), i%10 == 9); failure != nil {
			t.Fatal(failure.Report(t))
		}
	}
	t.Logf("%d histories in %v: %s", *runs, time.Since(begun), summary)
}

// TestSeedGivesOneRun shows that a run can be repeated.
func TestSeedGivesOneRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
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
