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

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// operations is what an operator does to a workflow, done while a stream is blocked.
var operations = Scenario{
	Name:  "operations",
	Shows: "stop and start, the tablet throttler, and a planned reparent of the target, each while a stream is blocked",
	// Two keyspaces: what vtctld does to a target's needs nothing of a source's.
	keyspaces: func() []cluster.Keyspace {
		return []cluster.Keyspace{
			{Name: "src", Shards: shardList(two, 1), Schema: workload.Schema, VSchema: workload.VSchema},
			{Name: "dst", Shards: shardList(one, 2), VSchema: workload.VSchema},
		}
	},
	run: runOperations,
}

// obeyedWithin is how long an operation may take that a blocked stream must not
// hold up.
const obeyedWithin = 15 * time.Second

// runOperations blocks a stream for each operation, under the load of all clients.
func runOperations(ctx context.Context, w *world) error {
	if err := w.connect(ctx, "src", two, defaultLoad); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	move, err := w.MoveTables(ctx, "src", "dst", "merge", []string{workload.Table})
	if err != nil {
		return err
	}
	f := w.flow(move, "src", two, "dst", one)
	if err := f.running(ctx); err != nil {
		return err
	}
	for i, op := range []struct {
		name string
		do   func(context.Context, *flow) error
	}{
		{"stop, and start", stopAndStart},
		{"throttler on, vplayer held back, and let go", throttle},
		{"planned reparent of the target", reparent},
		{"planned reparent back", reparent},
	} {
		w.printf("%s", op.name)
		if err := f.whileBlocked(ctx, i, op.do); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		if err := f.moves(ctx); err != nil {
			return fmt.Errorf("after %s: %w", op.name, err)
		}
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	return f.merged()
}

// whileBlocked has a stream be blocked for as long as do runs. The first source's
// vttablet stands still, so that what is released on its MySQL server is not streamed,
// while the other stream wants it.
func (f *flow) whileBlocked(ctx context.Context, turn int, do func(context.Context, *flow) error) error {
	w := f.world
	// Among many conflicts a stream is held back before it meets another.
	if err := w.clients.Halt(); err != nil {
		return err
	}
	if err := f.drain(ctx); err != nil {
		return err
	}
	from := outsider(0, int64(2_000_000+10_000*turn))
	to := outsider(1, from)
	value := fmt.Sprintf("blocked-%d", turn)
	const insert = "insert into account (id, email, val) values (?, ?, '')"
	if err := w.exec(ctx, insert, from, value); err != nil {
		return err
	}
	if err := w.await(ctx, "the value arrives", f.has(from, value)); err != nil {
		return err
	}
	source, err := w.Primary(ctx, f.from, f.fromShards[0])
	if err != nil {
		return err
	}
	if err := source.Pause(); err != nil {
		return err
	}
	resume := sync.OnceValue(source.Resume)
	defer func() { _ = resume() }() // what comes first says more
	if err := release(ctx, source, from); err != nil {
		return err
	}
	if err := w.exec(ctx, insert, to, value); err != nil {
		return err
	}
	if err := w.await(ctx, "a stream is blocked", f.blocked); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	if err := do(ctx, f); err != nil {
		return err
	}
	if err := resume(); err != nil {
		return err
	}
	if err := w.await(ctx, "the blocked row arrives", f.has(to, value)); err != nil {
		return err
	}
	// The clients do not know these rows, and the comparison asks them.
	return errors.Join(w.exec(ctx, "delete from account where id = ?", from), w.exec(ctx, "delete from account where id = ?", to))
}

// release has a row of a source give its value up, past vtgate and vttablet.
func release(ctx context.Context, source *cluster.Tablet, id int64) error {
	db, err := source.MySQL.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "update account set email = null where id = ?", id)
	return err
}

// within demands that an operation ends soon, though a stream is blocked.
func within(name string, do func() error) error {
	begin := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if took := time.Since(begin); took > obeyedWithin {
		return fmt.Errorf("%s took %.1fs", name, took.Seconds())
	}
	return nil
}

// stopAndStart stops the workflow and starts it again.
func stopAndStart(ctx context.Context, f *flow) error {
	if err := within("stop", func() error { return f.Stop(ctx) }); err != nil {
		return err
	}
	err := f.each(ctx, func(_ *cluster.Tablet, s cluster.Stream) error {
		if s.State != "Stopped" {
			return fmt.Errorf("stream %d is in state %s: %s", s.ID, s.State, s.Message)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return within("start", func() error { return f.Workflow.Run(ctx) })
}

// throttle holds the streams back, sees that none of them moves, and lets them go.
func throttle(ctx context.Context, f *flow) error {
	w := f.world
	if err := w.Throttler(ctx, f.to, true, 0); err != nil {
		return err
	}
	if err := w.ThrottleApp(ctx, f.to, "vreplication", 1); err != nil {
		return err
	}
	if err := w.await(ctx, "the streams say that they are held back", f.throttled); err != nil {
		return err
	}
	if err := w.ThrottleApp(ctx, f.to, "vreplication", 0); err != nil {
		return err
	}
	return w.Throttler(ctx, f.to, false, 0)
}

// throttled demands that the throttler has lately held back a stream that is blocked.
func (f *flow) throttled(ctx context.Context) error {
	targets, err := f.world.primaries(ctx, f.to, f.toShards)
	if err != nil {
		return err
	}
	db, err := targets[0].MySQL.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	var streams int
	err = db.QueryRowContext(ctx,
		"select count(*) from _vt.vreplication where workflow = ? and time_throttled > unix_timestamp() - 10 and message like 'merge backoff: waiting%'",
		f.Name).Scan(&streams)
	if err == nil && streams == 0 {
		err = errors.New("no blocked stream is throttled")
	}
	return err
}

// reparent makes the target shard's other tablet its primary.
func reparent(ctx context.Context, f *flow) error {
	w := f.world
	shard := f.toShards[0]
	now, err := w.Primary(ctx, f.to, shard)
	if err != nil {
		return err
	}
	for _, tablet := range w.Tablets(f.to, shard) {
		if tablet.Alias != now.Alias {
			return within("reparent to "+tablet.Alias, func() error { return w.PlannedReparent(ctx, tablet) })
		}
	}
	return errors.New("the target has no other tablet")
}
