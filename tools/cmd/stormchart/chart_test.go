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

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mergebackoff/tools/demo"
)

// storm is three seconds of a run: one without a stream, one that is quiet, and
// one with conflicts.
var storm = demo.Samples{
	Seed: 7, Clients: 4, HotValues: 8, BulkRows: 1000, StormBegin: 1, StormEnd: 2,
	Samples: []demo.Sample{
		{Seconds: 0},
		{Seconds: 1, Statements: 100, Lag: map[string]float64{"-80": 0, "80-": 1}},
		{
			Seconds: 3, Statements: 300, Lag: map[string]float64{"-80": 6, "80-": 0},
			Conflicts: 40, Resolved: map[string]int64{"wait": 30, "joint<": 10, "give_up": 0},
		},
	},
}

// TestPanels shows what the lines of the chart are made of.
func TestPanels(t *testing.T) {
	assert.Equal(t, []float64{0, 100, 100}, load(storm).series[0].values)
	assert.Equal(t, []float64{0, 0, 20}, conflicts(storm).series[0].values)

	byShard := lag(storm).series
	require.Len(t, byShard, 2)
	assert.True(t, math.IsNaN(byShard[0].values[0]), "a stream that has applied nothing has no lag")
	assert.Equal(t, []float64{0, 6}, byShard[0].values[1:])

	byRung := resolutions(storm).series
	require.Len(t, byRung, 2, "a rung that never ended a block has no line")
	assert.Equal(t, "wait (30 in all)", byRung[0].name)
	assert.Equal(t, []float64{0, 0, 5}, byRung[1].values)
}

// TestTick shows the distances between the lines of a grid.
func TestTick(t *testing.T) {
	for distance, want := range map[float64]float64{0: 1, 1: 1, 1.5: 2, 3: 5, 7: 10, 180: 200} {
		assert.Equal(t, want, tick(distance), distance)
	}
}

// TestRun shows that the demo's JSON becomes an SVG that is well-formed, and has no
// number that is none.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "storm.json"), filepath.Join(dir, "storm.svg")
	data, err := json.Marshal(storm)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(in, data, 0o644))
	require.NoError(t, run(in, out))
	svg, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Contains(t, string(svg), "joint&lt; (10 in all)")
	assert.NotContains(t, string(svg), "NaN")
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}

	require.NoError(t, os.WriteFile(in, []byte(`{"samples": [{}]}`), 0o644))
	assert.ErrorContains(t, run(in, out), "fewer than two samples")
}
