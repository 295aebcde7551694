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

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// String writes an action as a line, or lines, of a scenario.
func (a Action) String() string {
	text := a.line()
	if a.At != "" {
		text = directive + "at=" + strings.ReplaceAll(a.At, " ", "_") + "\n" + text
	}
	return text
}

func (a Action) line() string {
	switch a.Kind {
	case Transaction:
		var b strings.Builder
		if len(a.And) > 0 {
			fmt.Fprintf(&b, "%stogether=%d\n", directive, 1+len(a.And))
		}
		for i, part := range a.parts() {
			if i > 0 {
				b.WriteByte('\n')
			}
			kind := "sql"
			if len(part.SQL) > 1 {
				kind = "tx"
			}
			texts := make([]string, len(part.SQL))
			for k, sql := range part.SQL {
				texts[k] = sql.String()
			}
			b.WriteString(kind + " " + strings.Join(texts, "; "))
		}
		return b.String()
	case DDL:
		return fmt.Sprintf("sql alter table {%d} comment 'x'", a.Stream)
	case Sleep:
		return fmt.Sprintf("sleep %d", a.For.Milliseconds())
	case StopAt:
		return fmt.Sprintf("stopat %d %d", a.Stream, a.N)
	case Crash, Outage, Close, Sync:
		return string(a.Kind)
	case Converge, ExpectError:
		return string(a.Kind) + " 30s"
	}
	return fmt.Sprintf("%s %d", a.Kind, a.Stream)
}

// words are the options as a directive.
func (o Options) words() string {
	var words []string
	for _, option := range []struct {
		word string
		set  bool
	}{
		{"noblob", o.Images.NoBlob},
		{"partialjson", o.Images.PartialJSON},
		{"batches", o.Batches},
		{"blind", o.Blind},
		{"opaque", o.Opaque},
		{"throttled", o.Throttled},
		{"lockerrors", o.LockErrors},
		{"stranger", o.Stranger},
		{"unasked", o.Unasked},
		{"onddl=" + o.OnDDL.String(), o.OnDDL != binlogdatapb.OnDDLAction_IGNORE},
		{fmt.Sprintf("retained=%d", o.Retained), o.Retained > 0},
	} {
		if option.set {
			words = append(words, option.word)
		}
	}
	return strings.Join(words, " ")
}

// Scenario writes a history as a scenario. seeds are those with which to run it.
func (h *History) Scenario(seeds ...uint64) string {
	var b strings.Builder
	words := h.words()
	for _, seed := range seeds {
		words += fmt.Sprintf(" seed=%d", seed)
	}
	if words != "" {
		b.WriteString(directive + strings.TrimSpace(words) + "\n")
	}
	fmt.Fprintf(&b, "streams %d\n", h.Streams)
	for _, name := range slices.Sorted(maps.Keys(h.Tables)) {
		fmt.Fprintf(&b, "ddl%s %s\n", strings.TrimPrefix(name, "t"), h.Tables[name])
	}
	actions := h.Actions
	if n := h.startsAll(); n > 0 {
		actions = actions[n:]
	} else {
		// A scenario's streams run to begin with.
		for i := range h.Streams {
			fmt.Fprintln(&b, Action{Kind: Stop, Stream: i})
		}
	}
	for _, action := range actions {
		fmt.Fprintln(&b, action)
	}
	return b.String()
}

// startsAll returns how many actions the history begins with that start each of
// its streams, or 0.
func (h *History) startsAll() int {
	for i := range h.Streams {
		if i >= len(h.Actions) || h.Actions[i].Kind != Start || h.Actions[i].Stream != i {
			return 0
		}
	}
	return h.Streams
}
