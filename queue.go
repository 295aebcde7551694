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
// transactions that are not committed on the target yet, unless Config says so.
const maxRetained = 64 << 20

// queue holds the events that a stream has read and not yet committed on the
// target, in the order in which the source sent them. The first ones were
// handed to vplayer, which may have applied them in the open transaction; the
// others are still to come.
type queue struct {
	// bound is used instead of maxRetained, unless it is zero.
	bound  int
	events []*binlogdatapb.VEvent
	// next is the index of the first event that vplayer was not handed yet.
	next int
	// size is the sum of the row images of events, in bytes, and handed that of
	// those before next.
	size, handed int
	// truncated is set when the events of an open transaction outgrew the bound
	// and were let go: they can only be read again, from the saved position.
	truncated bool
	// skip is how many of the events to come were committed before vplayer was
	// handed them.
	skip int

	// base is the number of events that were let go, by which ends are counted
	// on: they are, for each COMMIT among the handed events, the number behind it.
	base int
	ends []int
	// tail is set if there is anything to apply behind the last of them.
	tail bool
}

// most is how much the queue may hold.
func (q *queue) most() int {
	if q.bound > 0 {
		return q.bound
	}
	return maxRetained
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
	q.handed += eventSize(event)
	switch event.Type {
	case binlogdatapb.VEventType_COMMIT:
		q.ends = append(q.ends, q.base+q.next)
		q.tail = false
	case binlogdatapb.VEventType_HEARTBEAT, binlogdatapb.VEventType_BEGIN:
		// Nothing to apply, and so nothing to stay open for.
	default:
		q.tail = true
	}
	if q.handed > q.most() && q.next > 1 {
		q.letGo(q.next)
		q.truncated = true
	}
	return nil
}

// adopt marks the source transactions that have arrived whole as handed, up to
// one that only vplayer can deal with, and tells whether there were any. vplayer
// is to skip them when it comes to them.
func (q *queue) adopt() bool {
	whole, size := 0, q.handed
	for i, event := range q.events[q.next:] {
		size += eventSize(event)
		if size > q.most()/2 || !adoptable(event) {
			break
		}
		if event.Type == binlogdatapb.VEventType_COMMIT {
			whole = i + 1
		}
	}
	for range whole {
		if q.take(q.events[q.next]) != nil {
			return false
		}
	}
	q.skip += whole
	return whole > 0
}

// adoptable reports whether an event belongs to a transaction of rows, or to none.
func adoptable(event *binlogdatapb.VEvent) bool {
	switch event.Type {
	case binlogdatapb.VEventType_BEGIN, binlogdatapb.VEventType_FIELD, binlogdatapb.VEventType_ROW,
		binlogdatapb.VEventType_GTID, binlogdatapb.VEventType_COMMIT, binlogdatapb.VEventType_HEARTBEAT:
		return true
	}
	return false
}

// commit lets go of the first n events: they are committed on the target.
func (q *queue) commit(n int) {
	q.skip += max(n-q.next, 0)
	q.letGo(n)
	q.truncated = false
}

func (q *queue) letGo(n int) {
	for i, event := range q.events[:n] {
		size := eventSize(event)
		q.size -= size
		if i < q.next {
			q.handed -= size
		}
		q.events[i] = nil
	}
	q.events = q.events[n:]
	q.base += n
	if n >= q.next {
		q.next, q.ends, q.tail = 0, q.ends[:0], false
		return
	}
	q.next -= n
	for len(q.ends) > 0 && q.ends[0] <= q.base {
		q.ends = q.ends[1:]
	}
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

// units returns the number of source transactions among the handed events. What
// was handed of one that has not arrived whole is a unit too, the last, and open
// says so.
func (q *queue) units() (count int, open bool) {
	if q.tail {
		return len(q.ends) + 1, true
	}
	return len(q.ends), false
}

// end returns the index behind the last event of the first units. What follows
// the last unit and needs not be applied belongs to it.
func (q *queue) end(units int) int {
	if count, _ := q.units(); units == count {
		return q.next
	}
	return q.ends[units-1] - q.base
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

// eventSize is what an event holds in memory as vreplication counts it: its row
// images. Everything else is small beside them.
func eventSize(event *binlogdatapb.VEvent) int {
	size := 0
	for _, change := range event.GetRowEvent().GetRowChanges() {
		size += len(change.GetBefore().GetValues()) + len(change.GetAfter().GetValues())
	}
	return size + len(event.GetStatement()) + len(event.GetDml())
}
