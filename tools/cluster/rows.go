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

package cluster

import (
	"context"
	"fmt"

	"mergebackoff/tools/workload"
)

// StreamError says that a stream has ended in state Error.
type StreamError struct {
	Stream Stream
}

// Error implements error.
func (e *StreamError) Error() string {
	return fmt.Sprintf("stream %d from shard %s is in state Error: %s", e.Stream.ID, e.Stream.SourceShard, e.Stream.Message)
}

// ReadUnion reads the workload's rows straight from the MySQL servers of tablets of
// different shards. A row or a value that two of them hold is an error: the
// histories of the shards were then not valid, or rows were lost.
func ReadUnion(ctx context.Context, tablets []*Tablet) (map[int64]workload.Row, error) {
	var parts []map[int64]workload.Row
	for _, tablet := range tablets {
		db, err := tablet.MySQL.Open()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		rows, err := workload.ReadAll(ctx, db)
		if err != nil {
			return nil, err
		}
		parts = append(parts, rows)
	}
	return workload.Union(parts)
}
