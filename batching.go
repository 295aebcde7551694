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

package mergebackoff

// mode is how a stream turns source transactions into target transactions.
type mode int

const (
	// grouped is vplayer's own way: as many source transactions as are in hand
	// become one target transaction, sent in batches if the workflow batches.
	grouped mode = iota
	// isolated is one source transaction per target transaction, and one
	// statement at a time: an error comes at the row that causes it, and every
	// commit that grouping had put off is made.
	isolated
)

// batching switches one stream between the two modes. vplayer's grouping,
// vplayer's batching and the connection's ability to take several statements in
// one query go together: if they came apart, a batch would be sent to a
// connection that refuses it, or every statement would commit by itself.
//
// Where conflicts are frequent a group is small at first, and grows from commit to
// commit: a large one would most likely be rolled back.
type batching struct {
	player Player
	mode   mode
	// most is how many source transactions a group takes; zero is any number.
	most int
}

// isolate leaves grouping and batching. No transaction may be open.
func (b *batching) isolate() error {
	return b.set(isolated)
}

// restore goes back to vplayer's own way. No transaction may be open.
func (b *batching) restore() error {
	return b.set(grouped)
}

func (b *batching) set(m mode) error {
	if b.mode == m {
		return nil
	}
	// The mode changes only if the player did: a player that failed to switch
	// ends with that error, and the next one sets everything from scratch.
	if err := b.player.SetBatching(m == grouped); err != nil {
		return err
	}
	b.mode = m
	return nil
}

// mayGroup reports whether a commit may be put off and joined with the next, when
// so many source transactions are in the group.
func (b *batching) mayGroup(units int) bool {
	return b.mode == grouped && (b.most == 0 || units < b.most)
}

const (
	// leastGrouped is the size of a small group, and mostGrouped the one from which
	// on there is no limit.
	leastGrouped = 16
	mostGrouped  = 4096
)

// shrink has the next group be small.
func (b *batching) shrink() {
	b.most = leastGrouped
}

// grow has the next group be larger, after one that went through.
func (b *batching) grow() {
	b.most *= 4
	if b.most > mostGrouped {
		b.most = 0
	}
}
