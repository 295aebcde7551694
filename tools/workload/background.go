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
)

// Background is load without any conflict: rows that come, change and go.
type Background struct {
	rng    *rand.Rand
	shards *Shards
	live   []int64
	next   int64
	seq    int
}

// maxBackground bounds the rows that a Background keeps.
const maxBackground = 5000

// NewBackground returns a source whose rows have ids from firstID upwards.
func NewBackground(seed uint64, shards *Shards, firstID int64) *Background {
	return &Background{rng: rand.New(rand.NewPCG(seed, uint64(firstID))), shards: shards, next: firstID}
}

// Prepare implements Source.
func (b *Background) Prepare() []Txn { return nil }

// Next implements Source.
func (b *Background) Next() Txn {
	b.seq++
	row := Row{Val: fmt.Sprintf("background-%d", b.seq)}
	choice := b.rng.IntN(4)
	switch {
	case choice < 2 && len(b.live) < maxBackground || len(b.live) == 0:
		id := b.next
		b.next++
		b.live = append(b.live, id)
		row.Email = fmt.Sprintf("background-%d", id)
		return b.txn(Op{Kind: Insert, ID: id, Row: row})
	case choice == 3:
		i := b.rng.IntN(len(b.live))
		id := b.live[i]
		b.live[i] = b.live[len(b.live)-1]
		b.live = b.live[:len(b.live)-1]
		return b.txn(Op{Kind: Delete, ID: id})
	default:
		id := b.live[b.rng.IntN(len(b.live))]
		row.Email = fmt.Sprintf("background-%d", id)
		return b.txn(Op{Kind: Update, ID: id, Row: row})
	}
}

// txn makes a transaction of one statement.
func (b *Background) txn(op Op) Txn {
	return Txn{Shard: b.shards.Of(op.ID), Ops: []Op{op}}
}

// Bulk is load that makes one shard's stream fall behind the others for a
// moment: large transactions, on one shard after the other. The skew is what
// makes streams meet values that others took in their future.
type Bulk struct {
	ids  [][]int64
	turn int
}

// NewBulk returns a source with n rows per shard, and the first row id that it
// leaves to others.
func NewBulk(shards *Shards, n int, firstID int64) (*Bulk, int64) {
	ids, next := shards.pick(firstID, n)
	return &Bulk{ids: ids}, next
}

// Prepare implements Source.
func (b *Bulk) Prepare() []Txn {
	var list []Txn
	for shard, ids := range b.ids {
		var ops []Op
		for _, id := range ids {
			ops = append(ops, Op{Kind: Insert, ID: id, Row: b.row(id)})
		}
		list = append(list, Txn{Shard: shard, Ops: ops, Bulk: true})
	}
	return list
}

// Next implements Source.
func (b *Bulk) Next() Txn {
	b.turn++
	shard := b.turn % len(b.ids)
	var ops []Op
	for _, id := range b.ids[shard] {
		ops = append(ops, Op{Kind: Update, ID: id, Row: b.row(id)})
	}
	return Txn{Shard: shard, Ops: ops, Bulk: true}
}

// row is the same for all rows, but for the email, which never changes.
func (b *Bulk) row(id int64) Row {
	return Row{Email: fmt.Sprintf("bulk-%d", id), Val: fmt.Sprintf("bulk-%d", b.turn)}
}
