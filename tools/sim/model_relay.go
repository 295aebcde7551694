//go:build go1.25

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

// A copy: see doc.go.

package sim

import (
	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file is a model of the relay log.

// Send appends an item.
func (r *Relay) Send(events ...*binlogdatapb.VEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, events)
	if r.has != nil {
		close(r.has)
		r.has = nil
	}
}

// Len is the number of items in it.
func (r *Relay) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.items)
}

func (r *Relay) drain() [][]*binlogdatapb.VEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := r.items
	r.items = nil
	return items
}

func (r *Relay) arrived() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) > 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	if r.has == nil {
		r.has = make(chan struct{})
	}
	return r.has
}
