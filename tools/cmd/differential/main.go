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

// Command differential compares the simulator's model of MySQL with MySQL.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"mergebackoff/tools/differential"
	"mergebackoff/tools/sim"
)

var (
	root      = flag.String("mysql-root", os.Getenv("VT_MYSQL_ROOT"), "the MySQL to compare with: the prefix whose bin or sbin holds mysqld")
	n         = flag.Int("n", 1000, "how many random histories to compare")
	seed      = flag.Uint64("seed", 1, "the seed of the first; the others follow")
	genuine   = flag.Int("genuine", 10, "every so many histories end with a genuine duplicate; 0 is none")
	scenarios = flag.String("scenarios", "", "also compare the scenarios of this folder, with each kind of images and batches")
	parallel  = flag.Int("parallel", 8, "how many histories the server replays at a time")
	most      = flag.Int("differences", 3, "after how many differences to stop")
)

func main() {
	flag.Parse()
	// Behind it, so that the flags of a test are none of this command.
	testing.Init()
	// With one thread a seed's run is the same every time.
	runtime.GOMAXPROCS(1)
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "differential", F: run}}, nil, nil)
}

// batch is how many histories are run on the model before the server replays them.
const batch = 64

func run(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := compare(ctx, t); err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		t.Fail()
	}
}

func compare(ctx context.Context, t *testing.T) error {
	if *root == "" {
		return fmt.Errorf("-mysql-root, or VT_MYSQL_ROOT, is needed")
	}
	server, err := differential.StartServer(ctx, *root)
	if err != nil {
		return err
	}
	defer server.Stop()
	version, err := server.Version(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("Comparing the model with MySQL %s: %d random histories, first seed %d.\n", version, *n, *seed)
	databases, err := server.Databases(ctx, *parallel)
	if err != nil {
		return err
	}
	c := &comparison{summary: &differential.Summary{}, server: server, databases: databases, begun: time.Now(), told: time.Now()}
	err = c.all(ctx, t)
	for _, difference := range c.summary.Differences {
		fmt.Fprintln(os.Stderr, "DIFFERENT: "+difference)
	}
	fmt.Printf("%v: %v\n", time.Since(c.begun).Round(time.Second), c.summary)
	if err == nil && len(c.summary.Differences) > 0 {
		err = fmt.Errorf("the model is not like MySQL")
	}
	return err
}

type comparison struct {
	summary     *differential.Summary
	server      *differential.Server
	databases   []string
	waiting     []*differential.Recording
	begun, told time.Time
}

func (c *comparison) all(ctx context.Context, t *testing.T) error {
	if *scenarios != "" {
		if err := c.scenarios(ctx, t); err != nil {
			return err
		}
	}
	for i := range uint64(*n) {
		h, err := sim.Generate(*seed+i, *genuine > 0 && (*seed+i)%uint64(*genuine) == 0)
		if err != nil {
			return err
		}
		if err := c.add(ctx, t, "random", h, *seed+i); err != nil || c.enough() {
			return err
		}
	}
	return c.flush(ctx)
}

func (c *comparison) scenarios(ctx context.Context, t *testing.T) error {
	paths, err := filepath.Glob(filepath.Join(*scenarios, "*.txt"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no scenario in %s", *scenarios)
	}
	for _, path := range paths {
		if sim.Beyond(path) != "" {
			continue
		}
		h, _, err := sim.Read(path)
		if err != nil {
			return err
		}
		for _, variant := range h.Variants() {
			if err := c.add(ctx, t, filepath.Base(path), variant, *seed); err != nil || c.enough() {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) enough() bool { return len(c.summary.Differences) >= *most }

// add records a history, and has the server replay those that were recorded once there
// are enough of them.
func (c *comparison) add(ctx context.Context, t *testing.T, name string, h *sim.History, seed uint64) error {
	recording := differential.Record(t, name, h, seed)
	if recording.Failure != "" {
		return fmt.Errorf("%s, seed %d: the simulator fails: %s", name, seed, recording.Failure)
	}
	c.waiting = append(c.waiting, recording)
	if len(c.waiting) < batch {
		return nil
	}
	return c.flush(ctx)
}

func (c *comparison) flush(ctx context.Context) error {
	err := c.summary.Compare(ctx, c.server, c.databases, c.waiting)
	c.waiting = nil
	if time.Since(c.told) > 15*time.Second {
		c.told = time.Now()
		fmt.Printf("%4.0fs: %v\n", time.Since(c.begun).Seconds(), c.summary)
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
