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
	"fmt"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// shardByShard is MoveTables with --source-shards, which writes the target shard of
// the same name: a workflow of one stream, that has no peer.
var shardByShard = Scenario{
	Name:  "shards",
	Shows: "MoveTables shard by shard, each its own workflow: values go between moved and unmoved shards, and streams without peers do as on stock",
	keyspaces: func() []cluster.Keyspace {
		return []cluster.Keyspace{
			{Name: "src", Shards: shardList(two, 1), Schema: workload.Schema, VSchema: workload.VSchema},
			{Name: "dst", Shards: shardList(two, 1), VSchema: workload.VSchema},
		}
	},
	gateFlags: []string{"--enable-partial-keyspace-migration"},
	run:       runShards,
}

// runShards moves and switches one shard, then the other, while clients hand values
// over between all of them.
func runShards(ctx context.Context, w *world) error {
	if err := w.connect(ctx, "src", two, defaultLoad); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	var moves, backs []*flow
	for i, shard := range two {
		move, err := w.MoveTables(ctx, "src", "dst", fmt.Sprintf("move%d", i), []string{workload.Table}, "--source-shards="+shard)
		if err != nil {
			return err
		}
		f := w.flow(move, "src", []string{shard}, "dst", []string{shard})
		if err := f.running(ctx); err != nil {
			return err
		}
		moves = append(moves, f)
	}
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	if err := settleAll(ctx, w, moves, "src", "dst"); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	for i, f := range moves {
		w.printf("SwitchTraffic of shard %s, while clients write", two[i])
		if err := f.SwitchTraffic(ctx); err != nil {
			return err
		}
		back := w.Workflow("MoveTables", "src", f.Name+"_reverse")
		backs = append(backs, w.flow(back, "dst", []string{two[i]}, "src", []string{two[i]}))
		if err := w.spend(ctx, w.cfg.Duration/2); err != nil {
			return err
		}
	}
	if err := settleAll(ctx, w, backs, "dst", "src"); err != nil {
		return err
	}
	if met := w.conflicts(); met.Met > 0 {
		return fmt.Errorf("streams without peers have met conflicts: %s", met)
	}
	return nil
}

// settleAll is settle for workflows that together fill a keyspace.
func settleAll(ctx context.Context, w *world, flows []*flow, from, to string) error {
	if err := w.clients.Halt(); err != nil {
		return err
	}
	for _, f := range flows {
		if err := f.drain(ctx); err != nil {
			return err
		}
	}
	if err := w.equal(ctx, from, two, to, two); err != nil {
		return err
	}
	for _, f := range flows {
		if err := f.vdiff(ctx); err != nil {
			return err
		}
	}
	return nil
}
