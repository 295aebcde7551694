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
	"fmt"
	"strings"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/workload"
)

// lookup is MoveTables from four shards to two, of a table whose unique column has a
// lookup vindex, and of the lookup table.
var lookup = Scenario{
	Name:      "lookup",
	Shows:     "MoveTables merges four shards into two, the unique column has a consistent_lookup_unique vindex",
	keyspaces: lookupKeyspaces,
	run:       runLookup,
}

var (
	four = []string{"-40", "40-80", "80-c0", "c0-"}
	two  = []string{"-80", "80-"}
	one  = []string{"-"}
)

// shardList is a keyspace's shards, with so many tablets each.
func shardList(names []string, tablets int) []cluster.Shard {
	var list []cluster.Shard
	for _, name := range names {
		list = append(list, cluster.Shard{Name: name, Tablets: tablets})
	}
	return list
}

// lookupTable maps emails to keyspace ids.
const lookupTable = "create table account_email (email varchar(64) not null, keyspace_id varbinary(16), primary key (email))"

// lookupVSchema has the keyspace's own lookup table. NULL is not looked up.
const lookupVSchema = `{
  "sharded": true,
  "vindexes": {
    "hash": {"type": "hash"},
    "xxhash": {"type": "xxhash"},
    "by_email": {
      "type": "consistent_lookup_unique", "owner": "account",
      "params": {"table": "KEYSPACE.account_email", "from": "email", "to": "keyspace_id", "ignore_nulls": "true"}
    }
  },
  "tables": {
    "account": {"column_vindexes": [{"column": "id", "name": "hash"}, {"column": "email", "name": "by_email"}]},
    "account_email": {"column_vindexes": [{"column": "email", "name": "xxhash"}]}
  }
}`

func lookupKeyspaces() []cluster.Keyspace {
	vschema := func(keyspace string) string { return strings.ReplaceAll(lookupVSchema, "KEYSPACE", keyspace) }
	return []cluster.Keyspace{
		{Name: "src", Shards: shardList(four, 1), Schema: workload.Schema + ";\n" + lookupTable, VSchema: vschema("src")},
		{Name: "dst", Shards: shardList(two, 1), VSchema: vschema("dst")},
	}
}

// runLookup merges while clients hand over values, switches the traffic under load,
// and looks every hot value up on the target.
func runLookup(ctx context.Context, w *world) error {
	load := defaultLoad
	load.OneWay = true
	load.Refusals = 20 * time.Second
	if err := w.connect(ctx, "src", four, load); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	move, err := w.MoveTables(ctx, "src", "dst", "move", []string{"account", "account_email"})
	if err != nil {
		return err
	}
	f := w.flow(move, "src", four, "dst", two)
	if err := f.running(ctx); err != nil {
		return err
	}
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	if err := f.merged(); err != nil {
		return err
	}
	w.clients.Start(ctx, w.clients.All())
	w.printf("SwitchTraffic, while clients write")
	if err := f.SwitchTraffic(ctx); err != nil {
		return err
	}
	if err := w.spend(ctx, w.cfg.Duration); err != nil {
		return err
	}
	back := w.flow(w.Workflow("MoveTables", "src", "move_reverse"), "dst", two, "src", four)
	if err := back.settle(ctx); err != nil {
		return err
	}
	return lookedUp(ctx, w)
}

// lookedUp demands that the lookup vindex leads to the row that holds each value.
func lookedUp(ctx context.Context, w *world) error {
	rows, err := w.clients.Rows()
	if err != nil {
		return err
	}
	found := 0
	for id, row := range rows {
		if !strings.HasPrefix(row.Email, "hot-") {
			continue
		}
		var holder int64
		if err := w.gate.QueryRowContext(ctx, "select id from account where email = ?", row.Email).Scan(&holder); err != nil {
			return fmt.Errorf("look up %s: %w", row.Email, err)
		}
		if holder != id {
			return fmt.Errorf("the lookup vindex leads from %s to row %d, and not to row %d", row.Email, holder, id)
		}
		found++
	}
	w.printf("the lookup vindex finds the holders of %d hot values", found)
	return nil
}
