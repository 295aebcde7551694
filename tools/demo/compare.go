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
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// Difference is what sets two sets of rows apart.
type Difference struct {
	Rows    int // rows that should be there
	Missing int
	Extra   int
	Changed int
	// Samples describes some of the rows that differ.
	Samples []string
}

// maxSamples bounds what is printed of a difference.
const maxSamples = 5

// Equal tells whether there is no difference.
func (d Difference) Equal() bool {
	return d.Missing == 0 && d.Extra == 0 && d.Changed == 0
}

// String summarizes the difference.
func (d Difference) String() string {
	if d.Equal() {
		return fmt.Sprintf("equal, %d rows", d.Rows)
	}
	return fmt.Sprintf("different: of %d rows %d are missing and %d differ; %d rows are too many (%s)",
		d.Rows, d.Missing, d.Changed, d.Extra, strings.Join(d.Samples, "; "))
}

// diffRows compares what is with what should be.
func diffRows(want, have map[int64]workload.Row) Difference {
	d := Difference{Rows: len(want)}
	sample := func(format string, args ...any) {
		if len(d.Samples) < maxSamples {
			d.Samples = append(d.Samples, fmt.Sprintf(format, args...))
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(want), cmp.Compare[int64]) {
		row, found := have[id]
		switch {
		case !found:
			d.Missing++
			sample("row %d %v is missing", id, want[id])
		case row != want[id]:
			d.Changed++
			sample("row %d is %v and should be %v", id, row, want[id])
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(have), cmp.Compare[int64]) {
		if _, found := want[id]; !found {
			d.Extra++
			sample("row %d %v should not be there", id, have[id])
		}
	}
	return d
}

// union merges the rows of several sources. A primary key or an email that is
// held twice means that the history was not valid.
func union(sources []map[int64]workload.Row) (map[int64]workload.Row, error) {
	all := make(map[int64]workload.Row)
	holder := make(map[string]int64)
	for _, source := range sources {
		for id, row := range source {
			if _, twice := all[id]; twice {
				return nil, fmt.Errorf("row %d is on two sources", id)
			}
			if other, twice := holder[row.Email]; twice && row.Email != "" {
				return nil, fmt.Errorf("email %s is held by row %d and by row %d", row.Email, other, id)
			}
			all[id], holder[row.Email] = row, id
		}
	}
	return all, nil
}

// readTablets reads the rows of tablets straight from their MySQL servers.
func readTablets(ctx context.Context, tablets []*cluster.Tablet) ([]map[int64]workload.Row, error) {
	var list []map[int64]workload.Row
	for _, tablet := range tablets {
		db, err := tablet.MySQL.Open()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		rows, err := workload.ReadAll(ctx, db)
		if err != nil {
			return nil, err
		}
		list = append(list, rows)
	}
	return list, nil
}

// readUnion reads the union of the sources, and the target.
func readUnion(ctx context.Context, sources []*cluster.Tablet, target *cluster.Tablet) (want, have map[int64]workload.Row, err error) {
	parts, err := readTablets(ctx, sources)
	if err != nil {
		return nil, nil, err
	}
	if want, err = union(parts); err != nil {
		return nil, nil, err
	}
	parts, err = readTablets(ctx, []*cluster.Tablet{target})
	if err != nil {
		return nil, nil, err
	}
	return want, parts[0], nil
}
