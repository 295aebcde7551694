//go:build go1.25

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

package mergebackoff_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// fuzzTables are the tables that a fuzzed history can have. Each has the columns id,
// uid, w, body and doc.
var fuzzTables = []string{
	"(id bigint, uid bigint, w bigint, body text, doc json, primary key(id), unique key uid_uk(uid))",
	"(id bigint, uid bigint, w bigint, body text, doc json, primary key(id), unique key uid_uk(uid), unique key w_uk(w))",
	"(id bigint, uid bigint, w bigint, body text, doc json, primary key(id), unique key both_uk(uid, w))",
	"(id bigint, uid bigint, w bigint, body text, doc json, primary key(id, w), unique key uid_uk(uid))",
	"(id bigint, uid bigint, w bigint, body text, doc json, primary key(id), unique key body_uk(body(2)), unique key uid_uk(uid))",
}

// fuzzInput hands out the bytes of an input; behind its end there are zeros.
type fuzzInput []byte

func (in *fuzzInput) next(n int) int {
	if len(*in) == 0 {
		return 0
	}
	b := int((*in)[0])
	*in = (*in)[1:]
	return b % n
}

// value is a value of a unique key; one in five is NULL.
func (in *fuzzInput) value() string {
	if n := in.next(5); n > 0 {
		return fmt.Sprint(n)
	}
	return "null"
}

// statement is one that may be valid or not, as the rows are. It changes some columns
// of a row, its primary key among them, or the whole row.
func (in *fuzzInput) statement(seq int) string {
	id := 1 + in.next(5)
	switch in.next(9) {
	case 0, 1:
		return fmt.Sprintf("insert into t values (%d, %s, %d, 'b%d', '{\"k\": %d}')", id, in.value(), 1+in.next(4), seq, seq)
	case 2:
		return fmt.Sprintf("delete from t where id=%d", id)
	case 3:
		// Of a row that gets another primary key, vplayer needs all columns.
		return fmt.Sprintf("update t set id=%d, body='b%d', doc='{\"k\": %d}' where id=%d", 1+in.next(5), seq, seq, id)
	case 4:
		return fmt.Sprintf("update t set body='b%d' where id=%d", seq, id)
	case 5:
		return fmt.Sprintf("update t set doc=json_set(doc, '$.k', %d) where id=%d", seq, id)
	case 6:
		return fmt.Sprintf("update t set doc=json_set(doc, '$.n', %d), uid=%s where id=%d", seq, in.value(), id)
	case 7:
		return fmt.Sprintf("update t set w=%d, body='b%d', doc='{\"k\": %d}' where id=%d", 1+in.next(4), seq, seq, id)
	}
	return fmt.Sprintf("update t set uid=%s where id=%d", in.value(), id)
}

// fuzzHistory has a source commit transactions of one to three statements, and leaves
// out those that are not valid on it.
func fuzzHistory(t *testing.T, in *fuzzInput) *World {
	t.Helper()
	ddl := fuzzTables[in.next(len(fuzzTables))]
	table, err := ParseTable("t", ddl)
	require.NoError(t, err)
	w := NewWorld(1, table)
	options := in.next(4)
	w.Streams[0].Images = Images{NoBlob: options&1 != 0, PartialJSON: options&2 != 0}
	for seq := 1; len(*in) > 0; {
		var texts []string
		for range 1 + in.next(3) {
			texts = append(texts, in.statement(seq))
			seq++
		}
		// An error is that of a statement which the source refuses, too.
		_, _ = w.Streams[0].SQL(texts...)
	}
	return w
}

// FuzzNetEffect shows that the net effect of any part of any history of one source comes
// to the same rows as its transactions, one by one: with full images and with those
// that lack what did not change. The first transactions are applied as they are; the
// others are folded, all at once or in two windows. What cannot be folded is applied as
// it is.
func FuzzNetEffect(f *testing.F) {
	for seed := range 12 {
		var data []byte
		for i := range 60 + 20*seed {
			data = append(data, byte((seed*131+i*i*37+i*17)%251))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			return
		}
		in := fuzzInput(data)
		first, second, batches := in.next(256), in.next(256), in.next(2) == 1
		w := fuzzHistory(t, &in)
		s := w.Streams[0]
		if len(s.Log) == 0 {
			return
		}
		p := &Player{DB: w.DB, ID: s.ID, Hub: w.Hub, MaxBatch: 1 << 20, plans: make(map[string]*mergebackoff.Table)}
		s.Player, s.fields = p, make(map[string]bool)
		var log [][]*binlogdatapb.VEvent
		for _, txn := range s.Log {
			log = append(log, s.Events(txn))
		}
		// The first window begins at start, the second at middle.
		start := first % len(log)
		middle := start + second%(len(log)-start+1)
		for _, events := range log[:start] {
			applyAsIs(t, p, events)
		}
		p.Batches = batches
		for _, window := range [][][]*binlogdatapb.VEvent{log[start:middle], log[middle:]} {
			for len(window) > 0 {
				units, err := foldOrApply(t, p, window)
				if err != nil {
					t.Fatalf("%v, of\n%s", err, logOf(s, start, middle))
				}
				window = window[units:]
			}
		}
		if difference := w.DB.Difference(s.Rows()); difference != "" {
			t.Fatalf("%s, of\n%s", difference, logOf(s, start, middle))
		}
		require.Empty(t, w.DB.Wrong(), logOf(s, start, middle))
	})
}

// foldOrApply folds as much of a window as can be, or else applies its first transaction.
// It returns how many transactions that were.
func foldOrApply(t *testing.T, p *Player, window [][]*binlogdatapb.VEvent) (units int, err error) {
	p.Mark()
	units, _, err = mergebackoff.Fold(context.Background(), p, slices.Concat(window...))
	if err != nil {
		return 0, err
	}
	if units == 0 {
		applyAsIs(t, p, window[0])
		return 1, nil
	}
	return units, p.Advance(slices.Concat(window[:units]...))
}

// applyAsIs applies events as vplayer does.
func applyAsIs(t *testing.T, p *Player, events []*binlogdatapb.VEvent) {
	t.Helper()
	for _, event := range events {
		require.NoError(t, p.Apply(context.Background(), event, true))
	}
}

// logOf writes a history for people to read.
func logOf(s *Stream, start, middle int) string {
	table := s.World.Tables["t"]
	text := fmt.Sprintf("primary key %v, unique keys %+v, images %+v\n", table.Key, table.Unique, s.Images)
	for i, txn := range s.Log {
		if i == start || i == middle {
			text += "-- a window begins\n"
		}
		text += txn.SQL + "\n"
	}
	return text
}
