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

// Package demo runs the project's main scenario on a real cluster: a Reshard
// merges two shards into one while clients hand hot unique values between rows
// on different shards.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// Config says what to run.
type Config struct {
	// Cluster has the programs to use. Keyspaces and Out are filled in here.
	Cluster cluster.Options
	// Stock says that the vttablet is unpatched, and expected to fail.
	Stock bool
	// Duration is how long hot values are handed over.
	Duration time.Duration
	// Load says what the clients do.
	workload.Load
	// Faults is how many faults strike the target; it then takes as long as these
	// take, whatever Duration says.
	Faults int
	// Samples, if not empty, is the file that gets the progress as JSON.
	Samples string
	// Out receives the progress.
	Out io.Writer
}

// Names in the demo's cluster.
const (
	keyspace     = "demo"
	workflowName = "merge"
	targetShard  = "-"
)

var sourceShards = []string{"-80", "80-"}

// How long to wait, without any progress, before giving up.
const (
	copyPatience  = 2 * time.Minute
	drainPatience = time.Minute
	vdiffPatience = 5 * time.Minute
)

// resumed is how long clients write to the merged shard after the switch.
const resumed = 2 * time.Second

// run is one run of the demo.
type run struct {
	cfg     *Config
	cluster *cluster.Cluster
	clients *workload.Clients
	monitor *Monitor
	sources []*cluster.Tablet
	target  *cluster.Tablet
	summary Summary
}

// Run runs the demo and ends the cluster again. The summary is valid as far as
// the run came. A nil error means that the target equals the union of the
// sources, that VDiff is clean and that traffic was switched.
func Run(ctx context.Context, cfg *Config) (*Summary, error) {
	r := &run{cfg: cfg, summary: Summary{Seed: cfg.Seed, Stock: cfg.Stock}}
	begin := time.Now()
	err := r.run(ctx)
	r.summary.Duration = time.Since(begin)
	if r.monitor != nil {
		r.summary.Conflicts = r.monitor.Conflicts()
		r.summary.MaxLag = r.monitor.MaxLag()
		if cfg.Samples != "" {
			err = errors.Join(err, r.writeSamples(cfg.Samples))
		}
	}
	if r.clients != nil {
		r.summary.count(&r.clients.Stats)
	}
	if err == nil && !cfg.Stock && r.summary.Conflicts.Met == 0 {
		err = errors.New("vttablet has counted no conflict, so nothing was shown")
	}
	return &r.summary, err
}

// run starts the cluster and whatever has to end with it.
func (r *run) run(ctx context.Context) error {
	opts := r.cfg.Cluster
	opts.Out = r.cfg.Out
	shards := []cluster.Shard{{Name: sourceShards[0]}, {Name: sourceShards[1]}, {Name: targetShard}}
	opts.Keyspaces = []cluster.Keyspace{{Name: keyspace, Shards: shards, Schema: workload.Schema, VSchema: workload.VSchema}}
	r.printf("Starting a Vitess cluster with two source shards and a target shard; this takes about 15 seconds. Seed %d.\n", r.cfg.Seed)
	c, err := cluster.Start(ctx, opts)
	if err != nil {
		return err
	}
	r.cluster = c
	defer func() {
		r.printf("Ending the cluster; its logs are in %s\n", c.LogDir())
		c.Close()
	}()
	for _, name := range sourceShards {
		r.sources = append(r.sources, c.Tablets(keyspace, name)...)
	}
	r.target = c.Tablets(keyspace, targetShard)[0]
	err = r.merge(ctx)
	var died *cluster.StreamError
	if err != nil && ctx.Err() == nil && !(r.cfg.Stock && errors.As(err, &died)) {
		c.KeepData() // for a look at what went wrong
	}
	return err
}

// printf reports to the user.
func (r *run) printf(format string, args ...any) {
	fmt.Fprintf(r.cfg.Out, format, args...)
}

// merge runs the scenario with a monitor beside it, whose finding that a
// stream has died ends the scenario at once.
func (r *run) merge(ctx context.Context) error {
	shards, err := workload.NewShards(sourceShards...)
	if err != nil {
		return err
	}
	db, err := r.cluster.Gate(keyspace)
	if err != nil {
		return err
	}
	defer db.Close()
	r.clients = workload.NewClients(db, r.cfg.Load, shards)
	r.monitor = NewMonitor(r.target, workflowName, &r.clients.Stats, r.printf)

	r.printf("Creating the rows that are there from the start.\n")
	if err := r.clients.Prepare(ctx); err != nil {
		return err
	}
	watched, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.monitor.Run(watched); err != nil {
			cancel(err)
		}
	}()
	err = r.replicate(watched)
	if died := new(cluster.StreamError); errors.As(context.Cause(watched), &died) {
		err = died
	}
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, r.autopsy(ctx))
	}
	cancel(nil)
	<-ended
	if err != nil {
		return err
	}
	return r.switchOver(ctx)
}

