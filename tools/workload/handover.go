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
)

// Source produces transactions, to be committed one after the other.
type Source interface {
	// Prepare returns the transactions that create the initial rows.
	Prepare() []Txn
	// Next returns the next transaction.
	Next() Txn
}

// slotsPerShard is the number of rows per shard and worker between which the
// hot values go around: enough that takers are not always the same rows.
const slotsPerShard = 6

// Handover hands hot values between rows on different shards. A value is
// released, and that is committed, before it is taken elsewhere. Two sources
// must have neither values nor rows in common.
type Handover struct {
	// OneWay leaves out transactions that both take and release a value. vtgate
	// writes the table of a consistent lookup vindex in sessions of its own, of
	// which one would wait for the other.
	OneWay bool

	rng    *rand.Rand
	shards *Shards
	name   string
	hot    []string
	slots  [][]int64
	// plan is the state after the last transaction of queue.
	plan  *Model
	queue []Txn
	seq   int
}

// NewHandover returns a source for the given hot values, and the first row id
// that it leaves to others. The name goes into the rows.
func NewHandover(seed uint64, shards *Shards, name string, hot []string, firstID int64) (*Handover, int64) {
	slots, next := shards.pick(firstID, slotsPerShard)
	return &Handover{
		rng:    rand.New(rand.NewPCG(seed, uint64(firstID))),
		shards: shards,
		name:   name,
		hot:    hot,
		slots:  slots,
		plan:   NewModel(),
	}, next
}

// Prepare implements Source: half of the rows exist, without hot values.
func (h *Handover) Prepare() []Txn {
	for shard, ids := range h.slots {
		for _, id := range ids[:len(ids)/2] {
			h.commit(shard, false, Op{Kind: Insert, ID: id, Row: h.row(h.private(id))})
		}
	}
	return h.drain()
}

// Next implements Source.
func (h *Handover) Next() Txn {
	for len(h.queue) == 0 {
		if h.rng.IntN(10) == 0 && !h.OneWay {
			h.swap()
		} else {
			h.handOver()
		}
	}
	next := h.queue[0]
	h.queue = h.queue[1:]
	return next
}

// drain takes all planned transactions.
func (h *Handover) drain() []Txn {
	list := h.queue
	h.queue = nil
	return list
}

// row returns a row image that was never used before, so that the outcome of a
// statement can be told from the row alone.
func (h *Handover) row(email string) Row {
	h.seq++
	return Row{Email: email, Val: fmt.Sprintf("%s-%d", h.name, h.seq)}
}

// private is an email that no other row ever takes.
func (h *Handover) private(id int64) string {
	return fmt.Sprintf("private-%s-%d", h.name, id)
}

// holdsHot tells whether a row holds a hot value.
func (h *Handover) holdsHot(id int64) bool {
	row, _ := h.plan.Row(id)
	return strings.HasPrefix(row.Email, hotPrefix)
}

// hotPrefix begins every hot value, and no other.
const hotPrefix = "hot-"

// HotValues returns n hot values.
func HotValues(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d", hotPrefix, i)
	}
	return list
}

// commit plans one transaction.
func (h *Handover) commit(shard int, handover bool, ops ...Op) {
	txn := Txn{Shard: shard, Ops: ops, Handover: handover}
	if err := h.plan.Apply(txn); err != nil {
		panic(fmt.Sprintf("the generator planned an invalid transaction: %v", err))
	}
	h.queue = append(h.queue, txn)
}

// handOver plans the way of one value from its holder to another shard.
func (h *Handover) handOver() {
	value := h.hot[h.rng.IntN(len(h.hot))]
	from := -1
	if holder, held := h.plan.Holder(value); held {
		from = h.shards.Of(holder)
		h.release(from, holder)
	}
	switch h.rng.IntN(10) {
	case 0: // The value stays free for a while.
		return
	case 1: // A row somewhere holds it for no longer than a transaction.
		if shard, id, ok := h.taker(from); ok && !h.OneWay {
			take := h.takeOps(id, value)
			free := Op{Kind: Update, ID: id, Row: h.row("")}
			h.commit(shard, true, append(take, free)...)
			from = shard
		}
	}
	if shard, id, ok := h.taker(from); ok {
		h.take(shard, id, value)
	}
}

