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
	"time"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

type (
	// History is what happens to a merge, in order.
	History struct {
		Streams int
		// Tables are the definitions of the tables, by name.
		Tables map[string]string
		Options
		Actions []Action
	}

	// Options are how a history is run. The zero value is a plain merge.
	Options struct {
		Images  Images
		Batches bool
		// Blind and Opaque are those of Player.
		Blind, Opaque bool
		OnDDL         binlogdatapb.OnDDLAction
		// Throttled has the throttler deny now and then.
		Throttled bool
		// LockErrors has statements fail now and then for locks that the model does
		// not have.
		LockErrors bool
		// Stranger has a stream of other tables in the same engine, in Error.
		Stranger bool
		// Unasked has nobody who could ask the sources for their positions.
		Unasked bool
		// Retained bounds what a stream keeps, in bytes, if it is not zero.
		Retained int
	}

	// Action is one thing that happens.
	Action struct {
		Kind Kind
		// Stream is the source, or the stream, that it happens to.
		Stream int
		// SQL are the statements of a transaction on the source.
		SQL []*SQL
		// And are transactions on other sources which the application makes
		// together with this one: the sources' union is valid before the first
		// and after the last.
		And []Action
		// For is how long a sleep takes.
		For time.Duration
		// N is how many transactions ahead of its position a stream is to stop.
		N int
		// At has the scheduler wait with it, for a while, until a stream stands at
		// this call.
		At string
	}

	// Kind is what an action is.
	Kind string
)

const (
	Transaction Kind = "tx"
	// DDL and Other move the position of a source, and change nothing.
	DDL   Kind = "ddl"
	Other Kind = "other"
	// Start and Stop are an operator's. StopAt starts a stream with a stop position.
	Start  Kind = "start"
	Stop   Kind = "stop"
	StopAt Kind = "stop at"
	// Come is a stream that is created only then. Go is one that is deleted once it
	// is through; its source has no rows left.
	Come Kind = "come"
	Go   Kind = "go"
	// Crash is the end of the whole process, which is started again. Outage is that
	// of mysqld. Close closes the engine, and opens it again.
	Crash  Kind = "crash"
	Outage Kind = "outage"
	Close  Kind = "close"
	// Lose is the loss of the connection of one stream.
	Lose  Kind = "lose"
	Sleep Kind = "sleep"
	// Sync waits until the target equals the union of the sources. Converge also
	// has all streams run, and ExpectError waits until one has ended in Error.
	Sync        Kind = "sync"
	Converge    Kind = "expect converge"
	ExpectError Kind = "expect error"
)

func (h *History) has(kind Kind) bool {
	return slices.ContainsFunc(h.Actions, func(a Action) bool { return a.Kind == kind })
}

// limited reports whether there is anything that may keep a conflict from being
// resolved until an operator lifts it.
func (h *History) limited() bool {
	return h.Retained > 0 || h.OnDDL != binlogdatapb.OnDDLAction_IGNORE || h.has(StopAt) ||
		slices.ContainsFunc(slices.Collect(maps.Values(h.Tables)), func(ddl string) bool { return strings.Contains(ddl, "foreign key") })
}

// genuine reports whether the sources come to hold a value twice.
func (h *History) genuine() bool { return h.has(ExpectError) }

// Defined returns the tables, as they are defined.
func (h *History) Defined() ([]*TableDef, error) {
	var tables []*TableDef
	for _, name := range slices.Sorted(maps.Keys(h.Tables)) {
		table, err := ParseTable(name, h.Tables[name])
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		tables = append(tables, table)
	}
	return tables, nil
}

// parts are the transactions that an action consists of.
func (a Action) parts() []Action {
	return append([]Action{a}, a.And...)
}
