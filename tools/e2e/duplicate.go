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
	"strings"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// duplicate is a Reshard whose sources really hold one value twice.
var duplicate = Scenario{
	Name:      "duplicate",
	Shows:     "a genuine duplicate ends a Reshard in Error; repaired on its source, the workflow goes on where it stopped",
	keyspaces: mergeKeyspace,
	run:       runDuplicate,
}

// mergeKeyspace has two shards to be merged into one.
func mergeKeyspace() []cluster.Keyspace {
	shards := append(shardList(two, 1), shardList(one, 1)...)
	return []cluster.Keyspace{{Name: "ks", Shards: shards, Schema: workload.Schema, VSchema: workload.VSchema}}
}

// merging starts the Reshard of mergeKeyspace, with all clients writing.
func merging(ctx context.Context, w *world) (*flow, error) {
	if err := w.connect(ctx, "ks", two, defaultLoad); err != nil {
		return nil, err
	}
	w.clients.Start(ctx, w.clients.All())
	reshard, err := w.Reshard(ctx, "ks", "merge", two, one)
	if err != nil {
		return nil, err
	}
	f := w.flow(reshard, "ks", two, "ks", one)
	return f, f.running(ctx)
}

// outsider returns the first row id from the given one on that lies on a shard of
// two. Ids this high are no client's.
func outsider(shard int, from int64) int64 {
	shards, err := workload.NewShards(two...)
	if err != nil {
		panic(err)
	}
	for shards.Of(from) != shard {
		from++
	}
	return from
}

// runDuplicate gives one value to rows on both shards, while clients hand over others.
func runDuplicate(ctx context.Context, w *world) error {
	f, err := merging(ctx, w)
	if err != nil {
		return err
	}
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	f.mu.Lock()
	f.mayFail = true
	f.mu.Unlock()
	first, second := outsider(0, 1_000_000), outsider(1, 1_000_000)
	const insert = "insert into account (id, email, val) values (?, 'twice', ?)"
	if err := w.exec(ctx, insert, first, "first"); err != nil {
		return err
	}
	if err := w.await(ctx, "the first row arrives", f.has(first, "twice")); err != nil {
		return err
	}
	if err := w.exec(ctx, insert, second, "second"); err != nil {
		return err
	}
	w.printf("rows %d and %d hold the value 'twice' on different shards", first, second)
	if err := w.await(ctx, "the workflow ends in Error", f.genuine); err != nil {
		return err
	}
	if err := f.has(first, "twice")(ctx); err != nil {
		return fmt.Errorf("the row that stood is not there any more: %w", err)
	}
	return f.repair(ctx, first, second)
}

// genuine demands that a stream has ended, and names the duplicate.
func (f *flow) genuine(ctx context.Context) error {
	err := f.each(ctx, func(_ *cluster.Tablet, s cluster.Stream) error {
		if s.State != "Error" {
			return nil
		}
		if !strings.Contains(s.Message, "it is a genuine duplicate") || !strings.Contains(s.Message, "'twice'") {
			return fmt.Errorf("the stream has ended for another reason: %s", s.Message)
		}
		f.world.printf("stream %d from %s is in state Error: %s", s.ID, s.SourceShard, s.Message)
		return errBlocked
	})
	switch {
	case errors.Is(err, errBlocked):
		return nil
	case err == nil:
		return errors.New("no stream has ended")
	}
	return err
}

// has checks that a row is on the target with an email.
func (f *flow) has(id int64, email string) func(context.Context) error {
	return func(ctx context.Context) error {
		targets, err := f.world.primaries(ctx, f.to, f.toShards)
		if err != nil {
			return err
		}
		rows, err := cluster.ReadUnion(ctx, targets)
		if err == nil && rows[id].Email != email {
			err = fmt.Errorf("row %d is %v", id, rows[id])
		}
		return err
	}
}

// repair does what the operator's guide says: one row gets another value on its
// source, and the workflow is started again.
func (f *flow) repair(ctx context.Context, first, second int64) error {
	w := f.world
	w.printf("row %d gets another value, and the workflow is started again", second)
	if err := w.exec(ctx, "update account set email = 'once' where id = ?", second); err != nil {
		return err
	}
	if err := f.Workflow.Run(ctx); err != nil {
		return err
	}
	if err := w.await(ctx, "the repaired row arrives", f.has(second, "once")); err != nil {
		return err
	}
	f.mu.Lock()
	f.mayFail = false
	f.mu.Unlock()
	if err := f.moves(ctx); err != nil {
		return err
	}
	// The clients do not know these rows, and the comparison asks them.
	for _, id := range []int64{first, second} {
		if err := w.exec(ctx, "delete from account where id = ?", id); err != nil {
			return err
		}
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	return f.merged()
}
