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
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
)

// Vtctl runs vtctldclient and returns its output.
func (c *Cluster) Vtctl(ctx context.Context, args ...string) (string, error) {
	client := filepath.Join(c.opts.Bin, "vtctldclient")
	all := append([]string{"--server", loopback(c.vtctldPort), "--action-timeout", "5m"}, args...)
	return c.ids.run(ctx, c.env(), c.dir, client, all...)
}

// PlannedReparent makes the tablet the primary of its shard.
func (c *Cluster) PlannedReparent(ctx context.Context, to *Tablet) error {
	_, err := c.Vtctl(ctx, "PlannedReparentShard", "--new-primary", to.Alias, to.Keyspace+"/"+to.Shard)
	return err
}

// shardRecord is what GetShard prints of a shard.
type shardRecord struct {
	Shard struct {
		Serving bool `json:"is_primary_serving"`
		Primary struct {
			Cell string `json:"cell"`
			UID  int    `json:"uid"`
		} `json:"primary_alias"`
	} `json:"shard"`
}

// shard reads a shard's record from the topology.
func (c *Cluster) shard(ctx context.Context, keyspace, shard string) (*shardRecord, error) {
	out, err := c.Vtctl(ctx, "GetShard", keyspace+"/"+shard)
	if err != nil {
		return nil, err
	}
	record := new(shardRecord)
	return record, json.Unmarshal([]byte(out), record)
}

// Primary returns the present primary of a shard.
func (c *Cluster) Primary(ctx context.Context, keyspace, shard string) (*Tablet, error) {
	record, err := c.shard(ctx, keyspace, shard)
	if err != nil {
		return nil, err
	}
	for _, tablet := range c.Tablets(keyspace, shard) {
		if tablet.uid == record.Shard.Primary.UID {
			return tablet, nil
		}
	}
	return nil, fmt.Errorf("shard %s/%s has no primary", keyspace, shard)
}

// Throttler switches the tablet throttler of a keyspace on or off. A threshold
// of 0 leaves the threshold as it is.
func (c *Cluster) Throttler(ctx context.Context, keyspace string, on bool, threshold float64) error {
	args := []string{"UpdateThrottlerConfig", "--disable"}
	if on {
		args[1] = "--enable"
	}
	if threshold > 0 {
		args = append(args, "--threshold", strconv.FormatFloat(threshold, 'f', -1, 64))
	}
	_, err := c.Vtctl(ctx, append(args, keyspace)...)
	return err
}

// ThrottleApp holds back one client of the throttler, such as "vplayer" or a
// workflow's name; ratio 1 stops it, 0 lets it go. The throttler must be on.
func (c *Cluster) ThrottleApp(ctx context.Context, keyspace, app string, ratio float64) error {
	args := []string{"UpdateThrottlerConfig", "--unthrottle-app", app, keyspace}
	if ratio > 0 {
		args = []string{
			"UpdateThrottlerConfig", "--throttle-app", app,
			"--throttle-app-ratio", strconv.FormatFloat(ratio, 'f', -1, 64),
			"--throttle-app-duration", "1h", keyspace,
		}
	}
	_, err := c.Vtctl(ctx, args...)
	return err
}
