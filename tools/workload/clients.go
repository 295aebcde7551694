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

package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Load says what the clients of a run do.
type Load struct {
	// Seed determines the histories of all clients, but not their interleaving.
	Seed uint64
	// HotValues is the number of values that go around; Clients is the number of
	// clients that share them; Rate bounds their transactions per second, 0 is
	// no bound; BulkRows is the size of the transactions that make a stream lag,
	// 0 is none of them.
	HotValues, Clients, Rate, BulkRows int
	// StillRows is how many rows per shard are there from the start, and stay as they
	// are.
	StillRows int
	// OneWay is as in Handover.
	OneWay bool
	// Refusals is as in Worker. A consistent lookup vindex needs it around a switch
	// of the traffic: vtgate commits the lookup entry before the row, and when it
	// then runs the statement again on the other keyspace, its check does not see the
	// entry that its first run has left there, but its insert meets it.
	Refusals time.Duration
}

// Clients are all clients of a run, and the one place that knows which of them
// write when.
type Clients struct {
	Stats Stats

	light []*Worker // writes from the start, and meets no conflict
	hot   []*Worker // hands over hot values, and makes streams lag
	still []*Worker // has rows, and never writes

	errs    chan error
	running sync.WaitGroup
	stop    chan struct{}
}

// Pauses between two transactions of a client.
const (
	lightInterval = 20 * time.Millisecond
	bulkInterval  = 3 * time.Second
)

// NewClients plans the clients, which send through db, a connection to vtgate.
// Their rows and hot values are disjoint. A transaction lies on one of the shards.
func NewClients(db *sql.DB, load Load, shards *Shards) *Clients {
	c := &Clients{errs: make(chan error, load.Clients+2), stop: make(chan struct{})}
	values := HotValues(load.HotValues)
	clients := min(load.Clients, len(values))
	next := int64(1)
	for i := range clients {
		var own []string
		for j := i; j < len(values); j += clients {
			own = append(own, values[j])
		}
		var source *Handover
		source, next = NewHandover(load.Seed, shards, fmt.Sprintf("client%d", i), own, next)
		source.OneWay = load.OneWay
		worker := NewWorker(db, source, &c.Stats)
		if load.Rate > 0 {
			worker.Interval = time.Duration(float64(time.Second) * float64(clients) / float64(load.Rate))
		}
		c.hot = append(c.hot, worker)
	}
	if load.BulkRows > 0 {
		var source *Bulk
		source, next = NewBulk(shards, load.BulkRows, next)
		worker := NewWorker(db, source, &c.Stats)
		worker.Interval = bulkInterval
		c.hot = append(c.hot, worker)
	}
	if load.StillRows > 0 {
		var source *Bulk
		source, next = NewBulk(shards, load.StillRows, next)
		c.still = []*Worker{NewWorker(db, source, &c.Stats)}
	}
	light := NewWorker(db, NewBackground(load.Seed, shards, next), &c.Stats)
	light.Interval = lightInterval
	c.light = []*Worker{light}
	for _, worker := range c.All() {
		worker.Refusals = load.Refusals
	}
	return c
}

// Light returns the workers that meet no conflict.
func (c *Clients) Light() []*Worker { return c.light }

// Hot returns the workers that hand over hot values, and that make streams lag.
func (c *Clients) Hot() []*Worker { return c.hot }

// Failed receives what goes wrong with a worker, which then writes no more.
func (c *Clients) Failed() <-chan error { return c.errs }

// All returns every worker that writes.
func (c *Clients) All() []*Worker {
	return append(append([]*Worker(nil), c.light...), c.hot...)
}

// Prepare creates the initial rows.
func (c *Clients) Prepare(ctx context.Context) error {
	for _, worker := range append(c.All(), c.still...) {
		if err := worker.Prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Start lets workers write until Halt.
func (c *Clients) Start(ctx context.Context, workers []*Worker) {
	for _, worker := range workers {
		c.running.Go(func() {
			if err := worker.Run(ctx, c.stop); err != nil {
				c.errs <- fmt.Errorf("client: %w", err)
			}
		})
	}
}

// Halt stops all workers, each behind a transaction, and returns what went
// wrong with them. They can be started again after it.
func (c *Clients) Halt() error {
	close(c.stop)
	c.running.Wait()
	c.stop = make(chan struct{})
	select {
	case err := <-c.errs:
		return err
	default:
		return nil
	}
}

// Rows returns what the clients know to be there. They are halted.
func (c *Clients) Rows() (map[int64]Row, error) {
	all := make(map[int64]Row)
	count := 0
	for _, worker := range append(c.All(), c.still...) {
		rows := worker.Rows()
		count += len(rows)
		maps.Copy(all, rows)
	}
	if count != len(all) {
		return nil, errors.New("two clients wrote the same row")
	}
	return all, nil
}
