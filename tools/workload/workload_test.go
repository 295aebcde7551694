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
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// newShards returns a map of shards, or fails the test.
func newShards(t *testing.T, names ...string) *Shards {
	t.Helper()
	shards, err := NewShards(names...)
	if err != nil {
		t.Fatal(err)
	}
	return shards
}

// TestShardOf checks the computed shards against keyspace ids that Vitess's
// own tests have for the "hash" vindex.
func TestShardOf(t *testing.T) {
	for id, want := range map[int64]string{
		1: "166b40b44aba4bd6", 2: "06e7ea22ce92708f", 3: "4eb190c9a2fa169c", 4: "d2fd8867d50d2dfe", 5: "70bb023c810ca87a", 6: "f098480ac4c4be71",
	} {
		if got := fmt.Sprintf("%x", keyspaceID(id)); got != want {
			t.Errorf("row %d: got keyspace id %s, want %s", id, got, want)
		}
	}
	two, four := newShards(t, "-80", "80-"), newShards(t, "-40", "40-80", "80-c0", "c0-")
	for id, want := range map[int64][2]int{1: {0, 0}, 3: {0, 1}, 4: {1, 3}, 5: {0, 1}, 6: {1, 3}} {
		if got := [2]int{two.Of(id), four.Of(id)}; got != want {
			t.Errorf("row %d: got shards %v, want %v", id, got, want)
		}
	}
	for _, bad := range []string{"", "0", "8-", "-xx"} {
		if _, err := NewShards(bad); err == nil {
			t.Errorf("shard %q: want an error", bad)
		}
	}
}

// TestHistoriesAreValid shows that sources interleaved in any order never hold
// a primary key or an email twice, at any statement of the union of all
// shards, that each transaction stays on its shard, and that values do travel.
func TestHistoriesAreValid(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			shards := newShards(t, "-80", "80-")
			if seed%2 == 1 {
				shards = newShards(t, "-40", "40-80", "80-c0", "c0-")
			}
			checkHistory(t, seed, shards, 4000)
		})
	}
}

// checkHistory applies n transactions of all kinds of sources to one model.
func checkHistory(t *testing.T, seed uint64, shards *Shards, n int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	hot := HotValues(8)
	first, next := NewHandover(seed, shards, "w0", hot[:5], 1)
	second, next := NewHandover(seed, shards, "w1", hot[5:], next)
	bulk, next := NewBulk(shards, 20, next)
	sources := []Source{first, second, bulk, NewBackground(seed, shards, next)}

	model := NewModel()
	crossed := make(map[string]int)
	last := make(map[string]int)
	apply := func(txn Txn) {
		t.Helper()
		if err := model.Apply(txn); err != nil {
			t.Fatal(err)
		}
		for _, op := range txn.Ops {
			if got := shards.Of(op.ID); got != txn.Shard {
				t.Fatalf("row %d lies on shard %d, its transaction on %d", op.ID, got, txn.Shard)
			}
			if email := op.Row.Email; strings.HasPrefix(email, hotPrefix) {
				if from, seen := last[email]; seen && from != txn.Shard {
					crossed[email]++
				}
				last[email] = txn.Shard
			}
		}
	}
	for _, source := range sources {
		for _, txn := range source.Prepare() {
			apply(txn)
		}
	}
	for range n {
		apply(sources[rng.IntN(len(sources))].Next())
	}
	for _, value := range hot {
		if crossed[value] < n/200 {
			t.Errorf("value %s changed shards only %d times in %d transactions", value, crossed[value], n)
		}
	}
}

// TestSameSeed shows that a seed determines the history.
func TestSameSeed(t *testing.T) {
	shards := newShards(t, "-80", "80-")
	history := func(seed uint64) string {
		source, _ := NewHandover(seed, shards, "w", HotValues(4), 1)
		list := source.Prepare()
		for range 500 {
			list = append(list, source.Next())
		}
		return fmt.Sprint(list)
	}
	if history(7) != history(7) {
		t.Error("one seed gave two histories")
	}
	if history(7) == history(8) {
		t.Error("two seeds gave one history")
	}
}

// TestModelRefuses shows that the model finds each way in which a history can
// break the rules, as otherwise the tests above would show nothing.
func TestModelRefuses(t *testing.T) {
	row := func(email string) Row { return Row{Email: email, Val: "v"} }
	start := []Op{{Insert, 1, row("a")}, {Insert, 2, row("b")}, {Insert, 3, row("")}, {Insert, 4, row("")}}
	for name, ops := range map[string][]Op{
		"primary key twice":     {{Insert, 1, row("c")}},
		"email twice by insert": {{Insert, 5, row("a")}},
		"email twice by update": {{Update, 2, row("a")}},
		"taken before released": {{Update, 2, row("a")}, {Update, 1, row("")}},
		"update of no row":      {{Update, 9, row("z")}},
		"delete of no row":      {{Delete, 9, Row{}}},
	} {
		model := NewModel()
		if err := model.Apply(Txn{Ops: start}); err != nil {
			t.Fatal(err)
		}
		if err := model.Apply(Txn{Ops: ops}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestStatements shows the SQL of each kind of transaction.
func TestStatements(t *testing.T) {
	for _, test := range []struct {
		txn  Txn
		want string
	}{
		{Txn{Ops: []Op{{Insert, 1, Row{"", "v"}}}}, "[{insert into account (id, email, val) values (?, ?, ?) [1 { false} v]}]"},
		{Txn{Ops: []Op{{Update, 1, Row{"e", "v"}}}}, "[{update account set email = ?, val = ? where id = ? [{e true} v 1]}]"},
		{Txn{Ops: []Op{{Delete, 1, Row{}}}}, "[{delete from account where id = ? [1]}]"},
		{Txn{Bulk: true, Ops: []Op{{Update, 1, Row{"e", "v"}}, {Update, 2, Row{"f", "v"}}}}, "[{update account set val = ? where id in (1,2) [v]}]"},
		{Txn{Bulk: true, Ops: []Op{{Insert, 1, Row{"e", "v"}}, {Insert, 2, Row{"f", "v"}}}}, "[{insert into account (id, email, val) values (?, ?, ?), (?, ?, ?) [1 e v 2 f v]}]"},
	} {
		if got := fmt.Sprint(statements(test.txn)); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
