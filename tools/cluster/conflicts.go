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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Conflicts is what a patched vttablet counts of the conflicts of a workflow.
type Conflicts struct {
	// Exported tells whether the tablet has these counters: a stock one has not.
	Exported bool
	Met      int64
	// Resolved counts the resolutions by the rung of the ladder that succeeded.
	Resolved map[string]int64
	// Blocked is the number of streams that are blocked at this moment.
	Blocked int64
}

// rungs is the order in which a blocked stream climbs.
var rungs = []string{"isolate", "wait", "net_effect", "joint", "genuine", "give_up"}

// Names of the counters in /debug/vars. All are by source keyspace, source shard,
// workflow, its type, and stream; that of resolutions by rung, too.
const (
	conflictVar   = "VReplicationMergeConflictCount"
	resolutionVar = "VReplicationMergeResolutionCount"
	blockedVar    = "VReplicationMergeBlockedStreams"
)

// ofWorkflow reports whether a counter with these labels is one of the workflow.
func ofWorkflow(labels, workflow string) bool {
	parts := strings.Split(labels, ".")
	return len(parts) > 2 && parts[2] == workflow
}

// ReadConflicts sums the counters over the streams of a workflow.
func ReadConflicts(vars Vars, workflow string) Conflicts {
	c := Conflicts{Resolved: make(map[string]int64)}
	_, c.Exported = vars[conflictVar]
	for label, n := range vars.Map(conflictVar) {
		if ofWorkflow(label, workflow) {
			c.Met += n
		}
	}
	for label, n := range vars.Map(blockedVar) {
		if ofWorkflow(label, workflow) {
			c.Blocked += n
		}
	}
	for label, n := range vars.Map(resolutionVar) {
		if ofWorkflow(label, workflow) {
			c.Resolved[label[strings.LastIndexByte(label, '.')+1:]] += n
		}
	}
	return c
}

// Plus adds what an earlier process has counted.
func (c Conflicts) Plus(earlier Conflicts) Conflicts {
	sum := c
	sum.Met += earlier.Met
	sum.Exported = c.Exported || earlier.Exported
	if sum.Resolved = maps.Clone(c.Resolved); sum.Resolved == nil {
		sum.Resolved = make(map[string]int64)
	}
	for rung, n := range earlier.Resolved {
		sum.Resolved[rung] += n
	}
	return sum
}

// String is the counters in a few words.
func (c Conflicts) String() string {
	if !c.Exported {
		return "not counted"
	}
	text := strconv.FormatInt(c.Met, 10)
	if by := c.ByRung(); by != "" {
		text += " (" + by + ")"
	}
	if c.Blocked > 0 {
		text += fmt.Sprintf(", %d blocked", c.Blocked)
	}
	return text
}

// ByRung lists the resolutions in the order of the ladder; rungs that are not
// known here come last.
func (c Conflicts) ByRung() string {
	var names []string
	for name := range c.Resolved {
		names = append(names, name)
	}
	rank := func(name string) int {
		if i := slices.Index(rungs, name); i >= 0 {
			return i
		}
		return len(rungs)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		if c.Resolved[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", strings.ReplaceAll(name, "_", " "), c.Resolved[name]))
		}
	}
	return strings.Join(parts, ", ")
}
