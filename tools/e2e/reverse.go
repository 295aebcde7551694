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

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// reverse is a split, whose _reverse workflow merges.
var reverse = Scenario{
	Name:  "reverse",
	Shows: "MoveTables splits two shards into four, and the _reverse workflow merges them after SwitchTraffic",
	keyspaces: func() []cluster.Keyspace {
		return []cluster.Keyspace{
			{Name: "src", Shards: shardList(two, 1), Schema: workload.Schema, VSchema: workload.VSchema},
			{Name: "dst", Shards: shardList(four, 1), VSchema: workload.VSchema},
		}
	},
	run: runReverse,
}

// runReverse switches there and back while clients write, and compares both ways.
func runReverse(ctx context.Context, w *world) error {
	// A transaction that lies on one of four shards lies on one of two.
	if err := w.connect(ctx, "src", four, defaultLoad); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	move, err := w.MoveTables(ctx, "src", "dst", "move", []string{workload.Table})
	if err != nil {
		return err
	}
	f := w.flow(move, "src", two, "dst", four)
	if err := f.running(ctx); err != nil {
		return err
	}
	w.printf("SwitchTraffic, while clients write")
	if err := f.SwitchTraffic(ctx); err != nil {
		return err
	}
	back := w.flow(w.Workflow("MoveTables", "src", "move_reverse"), "dst", four, "src", two)
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	if err := back.settle(ctx); err != nil {
		return err
	}
	if err := back.merged(); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	w.printf("ReverseTraffic, while clients write")
	if err := f.ReverseTraffic(ctx); err != nil {
		return err
	}
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	return f.settle(ctx)
}
