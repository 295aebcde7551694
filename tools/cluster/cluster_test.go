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
	"os"
	"path/filepath"
	"testing"
	"time"
)

// testOptions returns the options of a real cluster, or skips the test: it
// needs the programs that "make demo" builds, and half a minute.
//
//	CLUSTER_BIN=$PWD/bin CLUSTER_VITESS=$PWD/.work/vitess-v0.24.4 VT_MYSQL_ROOT=$PWD/.work/mysql/usr \
//	  go -C tools test -v -run TestCluster ./cluster
func testOptions(t *testing.T) Options {
	t.Helper()
	bin, vitess := os.Getenv("CLUSTER_BIN"), os.Getenv("CLUSTER_VITESS")
	if bin == "" || vitess == "" {
		t.Skip("CLUSTER_BIN and CLUSTER_VITESS are not set")
	}
	return Options{
		Bin:       bin,
		Vttablet:  filepath.Join(bin, "vttablet"),
		MySQLRoot: os.Getenv("VT_MYSQL_ROOT"),
		InitDB:    filepath.Join(vitess, "config", "init_db.sql"),
		LogDir:    t.TempDir(),
		Out:       t.Output(),
	}
}

// must ends the test on an error.
func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Log(what)
}

// TestCluster shows that what a scenario can do to a cluster works: MoveTables
// from two shards to one, crashes of a vttablet and of a mysqld, stop and
// start, the throttler, a planned reparent, VDiff, and traffic there and back.
func TestCluster(t *testing.T) {
	opts := testOptions(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const vschema = `{"sharded":true,"vindexes":{"hash":{"type":"hash"}},"tables":{"t":{"column_vindexes":[{"column":"id","name":"hash"}]}}}`
	opts.Keyspaces = []Keyspace{
		{Name: "src", Shards: []Shard{{Name: "-80"}, {Name: "80-"}}, Schema: "create table t (id bigint primary key, u varchar(20) unique)", VSchema: vschema},
		{Name: "dst", Shards: []Shard{{Name: "-", Tablets: 2}}, VSchema: vschema},
	}
	c, err := Start(ctx, opts)
	must(t, "start", err)
	defer c.Close()

	db, err := c.Gate("src")
	must(t, "connect to vtgate", err)
	defer db.Close()
	insert := func(ids ...int) {
		t.Helper()
		for _, id := range ids {
			_, err := db.ExecContext(ctx, "insert into t (id, u) values (?, ?)", id, id)
			must(t, "insert", err)
		}
	}
	insert(1, 2, 3, 4)
	w, err := c.MoveTables(ctx, "src", "dst", "move", []string{"t"})
	must(t, "MoveTables", err)
	target, err := c.Primary(ctx, "dst", "-")
	must(t, "find the target's primary", err)
	awaitStreams(ctx, t, target, "Running")
	disturb(ctx, t, c, w, target, insert)
	target = reparent(ctx, t, c, target)
	insert(7, 8)
	checkVDiff(ctx, t, w)

	must(t, "SwitchTraffic", w.SwitchTraffic(ctx))
	insert(9, 10)
	checkVDiff(ctx, t, c.Workflow("MoveTables", "src", "move_reverse"))
	must(t, "ReverseTraffic", w.ReverseTraffic(ctx))
	insert(11, 12)
	awaitStreams(ctx, t, target, "Running")
	checkVDiff(ctx, t, w)
}

// disturb does to a running workflow what an operator or a crash does.
func disturb(ctx context.Context, t *testing.T, c *Cluster, w *Workflow, target *Tablet, insert func(...int)) {
	t.Helper()
	must(t, "stop the workflow", w.Stop(ctx))
	awaitStreams(ctx, t, target, "Stopped")
	must(t, "start the workflow", w.Run(ctx))
	must(t, "kill the vttablet", target.Kill())
	insert(5)
	must(t, "restart the vttablet", target.Restart(ctx))
	awaitStreams(ctx, t, target, "Running")
	must(t, "kill mysqld", target.MySQL.Kill())
	insert(6)
	must(t, "restart mysqld", target.MySQL.Restart(ctx))
	must(t, "throttler on", c.Throttler(ctx, "dst", true, 5))
	must(t, "throttle vplayer", c.ThrottleApp(ctx, "dst", "vplayer", 1))
	must(t, "let vplayer go", c.ThrottleApp(ctx, "dst", "vplayer", 0))
	must(t, "throttler off", c.Throttler(ctx, "dst", false, 0))
}

// reparent makes the target's other tablet its primary, and returns it.
func reparent(ctx context.Context, t *testing.T, c *Cluster, from *Tablet) *Tablet {
	t.Helper()
	for _, tablet := range c.Tablets("dst", "-") {
		if tablet != from {
			must(t, "planned reparent", waitFor(ctx, "planned reparent", []*Process{tablet.Process}, func(ctx context.Context) error {
				return c.PlannedReparent(ctx, tablet)
			}))
		}
	}
	to, err := c.Primary(ctx, "dst", "-")
	must(t, "find the new primary", err)
	if to == from {
		t.Fatal("the primary is as before")
	}
	awaitStreams(ctx, t, to, "Running")
	return to
}

// awaitStreams waits until both streams are in a state.
func awaitStreams(ctx context.Context, t *testing.T, tablet *Tablet, state string) {
	t.Helper()
	must(t, "streams "+state, waitFor(ctx, "streams", nil, func(ctx context.Context) error {
		streams, err := tablet.Streams(ctx, "move")
		if err != nil {
			return err
		}
		if len(streams) != 2 || streams[0].State != state || streams[1].State != state {
			return errNotRunning
		}
		return nil
	}))
}

// checkVDiff expects a clean VDiff.
func checkVDiff(ctx context.Context, t *testing.T, w *Workflow) {
	t.Helper()
	diff, err := w.VDiff(ctx)
	must(t, "VDiff", err)
	if !diff.Clean() {
		t.Fatalf("VDiff: %s", diff)
	}
	t.Log(diff)
}
