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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMergeBackoffScenarios runs every history of mergebackoff/testdata: the first
// line of each says what it shows. On stock each ends in Error 1062; in the genuine
// ones that is as it should be.
func TestMergeBackoffScenarios(t *testing.T) {
	paths, err := filepath.Glob("mergebackoff/testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			scenario, err := readMergeScenario(path)
			require.NoError(t, err)
			forMergeBatching(t, func(t *testing.T, batching mergeOption) {
				m := newMergeTest(t, scenario.streams, scenario.ddl, batching)
				m.startAll()
				for _, step := range scenario.steps {
					m.step(step)
					require.False(t, t.Failed(), "line %d", step.line)
				}
			})
		})
	}
}

// step does what a line of a scenario says. A duration that it expects is that of
// an idle machine: on a busy one a test waits longer.
func (m *mergeTest) step(step mergeStep) {
	m.t.Helper()
	switch step.verb {
	case "sql":
		// A DDL goes through the framework, which keeps a schema of its own.
		if statement := m.expand(step.statements[0]); isMergeDDL(statement) {
			execStatements(m.t, []string{statement})
			return
		}
		m.tx(step.statements...)
	case "tx":
		m.tx(step.statements...)
	case "sync", "expect converge":
		m.waitConverged()
	case "stop":
		for _, i := range step.streams {
			m.stop(i)
		}
	case "start":
		for _, i := range step.streams {
			m.start(i)
		}
	case "sleep":
		time.Sleep(step.duration)
	case "expect error":
		m.waitAnyError()
	}
}

func isMergeDDL(statement string) bool {
	word, _, _ := strings.Cut(strings.ToLower(statement), " ")
	return word == "alter" || word == "create" || word == "drop" || word == "rename" || word == "truncate"
}

// waitAnyError waits until a stream has ended in MySQL's error 1062.
func (m *mergeTest) waitAnyError() {
	m.t.Helper()
	m.waitFor("a stream ends in Error", func() (bool, string) {
		var all []string
		for i := range m.ids {
			state, message := m.stream(i)
			if state == "Error" {
				require.Contains(m.t, message, "(errno 1062)")
				m.t.Logf("stream %d: %s", i, message)
				return true, ""
			}
			all = append(all, fmt.Sprintf("stream %d is %s: %s", i, state, message))
		}
		return false, strings.Join(all, "\n")
	})
}
