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

// frequency tells whether a stream meets conflicts so often that it does better
// to stand still with its peers, and be swept, than to look for each conflict by
// replaying.
type frequency struct {
	// since counts the units that were committed since the last conflict, but for
	// those that were swept: nobody knows how many of them were in conflict.
	since int
	// average is the smoothed number of units from conflict to conflict.
	average float64
	// conflicts is how many there were.
	conflicts int
}

// frequentConflicts is the average below which conflicts are frequent. To find one
// of them in a backlog takes replays of some multiple of the units in front of it,
// and a rollback in each stream that waits for it. It is so large because a sweep
// costs less than replaying what it sweeps: measured, one conflict
// in a hundred transactions took twice as long with 512.
const frequentConflicts = 4096

func newFrequency() frequency {
	// The first conflict decides, by how many units came before it.
	return frequency{average: frequentConflicts}
}

// committed counts units that were committed.
func (f *frequency) committed(units int) {
	f.since += units
}

// conflict counts a conflict.
func (f *frequency) conflict() {
	f.average = (f.average + float64(f.since)) / 2
	f.since = 0
	f.conflicts++
}

// high reports whether conflicts are frequent.
func (f *frequency) high() bool {
	return f.average < frequentConflicts
}

// oftenInConflict reports whether the stream meets conflicts frequently. One that
// has met none yet takes its peers' word for it.
func (b *Backoff) oftenInConflict() bool {
	if b.frequency.conflicts > 0 {
		return b.frequency.high()
	}
	for _, peer := range b.peers {
		if b.hub.meter(peer.ID).often.Load() {
			return true
		}
	}
	return false
}

// noteFrequency tells the stream's peers whether it meets conflicts frequently.
func (b *Backoff) noteFrequency() {
	if often := b.frequency.conflicts > 0 && b.frequency.high(); often != b.meter.often.Load() {
		b.meter.often.Store(often)
	}
}
