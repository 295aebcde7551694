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

package sim

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// ended does what the controller does with the error that a run ended with, and
// what an operator does about it.
func (r *run) ended(i int, err error) {
	r.trace("stream %d ended: %v", i, err)
	sr, s := r.runs[i], r.Streams[i]
	var sqlErr *sqlerror.SQLError
	isSQL := err != nil && errors.As(sqlerror.NewSQLErrorFromError(err), &sqlErr)
	lost := err != nil && strings.Contains(err.Error(), "Lost connection")
	switch {
	case (lost || errors.Is(err, io.EOF)) && r.stoppedItself(i):
		sr.restart = time.Now().Add(controllerDelay)
		r.reachedStop(i)
	case errors.Is(err, io.EOF), errors.Is(err, context.Canceled), err == nil:
		r.fail("stream %d ended without a reason: %v", i, err)
	case isSQL && sqlErr.Number() == sqlerror.ERDupEntry:
		r.endedInError(i, err)
	case lost, strings.Contains(err.Error(), "is read again"),
		isSQL && (sqlErr.Number() == sqlerror.ERLockDeadlock || sqlErr.Number() == sqlerror.ERLockWaitTimeout):
		sr.restart = time.Now().Add(controllerDelay)
	default:
		r.fail("stream %d of %d ended: %v", i, len(r.Streams), err)
	}
	if sr.errored {
		s.SetState(binlogdatapb.VReplicationWorkflowState_Error)
	}
}

// stoppedItself reports whether a stream has written into its row that it stopped.
func (r *run) stoppedItself(i int) bool {
	return r.DB.Stream(r.Streams[i].ID).State == "Stopped"
}

// reachedStop looks at a stream that has stopped by itself: it has done what is in
// front of the stop position or the DDL, and nothing else.
func (r *run) reachedStop(i int) {
	sr, s := r.runs[i], r.Streams[i]
	pos := r.DB.Stream(s.ID).Pos
	switch n := s.Index(pos); {
	case sr.player.StopPos != "" && pos == sr.player.StopPos:
		sr.stopPos = ""
	case sr.onDDL == binlogdatapb.OnDDLAction_STOP && n > 0 && s.Log[n-1].Kind == binlogdatapb.VEventType_DDL:
	default:
		r.fail("stream %d stopped at %s, and not where it was to (%q)", i, pos, sr.player.StopPos)
	}
}

// endedInError is for a stream that ended with a duplicate key: two sources must
// hold it, or a limit, which an operator can lift, keep it from being resolved.
func (r *run) endedInError(i int, err error) {
	sr := r.runs[i]
	sr.errored = true
	r.result.Errors++
	if r.remedy(i, err.Error()) {
		r.result.Remedied++
		sr.restart = time.Now().Add(controllerDelay)
		return
	}
	for entry := range r.twice {
		if !strings.Contains(err.Error(), entry) {
			continue
		}
		if sr.started = r.settling(); sr.started {
			// It was repaired, later than the stream could wait for.
			sr.restart = time.Now().Add(controllerDelay)
		}
		return
	}
	r.fail("stream %d ends in Error: %v", i, err)
}

// remedy lifts the limits that an error names, and reports whether the history has
// such.
func (r *run) remedy(i int, message string) (limited bool) {
	sr, h := r.runs[i], r.history
	lift := func(names string, had bool, how func()) {
		if had && strings.Contains(message, names) {
			limited = true
			how()
		}
	}
	before := r.limits()
	defer func() {
		if r.limits() < before {
			r.lifted = time.Now()
		}
	}()
	const behind = "nothing could be taken in from behind"
	lift(behind+" the stop position", h.has(StopAt), func() { sr.stopPos = "" })
	lift(behind+" a DDL", h.OnDDL != binlogdatapb.OnDDLAction_IGNORE, func() { sr.onDDL = binlogdatapb.OnDDLAction_IGNORE })
	for _, text := range []string{"too large to be reordered", "could look no further ahead", "has not arrived whole"} {
		lift(text, h.Retained > 0, func() { sr.retained = 0 })
	}
	for _, table := range r.Tables {
		why := r.refused[table.Name]
		lift("could not be reordered: table "+table.Name+": "+why, why != "", func() { table.Refuse = "" })
	}
	lift("could not be taken in", h.limited(), func() { r.liftAll() })
	return limited
}

// limits are how many limits are in force.
func (r *run) limits() (n int) {
	count := func(limited bool) {
		if limited {
			n++
		}
	}
	for _, table := range r.Tables {
		count(r.refused[table.Name] != "" && table.Refuse != "")
	}
	for _, sr := range r.runs {
		count(sr.stopPos != "")
		count(sr.onDDL != binlogdatapb.OnDDLAction_IGNORE)
		count(sr.retained > 0)
	}
	return n
}

// lift has an operator lift the limits at which streams stand for ever without an
// error, once: each has the other's way on behind a stop position, say.
func (r *run) lift() bool {
	if r.result.Lifted || !r.liftAll() {
		return false
	}
	r.trace("all limits are lifted")
	r.result.Lifted = true
	r.lifted = time.Now()
	return true
}

// liftAll lifts the limits of all streams, and starts those again that run.
func (r *run) liftAll() (lifted bool) {
	for _, table := range r.Tables {
		lifted = lifted || r.refused[table.Name] != ""
		table.Refuse = ""
	}
	for i, s := range r.Streams {
		sr := r.runs[i]
		if sr.stopPos != "" || sr.onDDL != binlogdatapb.OnDDLAction_IGNORE || sr.retained > 0 {
			lifted = true
		}
		sr.onDDL, sr.retained = binlogdatapb.OnDDLAction_IGNORE, 0
		if s.Running() {
			r.stop(i)
			r.start(i)
		}
	}
	return lifted
}
