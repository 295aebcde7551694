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
	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// maxRetained bounds the row images, in bytes, that a stream keeps of source
// transactions that are not committed on the target yet.
const maxRetained = 64 << 20

// queue holds the events that a stream has read and not yet committed on the
// target, in the order in which the source sent them. The first ones were
// handed to vplayer, which may have applied them in the open transaction; the
// others are still to come.
type queue struct {
	events []*binlogdatapb.VEvent
	// next is the index of the first event that vplayer was not handed yet.
	next int
	// size is the sum of the row images of events, in bytes.
	size int
	// truncated is set when the events of an open transaction outgrew the bound
	// and were let go: they can only be read again, from the saved position.
	truncated bool
	// skip is how many of the events to come were committed before vplayer was
	// handed them.
	skip int
}

// add appends what was fetched.
func (q *queue) add(items [][]*binlogdatapb.VEvent) {
	if len(q.events) == 0 {
		q.events = q.events[:0:cap(q.events)]
	}
	for _, events := range items {
		q.events = append(q.events, events...)
		for _, event := range events {
			q.size += eventSize(event)
		}
	}
}

// take marks the next event as handed to vplayer. The event must be the one
// that the queue expects: everything the ladder does rests on that.
func (q *queue) take(event *binlogdatapb.VEvent) error {
	if q.next >= len(q.events) || q.events[q.next] != event {
		return vterrors.Errorf(vtrpcpb.Code_INTERNAL,
			"merge backoff: vplayer applies a %v event out of the order in which it was fetched", event.GetType())
	}
	q.next++
	if q.size > maxRetained && q.next > 1 {
		q.truncate()
	}
	return nil
}

// truncate lets the handed events go, because they are too large to keep.
func (q *queue) truncate() {
	handed := q.events[:q.next]
	for i, event := range handed {
		q.size -= eventSize(event)
		handed[i] = nil
	}
	q.events = q.events[q.next:]
	q.next = 0
	q.truncated = true
}

// commit lets go of the first n events: they are committed on the target.
func (q *queue) commit(n int) {
	for i, event := range q.events[:n] {
		q.size -= eventSize(event)
		q.events[i] = nil
	}
	q.events = q.events[n:]
	q.skip += max(n-q.next, 0)
	q.next = max(q.next-n, 0)
	q.truncated = false
}

// skips reports whether the next event that vplayer comes to is committed
// already, and counts it.
func (q *queue) skips() bool {
	if q.skip == 0 {
		return false
	}
	q.skip--
	return true
}

// units returns, for each source transaction among the handed events, the index
// behind its last event. Handed events behind the last COMMIT, of a transaction
// that has not arrived whole, are a unit too, and open says so.
func (q *queue) units() (ends []int, open bool) {
	for i, event := range q.events[:q.next] {
		if event.Type == binlogdatapb.VEventType_COMMIT {
			ends = append(ends, i+1)
		}
	}
	for i := lastOr(ends, 0); i < q.next; i++ {
		switch q.events[i].Type {
		case binlogdatapb.VEventType_HEARTBEAT, binlogdatapb.VEventType_BEGIN:
			// Nothing to apply, and so nothing to stay open for.
		default:
			return append(ends, q.next), true
		}
	}
	if n := len(ends); n > 0 {
		ends[n-1] = q.next
	}
	return ends, false
}

// lastCommit returns the index of the last COMMIT before end, or -1.
func (q *queue) lastCommit(end int) int {
	for i := end - 1; i >= 0; i-- {
		if q.events[i].Type == binlogdatapb.VEventType_COMMIT {
			return i
		}
	}
	return -1
}

func lastOr(s []int, otherwise int) int {
	if len(s) == 0 {
		return otherwise
	}
	return s[len(s)-1]
}

// eventSize is what an event holds in memory as vreplication counts it: its row
// images. Everything else is small beside them.
func eventSize(event *binlogdatapb.VEvent) int {
	size := 0
	for _, change := range event.GetRowEvent().GetRowChanges() {
		size += len(change.GetBefore().GetValues()) + len(change.GetAfter().GetValues())
	}
	return size + len(event.GetStatement()) + len(event.GetDml())
}
