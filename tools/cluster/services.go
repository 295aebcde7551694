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
	"net/http"
	"path/filepath"
	"strconv"
)

// topoFlags tells a Vitess server where the topology is.
func (c *Cluster) topoFlags() []string {
	return []string{
		"--topo-implementation", "etcd2",
		"--topo-global-server-address", loopback(c.etcdPort),
		"--topo-global-root", "/vitess/global",
	}
}

// serverFlags is what vtctld, vttablet and vtgate have in common.
func (c *Cluster) serverFlags(port, grpcPort int, services string) []string {
	return append(
		c.topoFlags(),
		"--port", strconv.Itoa(port),
		"--grpc-port", strconv.Itoa(grpcPort),
		"--bind-address", "127.0.0.1",
		"--grpc-bind-address", "127.0.0.1",
		"--service-map", services,
		"--config-file-not-found-handling", "ignore",
		"--logtostderr",
	)
}

// startServers starts what depends on nothing of Vitess, at the same time.
func (c *Cluster) startServers(ctx context.Context) error {
	tasks := []func(context.Context) error{c.startTopology, c.startMySQLs}
	return forEach(tasks, func(task func(context.Context) error) error { return task(ctx) })
}

// startTopology starts etcd, registers the cell and starts vtctld.
func (c *Cluster) startTopology(ctx context.Context) error {
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	ports, err := c.ports.nextN(2)
	if err != nil {
		return err
	}
	c.vtctldPort = ports[1]
	args := append(c.serverFlags(ports[0], ports[1], "grpc-vtctl,grpc-vtctld"), "--cell", cell)
	c.vtctld = c.process("vtctld", filepath.Join(c.opts.Bin, "vtctld"), args...)
	if err := c.vtctld.Start(); err != nil {
		return err
	}
	return waitFor(ctx, "vtctld", []*Process{c.etcd, c.vtctld}, func(ctx context.Context) error {
		_, err := c.Vtctl(ctx, "AddCellInfo", "--root", "/vitess/"+cell, "--server-address", loopback(c.etcdPort), cell)
		return err
	})
}

// startEtcd starts the topology's store.
func (c *Cluster) startEtcd(ctx context.Context) error {
	ports, err := c.ports.nextN(2)
	if err != nil {
		return err
	}
	c.etcdPort = ports[0]
	client, peer := "http://"+loopback(ports[0]), "http://"+loopback(ports[1])
	c.etcd = c.process(
		"etcd", filepath.Join(c.opts.Bin, "etcd"),
		"--name", cell,
		"--data-dir", filepath.Join(c.dir, "etcd"),
		"--listen-client-urls", client,
		"--advertise-client-urls", client,
		"--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer,
		"--initial-cluster", cell+"="+peer,
		// The store is thrown away with the cluster.
		"--unsafe-no-fsync",
		"--log-level", "warn",
	)
	if err := c.etcd.Start(); err != nil {
		return err
	}
	return waitFor(ctx, "etcd", []*Process{c.etcd}, func(ctx context.Context) error {
		return httpJSON(ctx, client+"/health", nil)
	})
}

// createKeyspaces creates keyspaces and shards in the given order: whether a
// shard serves is decided when it is created.
func (c *Cluster) createKeyspaces(ctx context.Context) error {
	for _, keyspace := range c.opts.Keyspaces {
		if _, err := c.Vtctl(ctx, "CreateKeyspace", "--durability-policy=none", keyspace.Name); err != nil {
			return err
		}
		for _, shard := range keyspace.Shards {
			if _, err := c.Vtctl(ctx, "CreateShard", keyspace.Name+"/"+shard.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// electPrimaries makes the first tablet of every shard its primary.
func (c *Cluster) electPrimaries(ctx context.Context) error {
	var firsts []*Tablet
	for _, tablet := range c.tablets {
		if tablet.first {
			firsts = append(firsts, tablet)
		}
	}
	return forEach(firsts, func(tablet *Tablet) error {
		return c.PlannedReparent(ctx, tablet)
	})
}

// applySchemas creates the tables in every shard, and the vschemas.
func (c *Cluster) applySchemas(ctx context.Context) error {
	for _, keyspace := range c.opts.Keyspaces {
		if keyspace.Schema != "" {
			if _, err := c.Vtctl(ctx, "ApplySchema", "--sql", keyspace.Schema, keyspace.Name); err != nil {
				return err
			}
		}
		if keyspace.VSchema != "" {
			if _, err := c.Vtctl(ctx, "ApplyVSchema", "--vschema", keyspace.VSchema, keyspace.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// startGate starts vtgate and waits until it reaches every serving shard.
func (c *Cluster) startGate(ctx context.Context) error {
	ports, err := c.ports.nextN(3)
	if err != nil {
		return err
	}
	c.gatePort = ports[2]
	args := append(
		c.serverFlags(ports[0], ports[1], "grpc-vtgateservice"),
		"--cell", cell,
		"--cells-to-watch", cell,
		"--tablet-types-to-wait", "PRIMARY",
		"--mysql-server-port", strconv.Itoa(c.gatePort),
		"--mysql-server-bind-address", "127.0.0.1",
		"--mysql-auth-server-impl", "none",
	)
	c.vtgate = c.process("vtgate", filepath.Join(c.opts.Bin, "vtgate"), append(args, c.opts.GateFlags...)...)
	if err := c.vtgate.Start(); err != nil {
		return err
	}
	return waitFor(ctx, "vtgate", []*Process{c.vtgate}, c.gateServes)
}

// gateServes checks that vtgate reaches the primary of every serving shard.
func (c *Cluster) gateServes(ctx context.Context) error {
	for _, keyspace := range c.opts.Keyspaces {
		for _, shard := range keyspace.Shards {
			record, err := c.shard(ctx, keyspace.Name, shard.Name)
			if err != nil {
				return err
			}
			if !record.Shard.Serving {
				continue
			}
			if err := c.pingShard(ctx, keyspace.Name+":"+shard.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// pingShard sends a query through vtgate to one shard.
func (c *Cluster) pingShard(ctx context.Context, target string) error {
	db, err := c.Gate(target)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "select 1 from dual")
	return err
}

// httpJSON reads a local HTTP address, and decodes it into v if that is not nil.
func httpJSON(ctx context.Context, url string, v any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	if v == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(v)
}