// replicate runs the workflow from its start until VDiff has judged it.
func (r *run) replicate(ctx context.Context) error {
	r.clients.Start(ctx, r.clients.Light())
	err := r.underLoad(ctx)
	if err := errors.Join(err, r.clients.Halt()); err != nil {
		return err
	}
	r.printf("The writes have stopped; waiting for both streams to catch up.\n")
	begin := time.Now()
	if err := r.monitor.Drain(ctx, r.sources, drainPatience); err != nil {
		return err
	}
	r.summary.Drain = time.Since(begin)
	r.monitor.Note(ctx)
	r.printf("Both streams have caught up, %.1fs after the last write; comparing with VDiff.\n", r.summary.Drain.Seconds())
	diffCtx, cancel := context.WithTimeout(ctx, vdiffPatience)
	defer cancel()
	diff, err := r.cluster.Workflow("Reshard", keyspace, workflowName).VDiff(diffCtx)
	if err != nil {
		return err
	}
	r.summary.VDiff = diff.String()
	r.printf("VDiff: %s\n", diff)
	if !diff.Clean() {
		return errors.New("VDiff found differences")
	}
	return nil
}

// underLoad creates the workflow under light load, and runs the hot load when
// the copy phase is over.
func (r *run) underLoad(ctx context.Context) error {
	r.printf("Reshard merges %v into %s; the copy phase runs under light load.\n", sourceShards, targetShard)
	if _, err := r.cluster.Reshard(ctx, keyspace, workflowName, sourceShards, []string{targetShard}); err != nil {
		return err
	}
	running := func() bool { return r.monitor.running(len(sourceShards)) }
	if err := r.monitor.until(ctx, copyPatience, "the copy phase to end", running); err != nil {
		return err
	}
	r.printf("Both streams are running. For %s, %d clients now hand %d unique values between rows on different shards.\n",
		r.cfg.Duration, min(r.cfg.Clients, r.cfg.HotValues), r.cfg.HotValues)
	r.monitor.Begin()
	r.clients.Start(ctx, r.clients.Hot())
	if r.cfg.Faults > 0 {
		return r.inject(ctx)
	}
	return r.pause(ctx, r.cfg.Duration)
}

// switchOver sends the traffic to the target, compares while nobody writes, and
// lets the clients go on.
func (r *run) switchOver(ctx context.Context) error {
	r.printf("Switching the traffic to shard %s.\n", targetShard)
	begin := time.Now()
	workflow := r.cluster.Workflow("Reshard", keyspace, workflowName)
	if err := workflow.SwitchTraffic(ctx); err != nil {
		r.summary.Switch = "failed"
		return err
	}
	r.summary.Switch = fmt.Sprintf("done in %.1fs", time.Since(begin).Seconds())
	if err := r.compare(ctx); err != nil {
		return err
	}
	r.printf("The clients go on, on the merged shard.\n")
	r.clients.Start(ctx, r.clients.All())
	timer := time.NewTimer(resumed)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	if err := errors.Join(r.clients.Halt(), context.Cause(ctx)); err != nil {
		return err
	}
	return r.checkClients(ctx)
}

// checkClients compares the target with what the clients wrote to it after the
// switch.
func (r *run) checkClients(ctx context.Context) error {
	known, err := r.clients.Rows()
	if err != nil {
		return err
	}
	have, err := cluster.ReadUnion(ctx, []*cluster.Tablet{r.target})
	if err != nil {
		return err
	}
	if d := workload.Diff(known, have); !d.Equal() {
		return fmt.Errorf("after the switch, the target is not as the clients left it: %s", d)
	}
	return nil
}

// compare compares the target with the union of the sources, row for row, and
// both with what the clients know.
func (r *run) compare(ctx context.Context) error {
	known, err := r.clients.Rows()
	if err != nil {
		return err
	}
	want, have, err := r.read(ctx)
	if err != nil {
		return err
	}
	if d := workload.Diff(known, want); !d.Equal() {
		return fmt.Errorf("the sources are not as the clients left them: %s", d)
	}
	d := workload.Diff(want, have)
	r.summary.Target, r.summary.Equal = d.String(), d.Equal()
	r.printf("Target and union of the sources: %s\n", d)
	if !d.Equal() {
		return errors.New("the target differs from the union of the sources")
	}
	return nil
}

// autopsy says what a workflow that died or got stuck has left undone.
func (r *run) autopsy(ctx context.Context) error {
	want, have, err := r.read(ctx)
	if err != nil {
		return err
	}
	d := workload.Diff(want, have)
	r.summary.Target, r.summary.Equal = d.String(), d.Equal()
	return nil
}

// read reads the union of the sources, and the target.
func (r *run) read(ctx context.Context) (want, have map[int64]workload.Row, err error) {
	if want, err = cluster.ReadUnion(ctx, r.sources); err != nil {
		return nil, nil, err
	}
	have, err = cluster.ReadUnion(ctx, []*cluster.Tablet{r.target})
	return want, have, err
}
