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
	"slices"
	"strings"
	"time"

	"mergebackoff/tools/cluster"
)

// counts is what one tablet has counted of a workflow.
type counts struct {
	now     cluster.Conflicts
	earlier cluster.Conflicts // of streams and processes that have ended
}

// watched runs a scenario with a watch beside it, whose finding that a stream has
// died ends the scenario at once.
func (w *world) watched(ctx context.Context, run func(context.Context, *world) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.watch(ctx); err != nil {
			cancel(err)
		}
	}()
	err := run(ctx, w)
	if died := new(cluster.StreamError); errors.As(context.Cause(ctx), &died) {
		err = died
	}
	cancel(nil)
	<-ended
	if w.clients != nil && err != nil {
		// Nobody may write to a cluster that ends. Why they failed is known.
		_ = w.clients.Halt()
	}
	if w.gate != nil {
		err = errors.Join(err, w.gate.Close())
	}
	return err
}

// watch looks at all workflows until ctx is done or a stream has died, and reports
// every five seconds.
func (w *world) watch(ctx context.Context) error {
	ticker := time.NewTicker(2 * pollInterval)
	defer ticker.Stop()
	last := time.Now()
	for {
		w.mu.Lock()
		flows := slices.Clone(w.flows)
		w.mu.Unlock()
		for _, f := range flows {
			if err := f.look(ctx); err != nil {
				return err
			}
		}
		if time.Since(last) > 5*time.Second && len(flows) > 0 {
			last = time.Now()
			w.printf("... %d statements sent, conflicts %s", w.clients.Stats.Statements.Load(), w.conflicts())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look reads the streams and the counters on all tablets of the target. A tablet
// that cannot be read just now is no error: it may be restarting, or no primary.
func (f *flow) look(ctx context.Context) error {
	f.mu.Lock()
	mayFail := f.mayFail
	f.mu.Unlock()
	for _, shard := range f.toShards {
		for _, tablet := range f.world.Tablets(f.to, shard) {
			streams, err := tablet.Streams(ctx, f.Name)
			if err != nil {
				continue
			}
			for _, stream := range streams {
				if stream.State == "Error" && !mayFail {
					return &cluster.StreamError{Stream: stream}
				}
			}
			if vars, err := tablet.Vars(ctx); err == nil {
				f.count(tablet.Alias, cluster.ReadConflicts(vars, f.Name))
			}
		}
	}
	return nil
}

// count notes what a tablet has counted. Counters end with their streams.
func (f *flow) count(alias string, now cluster.Conflicts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.counts[alias]
	if c == nil {
		c = new(counts)
		f.counts[alias] = c
	}
	if now.Met < c.now.Met {
		c.earlier = c.now.Plus(c.earlier)
	}
	c.now = now
}

// total sums what all tablets have counted of the workflow.
func (f *flow) total() cluster.Conflicts {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum cluster.Conflicts
	for _, c := range f.counts {
		sum = c.now.Plus(c.earlier).Plus(sum)
	}
	return sum
}

// blocked demands that a stream is blocked, and returns what it says.
func (f *flow) blocked(ctx context.Context) error {
	err := f.each(ctx, func(_ *cluster.Tablet, s cluster.Stream) error {
		if strings.HasPrefix(s.Message, "merge backoff: waiting") {
			f.world.printf("stream %d from %s says: %s", s.ID, s.SourceShard, s.Message)
			return errBlocked
		}
		return nil
	})
	switch {
	case errors.Is(err, errBlocked):
		return nil
	case err == nil:
		return errors.New("no stream is blocked")
	}
	return err
}

// errBlocked ends a look at all streams at the first that is blocked.
var errBlocked = errors.New("blocked")
