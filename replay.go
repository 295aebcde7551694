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
	"context"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// replay applies the first units in one target transaction. A unit by itself is
// applied statement by statement, so that the conflict comes at its row; several
// are applied in vplayer's own way.
func (r *resolution) replay(ctx context.Context, units int) error {
	end := r.queue.end(units)
	mode := r.batching.restore
	if units == 1 {
		mode = r.batching.isolate
	}
	if err := mode(); err != nil {
		return err
	}
	lastCommit := r.queue.lastCommit(end)
	for i, event := range r.queue.events[:end] {
		mustSave := false
		switch event.Type {
		case binlogdatapb.VEventType_HEARTBEAT:
			// It belongs to no transaction, and its time has passed.
			continue
		case binlogdatapb.VEventType_COMMIT:
			mustSave = r.player.StopReached()
			if i != lastCommit && !mustSave {
				continue
			}
		}
		if err := r.player.Apply(ctx, event, mustSave); err != nil {
			return err
		}
	}
	if lastCommit < 0 {
		// This was what has arrived of the last transaction.
		return nil
	}
	r.commit(end)
	r.hub.announce()
	return nil
}

// commit lets go of the first events, which are committed.
func (r *resolution) commit(events int) {
	r.noteCommitted(r.queue.events[:events])
	r.queue.commit(events)
	if r.window != nil && !r.window.consume(events) {
		r.window = nil
	}
	r.player.Mark()
}

// noteCommitted notes how far the stream has got by events that are committed.
func (r *resolution) noteCommitted(events []*binlogdatapb.VEvent) {
	var ns int64
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type == binlogdatapb.VEventType_COMMIT {
			r.applied = events[i].Timestamp
		}
		ns = max(ns, r.sourceTime(events[i]))
		if events[i].Type == binlogdatapb.VEventType_GTID {
			r.position = &events[i].Gtid
			break
		}
	}
	r.meter.set(ns, r.position)
}
