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
	"math/rand/v2"
	"slices"
	"time"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// schemas are what a history's tables are chosen from.
var schemas = []map[string]string{
	{"t": "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))"},
	{"t": "(id bigint, a bigint, b bigint, c bigint, val varchar(64), primary key(id), unique key ab(a,b), unique key c_uk(c))"},
	{"t": "(id bigint, uid bigint, doc json, body blob, primary key(id), unique key uid_uk(uid))"},
	{"t": "(p bigint, q bigint, uid bigint, val varchar(64), primary key(p,q), unique key uid_uk(uid))"},
	{"t": "(name varchar(64), uid bigint, mail varchar(64), val varchar(64), primary key(name), unique key uid_uk(uid), unique key mail_uk(mail(3)))"},
	{"t": "(id bigint, base bigint, uid bigint generated always as (base*10) stored, kind enum('red','green','blue'), val varchar(64), primary key(id), unique key uid_uk(uid), unique key kind_uk(kind, base))"},
	{
		"t":   "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))",
		"t_b": "(id bigint, u bigint, w bigint, doc json, primary key(id), unique key u_uk(u), unique key w_uk(w))",
	},
	{
		"t":   "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))",
		"t_l": "(source bigint, seq bigint, val varchar(64))",
	},
	{
		"t":   "(id bigint, uid bigint, body text, primary key(id), unique key uid_uk(uid))",
		"t_f": "(id bigint, uid bigint, primary key(id), unique key uid_uk(uid), foreign key (uid) references t(uid))",
		"t_l": "(source bigint, seq bigint, val varchar(64))",
	},
}

// generator makes a history that is valid at every instant.
type generator struct {
	rng    *rand.Rand
	h      *History
	world  *World
	tables []*TableDef
	values int
	ids    int
	docs   int
	// keys are, for each source, the keys of its rows, by table, in an order that
	// does not depend on chance.
	keys [][][]string
	// noted is how much of each source's log they cover.
	noted []int
	// state is what the history has come to.
	running, absent, gone []bool
	faults                bool
}

// Generate makes the history of a seed.
func Generate(seed uint64, genuine bool) (*History, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &History{
		Streams: 2 + min(rng.IntN(5), rng.IntN(5)),
		Tables:  schemas[rng.IntN(len(schemas))],
		Options: options(rng),
	}
	// Where holders are not known everything is taken in, one by one: with what can
	// never be folded in between that takes too long to watch.
	h.Blind = h.Blind && !h.limited()
	var err error
	g := &generator{rng: rng, h: h, values: 2 + rng.IntN(5), ids: h.Streams + 1 + rng.IntN(6)}
	if g.tables, err = h.Defined(); err != nil {
		return nil, err
	}
	g.world = NewWorld(h.Streams, g.tables...)
	g.begin()
	length := len(h.Actions) + 10 + rng.IntN(60)
	if rng.IntN(20) == 0 {
		// A backlog.
		length *= 5
	}
	for len(h.Actions) < length {
		g.step()
	}
	g.finish(genuine)
	return h, nil
}

// options chooses how a history is run.
func options(rng *rand.Rand) Options {
	o := Options{
		Images:    Images{NoBlob: rng.IntN(2) == 0, PartialJSON: rng.IntN(2) == 0},
		Batches:   rng.IntN(2) == 0,
		Blind:     rng.IntN(10) == 0,
		Throttled: rng.IntN(10) == 0,
		Stranger:  rng.IntN(4) == 0,
		Unasked:   rng.IntN(3) == 0,
	}
	// An index on an expression can be changed by any update, so rows whose images
	// lack columns cannot be told to keep their values.
	o.Opaque = rng.IntN(10) == 0 && !o.Images.NoBlob
	o.LockErrors = rng.IntN(4) == 0
	if rng.IntN(4) == 0 {
		o.OnDDL = binlogdatapb.OnDDLAction(1 + rng.IntN(3))
	}
	if rng.IntN(10) == 0 {
		o.Retained = 20 + rng.IntN(400)
	}
	return o
}

// begin chooses who runs to begin with, and who is not there yet.
func (g *generator) begin() {
	n := g.h.Streams
	g.running, g.absent, g.gone = make([]bool, n), make([]bool, n), make([]bool, n)
	g.keys, g.noted = make([][][]string, n), make([]int, n)
	comings := g.rng.IntN(4) == 0
	for i := range n {
		g.keys[i] = make([][]string, len(g.tables))
		switch {
		case comings && i > 0 && g.rng.IntN(3) == 0:
			g.absent[i] = true
		case g.rng.IntN(3) > 0:
			g.running[i] = true
			g.add(Action{Kind: Start, Stream: i})
		}
	}
	// Faults are rare, and only in some histories.
	g.faults = g.rng.IntN(2) == 0
}

func (g *generator) add(action Action) { g.h.Actions = append(g.h.Actions, action) }

