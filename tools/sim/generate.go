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
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// generator makes a history that is valid at every instant.
type generator struct {
	rng    *rand.Rand
	world  *World
	images Images
	values int
	ids    int
	docs   int
}

// Generate makes the history of a seed.
func Generate(seed uint64, genuine bool) (*History, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &History{
		Streams:   2 + min(rng.IntN(5), rng.IntN(5)),
		Tables:    schemas[rng.IntN(len(schemas))],
		Images:    Images{NoBlob: rng.IntN(2) == 0, PartialJSON: rng.IntN(2) == 0},
		Batches:   rng.IntN(2) == 0,
		Genuine:   genuine,
		Blind:     rng.IntN(10) == 0,
		Throttled: rng.IntN(10) == 0,
	}
	// An index on an expression can be changed by any update, so rows whose images
	// lack columns cannot be told to keep their values.
	h.Opaque = rng.IntN(10) == 0 && !h.Images.NoBlob
	tables, err := h.tables()
	if err != nil {
		return nil, err
	}
	g := &generator{rng: rng, images: h.Images, world: NewWorld(h.Streams, tables...), values: 2 + rng.IntN(5), ids: h.Streams + 1 + rng.IntN(6)}
	length := 10 + rng.IntN(60)
	if rng.IntN(20) == 0 {
		// A backlog.
		length *= 5
	}
	running := make([]bool, h.Streams)
	for i := range running {
		if running[i] = rng.IntN(3) > 0; running[i] {
			h.Actions = append(h.Actions, Action{Kind: Start, Stream: i})
		}
	}
	// Faults are rare, and only in some histories.
	faults := rng.IntN(2) == 0
	for len(h.Actions) < length {
		stream := rng.IntN(h.Streams)
		switch n := rng.IntN(100); {
		case n < 4:
			h.Actions = append(h.Actions, Action{Kind: DDL, Stream: stream})
		case n < 12:
			kind := Start
			if running[stream] {
				kind = Stop
			}
			running[stream] = !running[stream]
			action := Action{Kind: kind, Stream: stream}
			if kind == Stop {
				action.At = moment(rng)
			}
			h.Actions = append(h.Actions, action)
			if action.At != "" && rng.IntN(2) == 0 {
				running[stream] = true
				h.Actions = append(h.Actions, Action{Kind: Start, Stream: stream})
			}
		case n < 15:
			h.Actions = append(h.Actions, Action{Kind: Sleep, For: time.Duration(1+rng.IntN(3000)) * time.Millisecond})
		case n < 17 && faults:
			h.Actions = append(h.Actions, Action{Kind: Crash, At: moment(rng)})
		case n < 20 && faults:
			h.Actions = append(h.Actions, Action{Kind: Lose, Stream: stream, At: moment(rng)})
		default:
			if action := g.transaction(); action != nil {
				h.Actions = append(h.Actions, *action)
			}
		}
	}
	if genuine {
		if action := g.duplicate(); action != nil {
			h.Actions = append(h.Actions, *action)
		} else {
			h.Genuine = false
		}
	}
	return h, nil
}

// moment chooses when something is to happen: any time, as a stream commits, or
// as one commits for others.
func moment(rng *rand.Rand) string {
	return []string{"", "", "COMMIT", "SavePosition"}[rng.IntN(4)]
}

// attempt runs transactions on the sources if they leave them valid.
func (g *generator) attempt(valid bool, parts ...Action) *Action {
	type saved struct {
		rows map[string]Row
		log  int
	}
	before := make([]saved, len(g.world.Streams))
	for i, s := range g.world.Streams {
		before[i] = saved{maps.Clone(s.Rows), len(s.Log)}
	}
	ok := true
	for _, part := range parts {
		if err := execute(g.world.Streams[part.Stream], part.SQL); err != nil {
			ok = false
			break
		}
	}
	if ok {
		_, duplicate := g.world.Union()
		ok = valid == (duplicate == "")
	}
	if !ok {
		for i, s := range g.world.Streams {
			s.Rows, s.Log = before[i].rows, s.Log[:before[i].log]
		}
		return nil
	}
	action := parts[0]
	action.And = parts[1:]
	return &action
}

// execute runs a transaction on a source, which checks each statement as the
// target does.
func execute(s *Stream, statements []string) error {
	rows := s.Rows
	s.Rows = maps.Clone(rows)
	err := s.rehearse(statements)
	s.Rows = rows
	if err != nil {
		return err
	}
	_, err = s.SQL(statements...)
	return err
}

func (s *Stream) rehearse(statements []string) error {
	for _, sql := range statements {
		deltas, err := s.parse(sql)
		if err != nil {
			return err
		}
		for _, delta := range deltas {
			if err := s.check(delta); err != nil {
				return err
			}
			s.apply(delta)
		}
	}
	return nil
}

// check reports a duplicate on the source itself.
func (s *Stream) check(delta RowDelta) error {
	if delta.After == nil {
		return nil
	}
	own := ""
	if delta.Before != nil {
		own = delta.Table.key(delta.Before)
	}
	key := delta.Table.key(delta.After)
	if key != own && s.Rows[key] != nil {
		return fmt.Errorf("duplicate %s", key)
	}
	for other, row := range s.Rows {
		if other == own || !strings.HasPrefix(other, delta.Table.Name+"(") {
			continue
		}
		for _, unique := range delta.Table.Unique {
			if entry := delta.Table.entry(unique, delta.After); entry != "" && entry == delta.Table.entry(unique, row) {
				return fmt.Errorf("duplicate %s", entry)
			}
		}
	}
	return nil
}

// transaction makes one transaction, or several of one application transaction.
func (g *generator) transaction() *Action {
	for range 20 {
		var parts []Action
		n := 1
		if g.rng.IntN(8) == 0 {
			n = 2 + g.rng.IntN(2)
		}
		if n > 1 && g.rng.IntN(2) == 0 {
			parts = g.exchange(n)
		} else {
			for range n {
				parts = append(parts, g.one())
			}
		}
		if len(parts) == 0 || slices.ContainsFunc(parts, func(a Action) bool { return len(a.SQL) == 0 }) {
			continue
		}
		if action := g.attempt(true, parts...); action != nil {
			return action
		}
	}
	return nil
}

// one is a transaction of a few statements on one source.
func (g *generator) one() Action {
	stream := g.rng.IntN(len(g.world.Streams))
	action := Action{Kind: Transaction, Stream: stream}
	s := g.world.Streams[stream]
	table := g.table()
	n := 1
	if g.rng.IntN(4) == 0 {
		n = 2 + g.rng.IntN(3)
	}
	rows := maps.Clone(s.Rows)
	defer func() { s.Rows = rows }()
	for range n {
		sql := g.statement(s, table)
		deltas, err := s.parse(sql)
		if err != nil {
			continue
		}
		for _, delta := range deltas {
			s.apply(delta)
		}
		action.SQL = append(action.SQL, sql)
	}
	return action
}

func (g *generator) table() *TableDef {
	names := slices.Sorted(maps.Keys(g.world.Tables))
	return g.world.Tables[names[g.rng.IntN(len(names))]]
}

// rowsOf are the keys of the source's rows in a table.
func rowsOf(s *Stream, table *TableDef) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s.Rows)) {
		if strings.HasPrefix(key, table.Name+"(") {
			keys = append(keys, key)
		}
	}
	return keys
}
