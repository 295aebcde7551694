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

// A copy: see doc.go.

package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is a model of a merge, and of the engine that runs its streams.

type (
	// World is a merge: sources, their streams, and the target.
	World struct {
		DB      *Database
		Hub     *mergebackoff.Hub
		Tables  map[string]*TableDef
		Streams []*Stream
		// Prepare, if set, is called with each player before it runs.
		Prepare func(*Player)
		Config  mergebackoff.Config
		// Off has players run without merge backoff.
		Off bool
		// Beat is how often an idle source sends a heartbeat, if at all.
		Beat time.Duration
		// Ended, if set, is called when a run has ended, before Done is closed.
		Ended func(*Stream, error)

		tallied *tally
	}

	// Stream is a source, with the stream that applies it.
	Stream struct {
		*Source
		ID    int32
		World *World

		// Player is the run that is under way, or was the last.
		Player *Player
		// Done is closed when it has ended, with Err.
		Done chan struct{}
		Err  error
		// Sent is how many of Log were sent to the run.
		Sent   int
		cancel context.CancelFunc
		fields map[string]bool
	}
)

// NewWorld returns a merge of so many sources, all of whose streams are stopped.
func NewWorld(streams int, tables ...*TableDef) *World {
	w := &World{
		DB: NewDatabase(tables...), Hub: &mergebackoff.Hub{}, Tables: make(map[string]*TableDef),
		tallied: &tally{counts: make(map[string]int)},
	}
	w.Hub.Sources = w
	for _, table := range tables {
		w.Tables[table.Name] = table
	}
	for i := range streams {
		s := &Stream{Source: newSource(int32(i+1), w), ID: int32(i + 1), World: w}
		w.Streams = append(w.Streams, s)
		w.DB.SetStream(s.ID, StreamRow{State: "Stopped"})
		w.Hub.Put(s.stream(binlogdatapb.VReplicationWorkflowState_Stopped))
	}
	return w
}

func (s *Stream) stream(state binlogdatapb.VReplicationWorkflowState) mergebackoff.Stream {
	return mergebackoff.Stream{
		ID: s.ID, Workflow: "merge", State: state,
		Source: &binlogdatapb.BinlogSource{
			Keyspace: "ks", Shard: fmt.Sprintf("shard%d", s.ID),
			Filter: &binlogdatapb.Filter{Rules: []*binlogdatapb.Rule{{Match: "/.*"}}},
		},
	}
}

// Position is what the source of a stream has committed up to now.
func (w *World) Position(_ context.Context, stream mergebackoff.Stream) (string, error) {
	s := w.Streams[stream.ID-1]
	if last := s.last.Load(); last != nil {
		return *last, nil
	}
	return s.gtid(0), nil
}

// AtLeast reports whether a position has reached another.
func (w *World) AtLeast(position, other string) (bool, error) {
	return position >= other, nil
}

// SetState notes a state in the stream's row and in the hub.
func (s *Stream) SetState(state binlogdatapb.VReplicationWorkflowState) {
	row := s.World.DB.Stream(s.ID)
	row.State = state.String()
	s.World.DB.SetStream(s.ID, row)
	s.World.Hub.Put(s.stream(state))
}

// Events is what the source sends of a transaction.
func (s *Stream) Events(txn *Txn) []*binlogdatapb.VEvent {
	now := time.Now().UnixNano()
	of := func(t binlogdatapb.VEventType) *binlogdatapb.VEvent {
		return &binlogdatapb.VEvent{Type: t, Timestamp: txn.Timestamp, CurrentTime: now}
	}
	gtid := of(binlogdatapb.VEventType_GTID)
	gtid.Gtid = txn.GTID
	if txn.Kind != binlogdatapb.VEventType_COMMIT {
		// The source may look different from here on.
		clear(s.fields)
		return []*binlogdatapb.VEvent{gtid, of(txn.Kind)}
	}
	events := []*binlogdatapb.VEvent{of(binlogdatapb.VEventType_BEGIN)}
	var last *binlogdatapb.VEvent
	for _, row := range txn.Rows {
		if name := row.Table.Name; !s.fields[name] {
			s.fields[name] = true
			field := of(binlogdatapb.VEventType_FIELD)
			field.FieldEvent = &binlogdatapb.FieldEvent{TableName: name}
			events = append(events, field)
			last = nil
		}
		change := s.Images.Change(row.Table, row.Before, row.After)
		if last == nil || last.RowEvent.TableName != row.Table.Name {
			last = of(binlogdatapb.VEventType_ROW)
			last.RowEvent = &binlogdatapb.RowEvent{TableName: row.Table.Name}
			events = append(events, last)
		}
		last.RowEvent.RowChanges = append(last.RowEvent.RowChanges, change)
	}
	return append(events, gtid, of(binlogdatapb.VEventType_COMMIT))
}