// step adds something that happens.
func (g *generator) step() {
	stream := g.rng.IntN(g.h.Streams)
	switch n := g.rng.IntN(200); {
	case n < 8 && g.gone[stream]:
	case n < 6:
		g.add(Action{Kind: DDL, Stream: stream})
	case n < 8:
		g.add(Action{Kind: Other, Stream: stream})
	case n < 24:
		g.startOrStop(stream)
	case n < 26 && !g.absent[stream] && !g.gone[stream]:
		g.running[stream] = true
		g.add(Action{Kind: StopAt, Stream: stream, N: 1 + g.rng.IntN(8)})
	case n < 27:
		g.leave(stream)
	case n < 32:
		g.add(Action{Kind: Sleep, For: time.Duration(1+g.rng.IntN(3000)) * time.Millisecond})
	case n < 42 && g.faults:
		kind := []Kind{Crash, Crash, Outage, Close, Lose, Lose, Lose}[g.rng.IntN(7)]
		action := Action{Kind: kind, At: g.moment()}
		if kind == Lose {
			action.Stream = stream
		}
		g.add(action)
	default:
		if action := g.transaction(); action != nil {
			g.add(*action)
		}
	}
}

func (g *generator) startOrStop(stream int) {
	switch {
	case g.absent[stream]:
		g.absent[stream], g.running[stream] = false, true
		g.add(Action{Kind: Come, Stream: stream})
	case !g.running[stream]:
		g.running[stream] = true
		g.add(Action{Kind: Start, Stream: stream})
	default:
		g.running[stream] = false
		action := Action{Kind: Stop, Stream: stream, At: g.moment()}
		g.add(action)
		if action.At != "" && g.rng.IntN(2) == 0 {
			g.running[stream] = true
			g.add(Action{Kind: Start, Stream: stream})
		}
	}
}

// leave has a source delete its rows, and its stream be deleted once it is through.
func (g *generator) leave(stream int) {
	if stream == 0 || g.gone[stream] || g.h.Streams < 3 {
		return
	}
	var all []*SQL
	for t, table := range g.tables {
		for _, key := range g.keys[stream][t] {
			all = append(all, &SQL{Table: sqlName(table, stream), Where: g.where(table, g.world.Streams[stream].Rows()[key])})
		}
	}
	if len(all) > 0 {
		action := g.attempt(true, Action{Kind: Transaction, Stream: stream, SQL: all})
		if action == nil {
			return
		}
		g.add(*action)
	}
	if g.absent[stream] {
		g.add(Action{Kind: Come, Stream: stream})
	} else if !g.running[stream] {
		g.add(Action{Kind: Start, Stream: stream})
	}
	g.add(Action{Kind: Go, Stream: stream})
	g.absent[stream], g.running[stream], g.gone[stream] = false, true, true
}

// finish has all streams run, and says what is to come of it.
func (g *generator) finish(genuine bool) {
	if genuine {
		if duplicate, repair := g.duplicate(); duplicate != nil {
			g.startAll()
			g.add(*duplicate)
			g.add(Action{Kind: ExpectError})
			g.add(*repair)
		}
	}
	g.startAll()
	g.add(Action{Kind: Converge})
}

func (g *generator) startAll() {
	for i := range g.h.Streams {
		kind := Start
		if g.absent[i] {
			g.absent[i] = false
			kind = Come
		}
		g.add(Action{Kind: kind, Stream: i})
	}
}

// moment chooses when something is to happen: any time, as a stream commits, or
// as one commits for others.
func (g *generator) moment() string {
	return []string{"", "", "COMMIT", "SavePosition"}[g.rng.IntN(4)]
}

// attempt runs transactions on the sources if they leave them valid, or, if asked
// for, not.
func (g *generator) attempt(valid bool, parts ...Action) *Action {
	for done, part := range parts {
		if _, err := g.world.Streams[part.Stream].Execute(part.SQL); err != nil {
			g.revert(parts[:done])
			return nil
		}
	}
	if valid != (g.world.Duplicate() == "") {
		g.revert(parts)
		return nil
	}
	for _, part := range parts {
		g.note(part.Stream)
	}
	action := parts[0]
	action.And = parts[1:]
	return &action
}

func (g *generator) revert(parts []Action) {
	for _, part := range slices.Backward(parts) {
		g.world.Streams[part.Stream].Revert()
	}
}

// note keeps the keys up to date with what a source has logged.
func (g *generator) note(stream int) {
	s := g.world.Streams[stream]
	for ; g.noted[stream] < len(s.Log); g.noted[stream]++ {
		for _, delta := range s.Log[g.noted[stream]].Rows {
			keys := &g.keys[stream][slices.Index(g.tables, delta.Table)]
			if delta.Before != nil {
				if i := slices.Index(*keys, delta.Table.key(delta.Before)); i >= 0 {
					*keys = slices.Delete(*keys, i, i+1)
				}
			}
			if delta.After != nil {
				*keys = append(*keys, delta.Table.key(delta.After))
			}
		}
	}
}
