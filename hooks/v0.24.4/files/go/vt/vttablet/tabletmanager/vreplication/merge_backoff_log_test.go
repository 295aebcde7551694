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
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/log"
)

// mergeLog has the lines of merge backoff in vttablet's log, as JSON.
type mergeLog struct {
	mu    sync.Mutex
	lines []map[string]any
}

// Write implements io.Writer: slog's handlers call it once a line.
func (l *mergeLog) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte("merge backoff: ")) {
		return len(line), nil
	}
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fields)
	return len(line), nil
}

// from returns the lines whose message begins with a text.
func (l *mergeLog) from(prefix string) (list []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.HasPrefix(line[slog.MessageKey].(string), prefix) {
			list = append(list, line)
		}
	}
	return list
}

// TestMergeBackoffLogLines shows what vttablet's log says of a block that lasts, and
// of a genuine duplicate: one line each with workflow, stream, key, value and peers,
// however often the stream has tried. On stock there are no such lines.
func TestMergeBackoffLogLines(t *testing.T) {
	lines := new(mergeLog)
	saved := log.SwapLogger(slog.New(slog.NewJSONHandler(lines, nil)))
	t.Cleanup(func() { log.SwapLogger(saved) })
	m := newBlockedMerge(t)
	check := func(prefix, level, value string, stream, peer int) map[string]any {
		t.Helper()
		m.waitFor(prefix, func() (bool, string) { return len(lines.from(prefix)) > 0, fmt.Sprint(lines.from("")) })
		list := lines.from(prefix)
		require.Len(t, list, 1)
		line := list[0]
		require.Equal(t, level, line[slog.LevelKey])
		require.Equal(t, "merge", line["workflow"])
		require.EqualValues(t, m.ids[stream], line["stream"])
		require.Equal(t, "dst.uid_uk", line["key"])
		require.Equal(t, value, line["value"])
		require.NotEmpty(t, line["since"])
		require.Contains(t, line["peers"], fmt.Sprintf("stream %d (merge, source vttest/0", m.ids[peer]))
		return line
	}
	check("merge backoff: the stream is blocked", "WARN", "10", 1, 0)
	m.start(0)
	m.waitConverged()
	line := check("merge backoff: the stream goes on", "INFO", "10", 1, 0)
	require.Greater(t, line["blocked"], 5e9, "nanoseconds")
	require.Equal(t, "wait", line["end"])

	m.exec("insert into {0} values (4, 10, 'd')")
	m.waitDuplicate(0)
	check("merge backoff: giving up on the value '10'", "ERROR", "10", 0, 1)
	require.Len(t, lines.from("merge backoff: the stream is blocked"), 1)
}
