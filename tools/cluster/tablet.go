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
	"strconv"
)

// Tablet is a vttablet with its MySQL server.
type Tablet struct {
	*Process
	// MySQL is the tablet's server.
	MySQL *MySQL
	// Alias is the tablet's name in the topology.
	Alias    string
	Keyspace string
	Shard    string

	cluster  *Cluster
	uid      int
	port     int
	grpcPort int
	first    bool // the shard's first tablet, which becomes primary
}

// layout names the tablets and gives them their ports.
func (c *Cluster) layout() error {
	uid := firstUID
	for _, keyspace := range c.opts.Keyspaces {
		for _, shard := range keyspace.Shards {
			for i := range max(1, shard.Tablets) {
				tablet, err := c.newTablet(uid, keyspace.Name, shard.Name)
				if err != nil {
					return err
				}
				tablet.first = i == 0
				c.tablets = append(c.tablets, tablet)
				uid++
			}
		}
	}
	return nil
}

// newTablet describes a tablet and its server.
func (c *Cluster) newTablet(uid int, keyspace, shard string) (*Tablet, error) {
	ports, err := c.ports.nextN(3)
	if err != nil {
		return nil, err
	}
	alias := fmt.Sprintf("%s-%d", cell, uid)
	t := &Tablet{Alias: alias, Keyspace: keyspace, Shard: shard, cluster: c, uid: uid, port: ports[0], grpcPort: ports[1]}
	if t.MySQL, err = c.newMySQL(uid, ports[2], keyspace); err != nil {
		return nil, err
	}
	t.Process = c.process("vttablet-"+strconv.Itoa(uid), c.opts.Vttablet)
	return t, nil
}

// startTablets starts every vttablet and waits until it is in the topology.
func (c *Cluster) startTablets(ctx context.Context) error {
	return forEach(c.tablets, func(tablet *Tablet) error { return tablet.Restart(ctx) })
}

// Restart starts the vttablet, for the first time or after its end, and waits
// until it answers.
func (t *Tablet) Restart(ctx context.Context) error {
	t.args = append(
		t.cluster.serverFlags(t.port, t.grpcPort, "grpc-queryservice,grpc-tabletmanager,grpc-updatestream"),
		"--tablet-path", t.Alias,
		"--tablet-hostname", "127.0.0.1",
		"--init-keyspace", t.Keyspace,
		"--init-shard", t.Shard,
		"--init-tablet-type", "replica",
		"--health-check-interval", "1s",
		"--heartbeat-on-demand-duration", "5s",
	)
	t.args = append(t.args, t.cluster.opts.TabletFlags...)
	if err := t.Start(); err != nil {
		return err
	}
	return waitFor(ctx, t.Name, []*Process{t.Process, t.MySQL.Process}, func(ctx context.Context) error {
		if err := httpJSON(ctx, t.url("/debug/vars"), nil); err != nil {
			return err
		}
		_, err := t.cluster.Vtctl(ctx, "GetTablet", t.Alias)
		return err
	})
}

// url is an address of the tablet's web server.
func (t *Tablet) url(path string) string {
	return "http://" + loopback(t.port) + path
}

// Tablets returns the tablets of a shard, in the order of their creation.
func (c *Cluster) Tablets(keyspace, shard string) []*Tablet {
	var list []*Tablet
	for _, tablet := range c.tablets {
		if tablet.Keyspace == keyspace && tablet.Shard == shard {
			list = append(list, tablet)
		}
	}
	return list
}

// tabletProcesses returns the vttablets.
func (c *Cluster) tabletProcesses() []*Process {
	var list []*Process
	for _, tablet := range c.tablets {
		list = append(list, tablet.Process)
	}
	return list
}

// mysqlProcesses returns the MySQL servers.
func (c *Cluster) mysqlProcesses() []*Process {
	var list []*Process
	for _, tablet := range c.tablets {
		list = append(list, tablet.MySQL.Process)
	}
	return list
}
