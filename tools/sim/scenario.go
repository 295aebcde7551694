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
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String writes an action as a line, or lines, of a scenario.
func (a Action) String() string {
	switch a.Kind {
	case Transaction:
		var b strings.Builder
		if len(a.And) > 0 {
			fmt.Fprintf(&b, "# the next %d are made at once\n", 1+len(a.And))
		}
		for i, part := range append([]Action{a}, a.And...) {
			if i > 0 {
				b.WriteByte('\n')
			}
			kind := "sql"
			if len(part.SQL) > 1 {
				kind = "tx"
			}
			b.WriteString(kind + " " + strings.Join(part.SQL, "; "))
		}
		return b.String()
	case DDL:
		return fmt.Sprintf("sql alter table {%d} comment 'x'", a.Stream)
	case Sleep:
		return fmt.Sprintf("sleep %d", a.For.Milliseconds())
	case Crash:
		return "crash"
	}
	return fmt.Sprintf("%s %d", a.Kind, a.Stream)
}

// Scenario writes a history as a scenario.
func (h *History) Scenario() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# images %+v, batches %v, blind %v, opaque %v, throttled %v\n", h.Images, h.Batches, h.Blind, h.Opaque, h.Throttled)
	fmt.Fprintf(&b, "streams %d\n", h.Streams)
	for _, name := range slices.Sorted(maps.Keys(h.Tables)) {
		fmt.Fprintf(&b, "ddl%s %s\n", strings.TrimPrefix(name, "t"), h.Tables[name])
	}
	// A scenario's streams run to begin with.
	for i := range h.Streams {
		if !slices.ContainsFunc(h.Actions, func(a Action) bool { return a.Kind == Start && a.Stream == i }) {
			fmt.Fprintf(&b, "stop %d\n", i)
		}
	}
	for _, action := range h.Actions {
		fmt.Fprintln(&b, action)
	}
	for i := range h.Streams {
		fmt.Fprintf(&b, "start %d\n", i)
	}
	if h.Genuine {
		b.WriteString("expect error 30s\n")
	} else {
		b.WriteString("expect converge 30s\n")
	}
	return b.String()
}
