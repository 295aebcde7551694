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

package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// Diff compares what is with what should be.
func Diff(want, have map[int64]Row) Difference {
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

// Union merges the rows of several sources. A primary key or an email that is
// held twice means that the history was not valid.
func Union(sources []map[int64]Row) (map[int64]Row, error) {
	all := make(map[int64]Row)
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
