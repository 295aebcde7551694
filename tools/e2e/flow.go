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
)

// flow is a workflow, with the shards that it reads and those that it writes.
type flow struct {
	*cluster.Workflow
	world    *world
	from, to string // keyspaces
	// fromShards and toShards are the shards of the two.
	fromShards, toShards []string

	mu     sync.Mutex
	counts map[string]*counts // by the alias of the tablet
	// mayFail says that a stream in state Error is part of the scenario.
	mayFail bool
}

// flow has a workflow watched from now on.
func (w *world) flow(workflow *cluster.Workflow, from string, fromShards []string, to string, toShards []string) *flow {
	f := &flow{
		Workflow: workflow, world: w, from: from, to: to, fromShards: fromShards, toShards: toShards,
		counts: make(map[string]*counts),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flows = append(w.flows, f)
	return f
}

// streams reads the streams of all target shards.
func (f *flow) streams(ctx context.Context) (map[*cluster.Tablet][]cluster.Stream, error) {
	targets, err := f.world.primaries(ctx, f.to, f.toShards)
	if err != nil {
		return nil, err
	}
	all := make(map[*cluster.Tablet][]cluster.Stream)
	for _, target := range targets {
		if all[target], err = target.Streams(ctx, f.Name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// each checks every stream; a target shard without a stream is not what it should be.
func (f *flow) each(ctx context.Context, check func(*cluster.Tablet, cluster.Stream) error) error {
	all, err := f.streams(ctx)
	if err != nil {
		return err
	}
	for target, streams := range all {
		if len(streams) == 0 {
			return fmt.Errorf("shard %s has no stream", target.Shard)
		}
		for _, stream := range streams {
			if err := check(target, stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// running waits until every stream is past the copy phase and runs.
func (f *flow) running(ctx context.Context) error {
	return f.world.await(ctx, "all streams of "+f.Name+" run", func(ctx context.Context) error {
		return f.each(ctx, func(_ *cluster.Tablet, s cluster.Stream) error {
			// A new stream says Running as well, before it copies.
			if s.State != "Running" || s.Applied.IsZero() {
				return fmt.Errorf("stream %d from %s is in state %s: %s", s.ID, s.SourceShard, s.State, s.Message)
			}
			return nil
		})
	})
}

// moves waits until every stream has saved another position than now.
func (f *flow) moves(ctx context.Context) error {
	before := make(map[int]string)
	note := func(_ *cluster.Tablet, s cluster.Stream) error {
		before[s.ID] = s.Position
		return nil
	}
	if err := f.each(ctx, note); err != nil {
		return err
	}
	return f.world.await(ctx, "each stream of "+f.Name+" moves", func(ctx context.Context) error {
		return f.each(ctx, func(_ *cluster.Tablet, s cluster.Stream) error {
			if s.State != "Running" || s.Position == before[s.ID] {
				return fmt.Errorf("stream %d from %s has not moved: %s %s", s.ID, s.SourceShard, s.State, s.Message)
			}
			return nil
		})
	})
}

// drain waits until every stream has applied what its source has now.
func (f *flow) drain(ctx context.Context) error {
	sources, err := f.world.primaries(ctx, f.from, f.fromShards)
	if err != nil {
		return err
	}
	goal := make(map[string]string)
	for _, source := range sources {
		if goal[source.Shard], err = source.Executed(ctx); err != nil {
			return err
		}
	}
	begin := time.Now()
	err = f.world.await(ctx, "the streams of "+f.Name+" catch up", func(ctx context.Context) error {
		return f.each(ctx, func(target *cluster.Tablet, s cluster.Stream) error {
			reached, err := target.Contains(ctx, s.Position, goal[s.SourceShard])
			if err == nil && !reached {
				err = fmt.Errorf("stream %d from %s is at %s of %s: %s %s", s.ID, s.SourceShard, s.Position, goal[s.SourceShard], s.State, s.Message)
			}
			return err
		})
	})
	if err == nil {
		f.world.printf("%s: caught up after %.1fs", f.Name, time.Since(begin).Seconds())
	}
	return err
}

// settle halts the clients, waits for the streams, and compares the target with the
// sources and both with the clients, row for row and by VDiff.
func (f *flow) settle(ctx context.Context) error {
	if err := f.world.clients.Halt(); err != nil {
		return err
	}
	if err := f.drain(ctx); err != nil {
		return err
	}
	if err := f.world.equal(ctx, f.from, f.fromShards, f.to, f.toShards); err != nil {
		return err
	}
	return f.vdiff(ctx)
}

// vdiff demands that VDiff finds no difference.
func (f *flow) vdiff(ctx context.Context) error {
	diff, err := f.VDiff(ctx)
	if err != nil {
		return err
	}
	f.world.printf("%s: VDiff %s", f.Name, diff)
	if !diff.Clean() {
		return fmt.Errorf("%s: VDiff: %s", f.Name, diff)
	}
	return nil
}

// merged demands that the workflow has met conflicts.
func (f *flow) merged() error {
	total := f.total()
	f.world.printf("%s: conflicts %s", f.Name, total)
	if total.Met == 0 {
		return errors.New(f.Name + " has met no conflict, so nothing was shown")
	}
	return nil
}
