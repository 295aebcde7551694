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
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Workflow is a VReplication workflow, as its target keyspace knows it.
type Workflow struct {
	// Kind is the vtctldclient command that runs it: Reshard or MoveTables.
	Kind string
	// Keyspace is the target keyspace.
	Keyspace string
	Name     string

	cluster *Cluster
}

// Workflow names a workflow; it need not exist yet.
func (c *Cluster) Workflow(kind, keyspace, name string) *Workflow {
	return &Workflow{Kind: kind, Keyspace: keyspace, Name: name, cluster: c}
}

// Do runs an action of the workflow's command, such as "create" or
// "switchtraffic", with flags.
func (w *Workflow) Do(ctx context.Context, action string, flags ...string) (string, error) {
	args := []string{w.Kind, "--target-keyspace", w.Keyspace, "--workflow", w.Name, action}
	return w.cluster.Vtctl(ctx, append(args, flags...)...)
}

// Reshard creates a workflow from some shards of a keyspace to others. The
// target shards have their tables already.
func (c *Cluster) Reshard(ctx context.Context, keyspace, name string, from, to []string, flags ...string) (*Workflow, error) {
	w := c.Workflow("Reshard", keyspace, name)
	_, err := w.Do(ctx, "create", append([]string{
		"--source-shards=" + strings.Join(from, ","),
		"--target-shards=" + strings.Join(to, ","),
		"--skip-schema-copy=true",
		"--tablet-types=primary",
	}, flags...)...)
	return w, err
}

// MoveTables creates a workflow that moves tables between keyspaces.
func (c *Cluster) MoveTables(ctx context.Context, from, to, name string, tables []string, flags ...string) (*Workflow, error) {
	w := c.Workflow("MoveTables", to, name)
	_, err := w.Do(ctx, "create", append([]string{
		"--source-keyspace", from,
		"--tables", strings.Join(tables, ","),
		"--tablet-types=primary",
	}, flags...)...)
	return w, err
}

// SwitchTraffic sends reads and writes to the target.
func (w *Workflow) SwitchTraffic(ctx context.Context, flags ...string) error {
	_, err := w.Do(ctx, "switchtraffic", flags...)
	return err
}

// ReverseTraffic sends reads and writes back to the source.
func (w *Workflow) ReverseTraffic(ctx context.Context, flags ...string) error {
	_, err := w.Do(ctx, "reversetraffic", flags...)
	return err
}

// Complete ends the workflow after the traffic was switched.
func (w *Workflow) Complete(ctx context.Context, flags ...string) error {
	_, err := w.Do(ctx, "complete", flags...)
	return err
}

// Stop stops all streams of the workflow.
func (w *Workflow) Stop(ctx context.Context) error {
	_, err := w.cluster.Vtctl(ctx, "Workflow", "--keyspace", w.Keyspace, "stop", "--workflow", w.Name)
	return err
}

// Run starts all streams of the workflow that were stopped.
func (w *Workflow) Run(ctx context.Context) error {
	_, err := w.cluster.Vtctl(ctx, "Workflow", "--keyspace", w.Keyspace, "start", "--workflow", w.Name)
	return err
}

// StreamStatus is one stream of a workflow as "Workflow show" prints it.
type StreamStatus struct {
	ID          int
	TargetShard string // the shard that the stream writes
	Tablet      string // alias of the tablet that runs it
	SourceShard string
	Position    string
	State       string
	Message     string
	// Copying tells that tables are still being copied.
	Copying bool
	// LagSeconds is how far the source's clock was ahead of the last applied
	// transaction when the stream last reported.
	LagSeconds int64
}

// Show returns the workflow's streams, ordered by target shard and id.
func (w *Workflow) Show(ctx context.Context) ([]StreamStatus, error) {
	out, err := w.cluster.Vtctl(ctx, "Workflow", "--keyspace", w.Keyspace, "show", "--workflow", w.Name, "--include-logs=false")
	if err != nil {
		return nil, err
	}
	return parseWorkflowShow([]byte(out), w.Name)
}

// number accepts JSON numbers and, as protobuf's JSON has them, strings.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	*n = number(value)
	return err
}

// workflowShow is the part of GetWorkflowsResponse that is used here.
type workflowShow struct {
	Workflows []struct {
		Name         string `json:"name"`
		ShardStreams map[string]struct {
			Streams []struct {
				ID     number `json:"id"`
				Shard  string `json:"shard"`
				Tablet struct {
					Cell string `json:"cell"`
					UID  number `json:"uid"`
				} `json:"tablet"`
				Source struct {
					Shard string `json:"shard"`
				} `json:"binlog_source"`
				Position    string            `json:"position"`
				State       string            `json:"state"`
				Message     string            `json:"message"`
				CopyStates  []json.RawMessage `json:"copy_states"`
				Transaction struct {
					Seconds number `json:"seconds"`
				} `json:"transaction_timestamp"`
				Updated struct {
					Seconds number `json:"seconds"`
				} `json:"time_updated"`
			} `json:"streams"`
		} `json:"shard_streams"`
	} `json:"workflows"`
}

// parseWorkflowShow reads the JSON that "Workflow show" prints.
func parseWorkflowShow(data []byte, name string) ([]StreamStatus, error) {
	var show workflowShow
	if err := json.Unmarshal(data, &show); err != nil {
		return nil, fmt.Errorf("output of Workflow show: %w", err)
	}
	var list []StreamStatus
	for _, workflow := range show.Workflows {
		if workflow.Name != name {
			continue
		}
		for _, shard := range workflow.ShardStreams {
			for _, stream := range shard.Streams {
				status := StreamStatus{
					ID:          int(stream.ID),
					TargetShard: stream.Shard,
					Tablet:      fmt.Sprintf("%s-%d", stream.Tablet.Cell, stream.Tablet.UID),
					SourceShard: stream.Source.Shard,
					Position:    stream.Position,
					State:       stream.State,
					Message:     stream.Message,
					Copying:     len(stream.CopyStates) > 0,
				}
				if at := stream.Transaction.Seconds; at > 0 {
					status.LagSeconds = max(0, int64(stream.Updated.Seconds-at))
				}
				list = append(list, status)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no streams of workflow %s found", name)
	}
	slices.SortFunc(list, func(a, b StreamStatus) int {
		return cmp.Or(strings.Compare(a.TargetShard, b.TargetShard), a.ID-b.ID)
	})
	return list, nil
}
