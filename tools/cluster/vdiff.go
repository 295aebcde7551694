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

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// VDiff is the result of a VDiff, over all target shards.
type VDiff struct {
	State        string
	UUID         string
	RowsCompared int64
	HasMismatch  bool
	// Errors has what went wrong, by shard.
	Errors map[string]string
	// Tables has the counts by table.
	Tables map[string]TableDiff
}

// TableDiff is the result for one table.
type TableDiff struct {
	State           string
	RowsCompared    int64
	MatchingRows    int64
	MismatchedRows  int64
	ExtraRowsSource int64
	ExtraRowsTarget int64
}

// Clean tells whether the VDiff ended and found no difference.
func (d *VDiff) Clean() bool {
	return d.State == "completed" && !d.HasMismatch && len(d.Errors) == 0
}

// String summarizes the result in one line.
func (d *VDiff) String() string {
	if d.Clean() {
		return fmt.Sprintf("clean, %d rows compared", d.RowsCompared)
	}
	parts := []string{fmt.Sprintf("state %s, %d rows compared, mismatch %t", d.State, d.RowsCompared, d.HasMismatch)}
	for _, name := range slices.Sorted(maps.Keys(d.Tables)) {
		t := d.Tables[name]
		parts = append(parts, fmt.Sprintf("%s: %d differ, %d only in the source, %d only in the target",
			name, t.MismatchedRows, t.ExtraRowsSource, t.ExtraRowsTarget))
	}
	for _, shard := range slices.Sorted(maps.Keys(d.Errors)) {
		parts = append(parts, "shard "+shard+": "+d.Errors[shard])
	}
	return strings.Join(parts, "; ")
}

// VDiff compares sources and target and waits for the result, until ctx is
// done. Writes may go on meanwhile.
func (w *Workflow) VDiff(ctx context.Context) (*VDiff, error) {
	base := []string{"VDiff", "--target-keyspace", w.Keyspace, "--workflow", w.Name, "--format=json"}
	out, err := w.cluster.Vtctl(ctx, append(base, "create", "--tablet-types=primary")...)
	if err != nil {
		return nil, err
	}
	var created struct{ UUID string }
	if err := json.Unmarshal([]byte(out), &created); err != nil {
		return nil, fmt.Errorf("output of VDiff create: %w", err)
	}
	var diff *VDiff
	err = waitFor(ctx, "VDiff", nil, func(ctx context.Context) error {
		out, err := w.cluster.Vtctl(ctx, append(base, "show", created.UUID)...)
		if err != nil {
			return err
		}
		if diff, err = parseVDiffShow([]byte(out)); err != nil {
			return err
		}
		if diff.State != "completed" && diff.State != "error" {
			return fmt.Errorf("state %s, %d rows compared", diff.State, diff.RowsCompared)
		}
		return nil
	})
	return diff, err
}

// parseVDiffShow reads the JSON that "VDiff show" prints for one VDiff.
func parseVDiffShow(data []byte) (*VDiff, error) {
	var show struct {
		VDiff
		TableSummary map[string]TableDiff
	}
	if err := json.Unmarshal(data, &show); err != nil {
		return nil, fmt.Errorf("output of VDiff show: %w", err)
	}
	if show.State == "" {
		return nil, errors.New("output of VDiff show has no state")
	}
	show.Tables = show.TableSummary
	return &show.VDiff, nil
}
