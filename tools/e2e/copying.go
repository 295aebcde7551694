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
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// copying is a copy phase during which values are handed over all the time.
var copying = Scenario{
	Name:      "copying",
	Shows:     "hot values are handed over during a copy phase of many rounds, in copies, catch-ups and fast-forwards",
	keyspaces: mergeKeyspace,
	// Many rounds of copy and catch-up.
	tabletFlags: []string{"--vreplication-copy-phase-duration=2s"},
	run:         runCopying,
}

// copyLoad has rows enough for many rounds.
var copyLoad = workload.Load{HotValues: 8, Clients: 4, BulkRows: 500, StillRows: 10_000}

// minCopy is how long the copy phase must last to show anything.
const minCopy = 10 * time.Second

// runCopying has all clients write from before the copy phase on.
func runCopying(ctx context.Context, w *world) error {
	w.printf("creating %d rows", 2*copyLoad.StillRows)
	if err := w.connect(ctx, "ks", two, copyLoad); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	// The copy is held back now and then, so that it lasts.
	if err := w.Throttler(ctx, "ks", true, 0); err != nil {
		return err
	}
	if err := w.ThrottleApp(ctx, "ks", "vcopier", 0.8); err != nil {
		return err
	}
	begin := time.Now()
	reshard, err := w.Reshard(ctx, "ks", "merge", two, one)
	if err != nil {
		return err
	}
	f := w.flow(reshard, "ks", two, "ks", one)
	if err := f.copied(ctx, begin.Add(minCopy)); err != nil {
		return err
	}
	met := f.total()
	w.printf("the copy phase took %.1fs; conflicts until its end: %s", time.Since(begin).Seconds(), met)
	if met.Met == 0 {
		return errors.New("the copy phase has met no conflict, so nothing was shown")
	}
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	return f.settle(ctx)
}

// copied waits until no stream copies any more. The copy is let go at a given time.
func (f *flow) copied(ctx context.Context, letGo time.Time) error {
	w := f.world
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	held := true
	for {
		copying := errors.New("a stream copies")
		err := f.each(ctx, func(_ *cluster.Tablet, s cluster.Stream) error {
			if s.State != "Running" || s.Applied.IsZero() {
				return copying
			}
			return nil
		})
		if !errors.Is(err, copying) {
			return err
		}
		if held && time.Now().After(letGo) {
			held = false
			w.printf("the copy is let go")
			if err := w.ThrottleApp(ctx, "ks", "vcopier", 0); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-w.clients.Failed():
			return err
		case <-ticker.C:
		}
	}
}
