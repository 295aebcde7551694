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
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// checkpointEvery is after how many faults the writes stop, so that the target can
// be compared with the union of the sources.
const checkpointEvery = 10

// recoverPatience is how long the streams may take to move again after a fault:
// vttablet's start, and the delay after which a stream is retried.
const recoverPatience = 90 * time.Second

// fault is something that ends a target transaction at any moment.
type fault struct {
	name   string
	strike func(ctx context.Context) error
}

func (r *run) faults() []fault {
	return []fault{
		{"SIGKILL of vttablet", func(ctx context.Context) error {
			if err := r.target.Kill(); err != nil {
				return err
			}
			return r.target.Restart(ctx)
		}},
		{"SIGKILL of mysqld", r.killServer},
		{"all connections cut", r.cutConnections},
	}
}

// killServer kills the target's mysqld and starts it again. Where it comes back
// read-only, which nobody but VTOrc or an operator changes, it is made writable.
func (r *run) killServer(ctx context.Context) error {
	if err := r.target.MySQL.Kill(); err != nil {
		return err
	}
	if err := r.target.MySQL.Restart(ctx); err != nil {
		return err
	}
	db, err := r.target.MySQL.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	var readOnly bool
	if err := db.QueryRowContext(ctx, "select @@global.read_only or @@global.super_read_only").Scan(&readOnly); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	_, err = r.cluster.Vtctl(ctx, "SetWritable", r.target.Alias, "true")
	return err
}

// cutConnections has mysqld end every connection of the target's vttablet.
func (r *run) cutConnections(ctx context.Context) error {
	db, err := r.target.MySQL.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "select id from performance_schema.processlist where user like 'vt\\_%' and id <> connection_id()")
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(ids) == 0 {
		return errors.New("vttablet has no connection to its mysqld")
	}
	for _, id := range ids {
		// One that has ended meanwhile is no error.
		if _, err := db.ExecContext(ctx, "kill "+id); err != nil && !strings.Contains(err.Error(), "Unknown thread") {
			return err
		}
	}
	return nil
}

// inject strikes at random moments of the hot load, and stops it now and then to
// compare.
func (r *run) inject(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.cfg.Seed, 1))
	faults := r.faults()
	r.summary.Faults = make(map[string]int)
	for i := range r.cfg.Faults {
		if err := r.pause(ctx, time.Duration(500+random.IntN(2500))*time.Millisecond); err != nil {
			return err
		}
		f := faults[random.IntN(len(faults))]
		r.printf("Fault %d of %d: %s.\n", i+1, r.cfg.Faults, f.name)
		before := r.positions()
		begin := time.Now()
		if err := f.strike(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := r.recovered(ctx, before); err != nil {
			return fmt.Errorf("after %s: %w", f.name, err)
		}
		r.printf("  both streams move again after %.1fs.\n", time.Since(begin).Seconds())
		r.summary.Faults[f.name]++
		if (i+1)%checkpointEvery == 0 || i+1 == r.cfg.Faults {
			if err := r.checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause lets the load run for a while.
func (r *run) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-r.clients.Failed():
		return err
	case <-timer.C:
		return nil
	}
}

// positions are those of the streams, by their ids.
func (r *run) positions() map[int]string {
	positions := make(map[int]string)
	for _, stream := range r.monitor.States() {
		positions[stream.ID] = stream.Position
	}
	return positions
}

// recovered waits until each stream runs and has saved another position. The load
// goes on, so that every stream has something to apply.
func (r *run) recovered(ctx context.Context, before map[int]string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverPatience, fmt.Errorf("no stream, or not each, has moved within %v", recoverPatience))
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		streams := r.monitor.States()
		done := len(streams) == len(sourceShards)
		for _, stream := range streams {
			done = done && stream.State == "Running" && stream.Position != before[stream.ID]
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-r.clients.Failed():
			return err
		case <-ticker.C:
		}
	}
}

// checkpoint stops the writes, waits for the streams, compares, and lets the
// writes go on.
func (r *run) checkpoint(ctx context.Context) error {
	if err := r.clients.Halt(); err != nil {
		return err
	}
	if err := r.monitor.Drain(ctx, r.sources, drainPatience); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	r.summary.Checkpoints++
	r.clients.Start(ctx, r.clients.All())
	return nil
}
