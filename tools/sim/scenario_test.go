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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scenarioPaths are the scenarios that also run inside Vitess, on a real MySQL, and
// those of the simulator alone.
func scenarioPaths(t *testing.T) (paths []string) {
	t.Helper()
	for _, dir := range []string{filepath.Join("..", "..", "testdata"), "testdata"} {
		some, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, some)
		paths = append(paths, some...)
	}
	return paths
}

// TestScenarios runs each scenario under many schedules; -schedules chooses how
// many. On a real MySQL a scenario has the schedule that comes.
func TestScenarios(t *testing.T) {
	deterministic(t)
	n := *schedules
	if testing.Short() {
		n = max(1, n/10)
	}
	refused := 0
	for _, path := range scenarioPaths(t) {
		name := filepath.Base(path)
		if why := Beyond(path); why != "" {
			refused++
			_, _, err := Read(path)
			require.Error(t, err, "the model can express %s by now, which was thought to be beyond it: %s", name, why)
			continue
		}
		t.Run(strings.TrimSuffix(name, ".txt"), func(t *testing.T) {
			h, seeds, err := Read(path)
			require.NoError(t, err)
			for i := range uint64(n) {
				seeds = append(seeds, *seed+i)
			}
			summary := &Summary{}
			for _, variant := range h.Variants() {
				for _, seed := range seeds {
					reportFailure(t, summary.Try(t, variant, seed))
				}
			}
			assert.Positive(t, summary.Conflicts, "no schedule meets a conflict")
			t.Log(summary)
		})
	}
	assert.Len(t, beyond, refused, "a scenario that is beyond the model is gone")
}

// TestScenarioRoundTrip shows that a history that is written as a scenario is read
// again as the same, so that what a failure prints can be run.
func TestScenarioRoundTrip(t *testing.T) {
	for i := range uint64(500) {
		h, err := Generate(*seed+i, i%10 == 9)
		require.NoError(t, err)
		text := h.Scenario(i)
		again, seeds, err := Parse("history", strings.NewReader(text))
		require.NoError(t, err, text)
		require.Equal(t, []uint64{i}, seeds)
		require.Equal(t, h.Options, again.Options)
		require.Equal(t, text, again.Scenario(i))
		require.True(t, again.Valid(), text)
	}
}

// TestScenarioErrors shows that a bad scenario is refused with the file and the
// line, so that a typing error cannot pass for a test.
func TestScenarioErrors(t *testing.T) {
	const head = "# what it shows\nstreams 2\nddl (id bigint, uid bigint, primary key(id), unique key uid_uk(uid))\n"
	for text, want := range map[string]string{
		"":                                     "test.txt: the last line must say what to expect",
		head + "sync\n":                        "test.txt: the last line must say what to expect",
		"streams two\n":                        `test.txt:1: "two" is no number of streams`,
		"sync\n":                               `test.txt:1: "sync" comes in front of`,
		head + "slq delete from {0}\n":         `test.txt:4: the simulator knows no "slq"`,
		head + "sql\n":                         "test.txt:4: \"\" is on none of the 2 sources",
		head + "sql delete from {0}; select 1": "test.txt:4: sql takes one statement, not 2",
		head + "sql select 1\n":                "test.txt:4: select 1: the model has no such statement",
		head + "sql delete from {2}\n":         `test.txt:4: "delete from {2}" is on none of the 2 sources`,
		head + "tx delete from {0}; delete from {1}\n":       "test.txt:4: a transaction is on one source, not on 0 and 1",
		head + "sql insert into {0} select 1\n":              "test.txt:4: insert into {0} select 1: the model expects \"values\" instead of \"select\"",
		head + "sync 1\n":                                    "test.txt:4: sync takes nothing",
		head + "stop\n":                                      "test.txt:4: which stream?",
		head + "stop 0 2\n":                                  `test.txt:4: there is no stream "2"`,
		head + "stopat 0\n":                                  "test.txt:4: stopat takes a stream",
		head + "sleep long\n":                                "test.txt:4: time: invalid duration",
		head + "expect success 1s\n":                         `test.txt:4: nobody can expect "success"`,
		head + "# sim bathces\n":                             `test.txt:4: the simulator knows no "bathces"`,
		"streams 1\nddl (id bigint)\nddl_b (u ignored)\nx\n": `test.txt:4: the simulator knows no "x"`,
		"streams 1\nddl (u bigint, unique key u(u))\nsync\nexpect converge 1s\n": "test.txt: table t: the model has no table with a unique key but without a primary key",
		head + "expect converge 1s\n":                                            "",
	} {
		_, _, err := Parse("test.txt", strings.NewReader(text))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

// TestCommonScenariosAreCommon shows that what runs on a real MySQL as well uses
// nothing but what both understand.
func TestCommonScenariosAreCommon(t *testing.T) {
	verbs := []string{"streams", "ddl", "sql", "tx", "sync", "stop", "start", "sleep", "expect"}
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "*.txt"))
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "# "), "%s does not say what it shows", path)
		for line := range strings.Lines(string(text)) {
			verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if verb != "" && verb[0] != '#' {
				assert.True(t, slices.Contains(verbs, verb), "%s: %s", path, line)
			}
		}
	}
}
