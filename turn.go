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

package mergebackoff

import (
	"context"
	"slices"
	"sync"
)

type (
	// turn is had by one stream at a time; those that wait for it get it in the
	// order in which they came. The zero value is free.
	turn struct {
		mu      sync.Mutex
		taken   bool
		waiting []place
	}

	// place is a place in the queue. It is closed when it is this one's turn.
	place chan struct{}
)

// queue takes a place in the queue. It is to be followed by leave or, once the
// turn has come, by end.
func (t *turn) queue() place {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := make(place)
	if t.taken {
		t.waiting = append(t.waiting, p)
		return p
	}
	t.taken = true
	close(p)
	return p
}

// leave gives a place up, or the turn if it has just come.
func (t *turn) leave(p place) {
	t.mu.Lock()
	i := slices.Index(t.waiting, p)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.end()
	}
}

// end passes the turn on.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
}

// take waits for the turn. It gives up when the context is done: a stream that is
// being stopped makes no further attempt, even if the turn is free.
func (t *turn) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := t.queue()
	select {
	case <-p:
		return nil
	case <-ctx.Done():
		t.leave(p)
		return ctx.Err()
	}
}
