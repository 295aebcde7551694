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

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"mergebackoff/tools/workload"
)

// load is all clients of the demo, and the one place that knows which of them
// write when.
type load struct {
	stats workload.Stats
	light []*workload.Worker // writes from the start, and meets no conflict
	hot   []*workload.Worker // hands over hot values, and makes streams lag

	db      *sql.DB
	errs    chan error
	running sync.WaitGroup
	stop    chan struct{}
}

// Pauses between two transactions of a client.
const (
	lightInterval = 20 * time.Millisecond
	bulkInterval  = 3 * time.Second
)

// newLoad plans the clients. Their rows and hot values are disjoint.
func newLoad(db *sql.DB, cfg *Config, shards *workload.Shards) *load {
	l := &load{db: db, errs: make(chan error, cfg.Clients+2), stop: make(chan struct{})}
	values := workload.HotValues(cfg.HotValues)
	clients := min(cfg.Clients, len(values))
	next := int64(1)
	for i := range clients {
		var own []string
		for j := i; j < len(values); j += clients {
			own = append(own, values[j])
		}
		var source *workload.Handover
		source, next = workload.NewHandover(cfg.Seed, shards, fmt.Sprintf("client%d", i), own, next)
		worker := workload.NewWorker(db, source, &l.stats)
		if cfg.Rate > 0 {
			worker.Interval = time.Duration(float64(time.Second) * float64(clients) / float64(cfg.Rate))
		}
		l.hot = append(l.hot, worker)
	}
	if cfg.BulkRows > 0 {
		var source *workload.Bulk
		source, next = workload.NewBulk(shards, cfg.BulkRows, next)
		worker := workload.NewWorker(db, source, &l.stats)
		worker.Interval = bulkInterval
		l.hot = append(l.hot, worker)
	}
	light := workload.NewWorker(db, workload.NewBackground(cfg.Seed, shards, next), &l.stats)
	light.Interval = lightInterval
	l.light = []*workload.Worker{light}
	return l
}

// all returns every worker.
func (l *load) all() []*workload.Worker {
	return append(append([]*workload.Worker(nil), l.light...), l.hot...)
}

// prepare creates the initial rows.
func (l *load) prepare(ctx context.Context) error {
	for _, worker := range l.all() {
		if err := worker.Prepare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start lets workers write until halt.
func (l *load) start(ctx context.Context, workers []*workload.Worker) {
	for _, worker := range workers {
		l.running.Go(func() {
			if err := worker.Run(ctx, l.stop); err != nil {
				l.errs <- fmt.Errorf("client: %w", err)
			}
		})
	}
}

// halt stops all workers, each behind a transaction, and returns what went
// wrong with them. The load can be started again after it.
func (l *load) halt() error {
	close(l.stop)
	l.running.Wait()
	l.stop = make(chan struct{})
	select {
	case err := <-l.errs:
		return err
	default:
		return nil
	}
}

// rows returns what the clients know to be there. The load is halted.
func (l *load) rows() (map[int64]workload.Row, error) {
	all := make(map[int64]workload.Row)
	count := 0
	for _, worker := range l.all() {
		rows := worker.Rows()
		count += len(rows)
		maps.Copy(all, rows)
	}
	if count != len(all) {
		return nil, errors.New("two clients wrote the same row")
	}
	return all, nil
}
