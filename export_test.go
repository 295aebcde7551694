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

package mergebackoff

import (
	"context"
	"errors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// Fold commits the net effect of a stream's first events in one target transaction,
// as an attempt of the ladder does, and returns how many source transactions that were.
// refused says why the one behind them cannot be folded.
func Fold(ctx context.Context, player Player, events []*binlogdatapb.VEvent) (units int, refused string, err error) {
	w := newWindow(player)
	if err := w.extend(events); err != nil {
		return 0, "", err
	}
	s := new(seats)
	leader := &seat{id: 1, player: player, window: w, meter: new(meter)}
	s.sit(leader)
	j := newJoint(s, leader)
	units = j.foldable(j.leader, len(w.units))
	if units < len(w.units) {
		refused = w.units[units].refuse
	}
	if units == 0 {
		return 0, refused, nil
	}
	if err := j.extend(j.leader, units); err != nil {
		return 0, err.Error(), nil
	}
	// What a pack has written in part is written row by row by the next attempt.
	for range 2 {
		c, err := j.try(ctx)
		if c == nil || err != nil {
			return units, refused, err
		}
		if !c.partly {
			return 0, "", c.err
		}
	}
	return 0, "", errors.New("an attempt row by row was made in part")
}
