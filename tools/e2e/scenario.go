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
	"io"
	"path/filepath"
	"slices"
	"time"

	"mergebackoff/tools/cluster"
)

// Config says what to run.
type Config struct {
	// Cluster has the programs to use. Keyspaces, flags and Out are filled in here;
	// LogDir gets a directory for each scenario.
	Cluster cluster.Options
	// Only names the scenarios to run, in any order; empty is all.
	Only []string
	// Seed determines the histories of all clients, but not their interleaving.
	Seed uint64
	// Duration is how long clients hand hot values over, each time.
	Duration time.Duration
	// Out receives the progress.
	Out io.Writer
}

// Scenario is one thing that can happen to a merge workflow.
type Scenario struct {
	Name string
	// Shows says what a reader learns from its success.
	Shows string

	keyspaces              func() []cluster.Keyspace
	tabletFlags, gateFlags []string
	run                    func(ctx context.Context, w *world) error
}

// Scenarios lists all, in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{lookup, reverse, shardByShard, operations, duplicate, copying}
}

// patience bounds a scenario, the start of its cluster included.
const patience = 8 * time.Minute

// Result is what became of a scenario.
type Result struct {
	Scenario  Scenario
	Err       error
	Duration  time.Duration
	Rows      int               // compared at the end
	Sent      int64             // statements
	Conflicts cluster.Conflicts // over all its workflows
}

// Run runs the chosen scenarios, one after the other, until ctx is done. An error
// says that there is no such scenario, or why ctx is done.
func Run(ctx context.Context, cfg *Config) ([]Result, error) {
	for _, name := range cfg.Only {
		if !slices.ContainsFunc(Scenarios(), func(s Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("there is no scenario %q; -list prints them all", name)
		}
	}
	var results []Result
	for _, scenario := range Scenarios() {
		if len(cfg.Only) > 0 && !slices.Contains(cfg.Only, scenario.Name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(cfg.Out, "\n== %s: %s. Seed %d.\n", scenario.Name, scenario.Shows, cfg.Seed)
		result := runOne(ctx, cfg, scenario)
		if result.Err != nil {
			fmt.Fprintf(cfg.Out, "FAIL %s: %v\n", scenario.Name, result.Err)
		}
		results = append(results, result)
	}
	return results, context.Cause(ctx)
}

// runOne starts a cluster, runs a scenario on it and ends the cluster.
func runOne(ctx context.Context, cfg *Config, scenario Scenario) (result Result) {
	begin := time.Now()
	result.Scenario = scenario
	defer func() { result.Duration = time.Since(begin) }()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %s", patience))
	defer cancel()

	opts := cfg.Cluster
	opts.Out = cfg.Out
	opts.LogDir = filepath.Join(cfg.Cluster.LogDir, scenario.Name)
	opts.Keyspaces = scenario.keyspaces()
	opts.TabletFlags = append(opts.TabletFlags, scenario.tabletFlags...)
	opts.GateFlags = append(opts.GateFlags, scenario.gateFlags...)
	c, err := cluster.Start(ctx, opts)
	if err != nil {
		result.Err = err
		return result
	}
	defer c.Close()
	w := &world{Cluster: c, cfg: cfg}
	result.Err = w.watched(ctx, scenario.run)
	if result.Err != nil {
		fmt.Fprintf(cfg.Out, "The logs of the failed scenario are in %s\n", opts.LogDir)
		if ctx.Err() == nil {
			c.KeepData()
		}
	}
	result.Rows, result.Conflicts = w.rows, w.conflicts()
	if w.clients != nil {
		result.Sent = w.clients.Stats.Statements.Load()
	}
	return result
}
