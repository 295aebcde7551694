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
	"maps"
	"slices"
	"time"
)

type (
	// History is what happens to a merge, in order.
	History struct {
		Streams int
		// Tables are the definitions of the tables, by name.
		Tables  map[string]string
		Images  Images
		Batches bool
		// Blind and Opaque are those of Player.
		Blind, Opaque bool
		// Throttled has the throttler deny now and then.
		Throttled bool
		// Genuine is set if the sources end with a duplicate.
		Genuine bool
		Actions []Action
	}

	// Action is one thing that happens.
	Action struct {
		Kind Kind
		// Stream is the source, or the stream, that it happens to.
		Stream int
		// SQL are the statements of a transaction on the source.
		SQL []string
		// And are transactions on other sources which the application makes
		// together with this one: the sources' union is valid before the first
		// and after the last.
		And []Action
		// For is how long a sleep takes.
		For time.Duration
		// At has the scheduler wait with it, for a while, until a stream stands at
		// this call.
		At string
	}

	// Kind is what an action is.
	Kind string
)

const (
	Transaction Kind = "tx"
	DDL         Kind = "ddl"
	Stop        Kind = "stop"
	Start       Kind = "start"
	// Crash is the end of the whole process, which is started again.
	Crash Kind = "crash"
	// Lose is the loss of the connection of one stream.
	Lose  Kind = "lose"
	Sleep Kind = "sleep"
)

// schemas are what a history's tables are chosen from.
var schemas = []map[string]string{
	{"t": "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))"},
	{"t": "(id bigint, a bigint, b bigint, c bigint, val varchar(64), primary key(id), unique key ab(a,b), unique key c_uk(c))"},
	{"t": "(id bigint, uid bigint, doc json, body blob, primary key(id), unique key uid_uk(uid))"},
	{"t": "(p bigint, q bigint, uid bigint, val varchar(64), primary key(p,q), unique key uid_uk(uid))"},
	{
		"t":   "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))",
		"t_b": "(id bigint, u bigint, w bigint, doc json, primary key(id), unique key u_uk(u), unique key w_uk(w))",
	},
}

// Tables parses the definitions.
func (h *History) tables() ([]*TableDef, error) {
	var tables []*TableDef
	for _, name := range slices.Sorted(maps.Keys(h.Tables)) {
		table, err := ParseTable(name, h.Tables[name])
		if err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	return tables, nil
}