// Heartbeat is what an idle source sends.
func Heartbeat() *binlogdatapb.VEvent {
	now := time.Now()
	return &binlogdatapb.VEvent{Type: binlogdatapb.VEventType_HEARTBEAT, Timestamp: now.Unix(), CurrentTime: now.UnixNano()}
}

// Start starts a run of the stream, at its saved position.
func (s *Stream) Start() {
	s.SetState(binlogdatapb.VReplicationWorkflowState_Running)
	s.Restart()
}

// Restart is Start without a change of the state, as after an error.
func (s *Stream) Restart() {
	w := s.World
	s.Player = &Player{DB: w.DB, ID: s.ID, Hub: w.Hub, MaxBatch: 1 << 20}
	if w.Prepare != nil {
		w.Prepare(s.Player)
	}
	config := w.Config
	config.ID, config.Tables = s.ID, slices.Sorted(maps.Keys(w.Tables))
	config.Position = cmp.Or(w.DB.Stream(s.ID).Pos, s.gtid(0))
	if !w.Off {
		s.Player.Backoff = mergebackoff.New(s.Player, w.Hub, config)
	}
	s.Sent = s.Index(w.DB.Stream(s.ID).Pos)
	s.fields = make(map[string]bool)
	s.Done, s.Err = make(chan struct{}), nil
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	player, done := s.Player, s.Done
	go func() {
		err := player.Run(ctx)
		if ctx.Err() != nil && err == nil {
			err = io.EOF
		}
		s.Err = err
		if w.Ended != nil {
			w.Ended(s, err)
		}
		close(done)
	}()
	if w.Beat > 0 {
		go player.beat(w.Beat, done)
	}
}

func (p *Player) beat(every time.Duration, done <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			p.Relay.Send(Heartbeat())
		}
	}
}

// Running reports whether a run is under way.
func (s *Stream) Running() bool {
	if s.Done == nil {
		return false
	}
	select {
	case <-s.Done:
		return false
	default:
		return true
	}
}

// Cancel asks the run to end.
func (s *Stream) Cancel() {
	if s.cancel != nil {
		s.cancel()
	}
}

// Stop stops the stream and waits until it has ended.
func (s *Stream) Stop() {
	s.Cancel()
	if s.Done != nil {
		<-s.Done
	}
	s.SetState(binlogdatapb.VReplicationWorkflowState_Stopped)
}

// Send sends the run all that the source has committed, a transaction an item.
func (s *Stream) Send() {
	for ; s.Running() && s.Sent < len(s.Log); s.Sent++ {
		s.Player.Relay.Send(s.Events(s.Log[s.Sent])...)
	}
}

// Duplicate tells of a row, or a unique value, that two sources have; "" if there
// is none.
func (w *World) Duplicate() string {
	if w.tallied.twice == 0 {
		return ""
	}
	var duplicates []string
	for name, n := range w.tallied.counts {
		if n > 1 {
			duplicates = append(duplicates, name)
		}
	}
	slices.Sort(duplicates)
	return strings.Join(duplicates, ", ")
}

// Union is the rows of all sources.
func (w *World) Union() map[string]Row {
	union := make(map[string]Row)
	for _, s := range w.Streams {
		maps.Copy(union, s.rows)
	}
	return union
}

// Converged tells what is missing for the target to equal the union of the
// sources, with all positions at their ends; "" if nothing is.
func (w *World) Converged() string {
	for _, s := range w.Streams {
		if pos := w.DB.Stream(s.ID).Pos; s.Index(pos) < len(s.Log) && len(s.Log[len(s.Log)-1].Rows) > 0 {
			return fmt.Sprintf("stream %d is at %s of %s", s.ID, pos, s.Log[len(s.Log)-1].GTID)
		}
	}
	return w.DB.Difference(w.Union())
}

// Difference tells the first difference of two sets of rows.
func Difference(want, got map[string]Row) string {
	different := ""
	for key, row := range want {
		if !slices.Equal(row, got[key]) && (different == "" || key < different) {
			different = key
		}
	}
	if different != "" {
		return fmt.Sprintf("%s is %v, not %v", different, got[different], want[different])
	}
	if len(got) == len(want) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == nil {
			return fmt.Sprintf("%s is %v, and should not be", key, got[key])
		}
	}
	return ""
}