// taker chooses a row without a hot value on another shard than from.
func (h *Handover) taker(from int) (shard int, id int64, ok bool) {
	shard = h.rng.IntN(len(h.slots))
	if shard == from {
		shard = (shard + 1 + h.rng.IntN(len(h.slots)-1)) % len(h.slots)
	}
	ids := h.slots[shard]
	start := h.rng.IntN(len(ids))
	for i := range ids {
		if id = ids[(start+i)%len(ids)]; !h.holdsHot(id) {
			return shard, id, true
		}
	}
	return shard, 0, false
}

// release plans a transaction after which the row does not hold its value.
func (h *Handover) release(shard int, id int64) {
	op := Op{Kind: Update, ID: id}
	switch h.rng.IntN(4) {
	case 0:
		op.Kind = Delete
	case 1:
		op.Row = h.row(h.private(id))
	case 2: // Straight on to another hot value, if one is free.
		op.Row = h.row(h.freeHot())
	default:
		op.Row = h.row("")
	}
	h.commit(shard, true, h.withCompany(shard, op)...)
}

// freeHot returns a hot value that nobody holds, or none.
func (h *Handover) freeHot() string {
	start := h.rng.IntN(len(h.hot))
	for i := range h.hot {
		value := h.hot[(start+i)%len(h.hot)]
		if _, held := h.plan.Holder(value); !held {
			return value
		}
	}
	return ""
}

// take plans the transactions after which the row holds the value.
func (h *Handover) take(shard int, id int64, value string) {
	if _, exists := h.plan.Row(id); exists && h.rng.IntN(4) == 0 {
		// A row that goes and comes back, in two transactions.
		h.commit(shard, true, Op{Kind: Delete, ID: id})
	}
	h.commit(shard, true, h.withCompany(shard, h.takeOps(id, value)...)...)
}

// takeOps returns the statements that give the value to a row.
func (h *Handover) takeOps(id int64, value string) []Op {
	if _, exists := h.plan.Row(id); !exists {
		return []Op{{Kind: Insert, ID: id, Row: h.row(value)}}
	}
	if h.rng.IntN(4) == 0 {
		return []Op{{Kind: Delete, ID: id}, {Kind: Insert, ID: id, Row: h.row(value)}}
	}
	return []Op{{Kind: Update, ID: id, Row: h.row(value)}}
}

// withCompany sometimes adds a change of another row of the shard, which keeps
// its email: a transaction that is blocked then blocks more than itself.
func (h *Handover) withCompany(shard int, ops ...Op) []Op {
	if h.rng.IntN(3) != 0 {
		return ops
	}
	ids := h.slots[shard]
	id := ids[h.rng.IntN(len(ids))]
	row, exists := h.plan.Row(id)
	if !exists || id == ops[0].ID {
		return ops
	}
	return append([]Op{{Kind: Update, ID: id, Row: h.row(row.Email)}}, ops...)
}

// swap plans one transaction in which two rows of a shard exchange their hot
// values by way of NULL.
func (h *Handover) swap() {
	shard := h.rng.IntN(len(h.slots))
	var holders []int64
	for _, id := range h.slots[shard] {
		if h.holdsHot(id) {
			holders = append(holders, id)
		}
	}
	if len(holders) < 2 {
		return
	}
	h.rng.Shuffle(len(holders), func(i, j int) { holders[i], holders[j] = holders[j], holders[i] })
	a, _ := h.plan.Row(holders[0])
	b, _ := h.plan.Row(holders[1])
	h.commit(
		shard, true,
		Op{Kind: Update, ID: holders[0], Row: h.row("")},
		Op{Kind: Update, ID: holders[1], Row: h.row(a.Email)},
		Op{Kind: Update, ID: holders[0], Row: h.row(b.Email)},
	)
}
