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

import (
	"time"
)

const (
	// messageDelay is how long a stream is blocked before it says so in its message:
	// most blocks are over before anybody could read it.
	messageDelay = 250 * time.Millisecond
	// reportDelay is how long a stream is blocked before that is worth a row in
	// vreplication_log, and a line in the log.
	reportDelay = 5 * time.Second
)

// Block is a stretch of time in which one source transaction of a stream could
// not be applied.
type Block struct {
	// Since is when the transaction was found to be blocked.
	Since time.Time
	// Lasted is how long that was, once it is over.
	Lasted time.Duration
	// Reported tells whether Player.Blocked was called for it.
	Reported bool
	// Key and Value are the unique key, as MySQL names it, and the value in
	// conflict. They are empty if MySQL's error did not name them.
	Key, Value string
	// Peers are the streams that may release the value.
	Peers []Stream
	// Message says all of that in one line.
	Message string
	// End is the rung that ended it, GivenUp if that ended the stream, or empty if
	// the stream was stopped or met another error.
	End Resolution
}

// say writes what the stream waits for into its row, once it has waited long
// enough for somebody to wonder, and reports a block that lasts.
func (r *resolution) say() error {
	if !r.ladder.blocked() {
		return nil
	}
	if r.block == nil {
		r.block = &Block{Since: r.ladder.blockedSince}
	}
	lasted := time.Since(r.block.Since)
	if lasted < messageDelay {
		return nil
	}
	message := waitMessage(r.ladder.last, r.block.Since, r.peers, r.held())
	if trouble := r.suspicion.trouble; trouble != "" {
		message += "; whether it is a genuine duplicate cannot be told: " + shorten(trouble, 200)
	}
	r.block.Key, r.block.Value = r.ladder.last.key, shorten(r.ladder.last.entry, 120)
	r.block.Peers, r.block.Message = r.peers, message
	if lasted >= reportDelay && !r.block.Reported {
		r.block.Reported = true
		r.player.Blocked(*r.block)
	}
	if message == r.message {
		return nil
	}
	r.message = message
	return r.player.SetMessage(message)
}

// unblock ends the block, if there is one. While a transaction is open nothing
// can be written about it: then that is put off until it is committed.
func (r *resolution) unblock(how Resolution) {
	r.hub.counters.setBlocked(r.config.ID, false)
	if r.block == nil {
		return
	}
	r.block.Lasted = time.Since(r.block.Since)
	r.block.End = how
	r.ended = append(r.ended, *r.block)
	r.block = nil
	r.tellEnded()
}

// tellEnded tells of the blocks that are over.
func (b *Backoff) tellEnded() {
	if b.player.InTransaction() {
		return
	}
	for _, block := range b.ended {
		b.player.Unblocked(block)
	}
	b.ended = nil
}
