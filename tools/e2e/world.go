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
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// world is what a scenario acts on: its cluster, its clients, and the workflows
// that it has started.
type world struct {
	*cluster.Cluster
	cfg     *Config
	gate    *sql.DB
	clients *workload.Clients
	rows    int // that the last comparison had

	mu    sync.Mutex
	flows []*flow
}

// printf reports to the user.
func (w *world) printf(format string, args ...any) {
	fmt.Fprintf(w.cfg.Out, "  "+format+"\n", args...)
}

// connect makes clients that write to a keyspace, in transactions that lie on one
// of the shards, and creates their rows.
func (w *world) connect(ctx context.Context, keyspace string, shardNames []string, load workload.Load) error {
	shards, err := workload.NewShards(shardNames...)
	if err != nil {
		return err
	}
	if w.gate, err = w.Gate(keyspace); err != nil {
		return err
	}
	load.Seed = w.cfg.Seed
	w.clients = workload.NewClients(w.gate, load, shards)
	return w.clients.Prepare(ctx)
}

// defaultLoad is the load of a scenario that needs no other.
var defaultLoad = workload.Load{HotValues: 8, Clients: 4, BulkRows: 500}

// storm has all clients write, hand over hot values among it, for the configured time.
// They go on when it returns.
func (w *world) storm(ctx context.Context) error {
	w.clients.Start(ctx, w.clients.All())
	return w.spend(ctx, w.cfg.Duration)
}

// spend lets the clients write for a while.
func (w *world) spend(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-w.clients.Failed():
		return err
	case <-timer.C:
		return nil
	}
}

// pollInterval is how often a condition is looked at.
const pollInterval = 100 * time.Millisecond

// await waits until a condition holds, and fails when it has not come within a
// minute: check says why it does not hold yet, or nil.
func (w *world) await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // and not that it was interrupted
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return cause
			}
			return fmt.Errorf("waited for a minute until %s: %w", what, last)
		case <-ticker.C:
		}
	}
}

// primaries returns the primaries of shards.
func (w *world) primaries(ctx context.Context, keyspace string, shards []string) ([]*cluster.Tablet, error) {
	var list []*cluster.Tablet
	for _, shard := range shards {
		tablet, err := w.Primary(ctx, keyspace, shard)
		if err != nil {
			return nil, err
		}
		list = append(list, tablet)
	}
	return list, nil
}

// equal compares two keyspaces with each other and with what the clients know. These
// are halted.
func (w *world) equal(ctx context.Context, from string, fromShards []string, to string, toShards []string) error {
	known, err := w.clients.Rows()
	if err != nil {
		return err
	}
	sources, err := w.union(ctx, from, fromShards)
	if err != nil {
		return err
	}
	targets, err := w.union(ctx, to, toShards)
	if err != nil {
		return err
	}
	if d := workload.Diff(known, sources); !d.Equal() {
		return fmt.Errorf("the sources are not as the clients left them: %s", d)
	}
	d := workload.Diff(sources, targets)
	if !d.Equal() {
		return fmt.Errorf("the target differs from the union of the sources: %s", d)
	}
	w.rows = d.Rows
	w.printf("target and union of the sources: %s", d)
	return nil
}

// union reads the rows of all shards of a keyspace.
func (w *world) union(ctx context.Context, keyspace string, shards []string) (map[int64]workload.Row, error) {
	tablets, err := w.primaries(ctx, keyspace, shards)
	if err != nil {
		return nil, err
	}
	rows, err := cluster.ReadUnion(ctx, tablets)
	if err != nil {
		return nil, fmt.Errorf("keyspace %s: %w", keyspace, err)
	}
	return rows, nil
}

// exec runs one statement through vtgate.
func (w *world) exec(ctx context.Context, query string, args ...any) error {
	_, err := w.gate.ExecContext(ctx, query, args...)
	return err
}

// conflicts sums what all workflows have met.
func (w *world) conflicts() cluster.Conflicts {
	w.mu.Lock()
	defer w.mu.Unlock()
	var sum cluster.Conflicts
	for _, f := range w.flows {
		sum = f.total().Plus(sum)
	}
	return sum
}
