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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Cluster is a running Vitess cluster.
type Cluster struct {
	opts  Options
	dir   string
	ids   *identity
	ports ports

	etcd, vtctld, vtgate *Process
	etcdPort             int
	vtctldPort           int // gRPC
	gatePort             int // MySQL protocol

	tablets []*Tablet

	closeOnce sync.Once
	keepData  bool
}

// Start starts a cluster and returns when it serves queries. When it fails, or
// when ctx is done before that, everything started so far is ended again.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{opts: opts}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		c.Close()
		return nil, err
	}
	return c, nil
}

// prepare finds the programs and makes the data directory.
func (c *Cluster) prepare(ctx context.Context) error {
	if err := c.opts.complete(); err != nil {
		return err
	}
	programs, err := c.opts.programs()
	if err != nil {
		return err
	}
	if c.ids, err = newIdentity(ctx, programs); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "mergebackoff-"); err != nil {
		return err
	}
	// A socket's path is limited to 107 bytes, and mysqld's is the longest.
	if socket := filepath.Join(c.dir, tabletDir(firstUID), "mysql.sock"); len(socket) > 107 {
		return errors.Join(fmt.Errorf("the path %s is too long for a socket: set TMPDIR to a shorter one", socket), os.RemoveAll(c.dir))
	}
	return c.ids.own(c.dir)
}

// start brings the processes up, in the order in which they need each other.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.layout(); err != nil {
		return err
	}
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{fmt.Sprintf("etcd, vtctld and %d MySQL servers", len(c.tablets)), c.startServers},
		{"keyspaces and shards", c.createKeyspaces},
		{fmt.Sprintf("%d vttablets", len(c.tablets)), c.startTablets},
		{"primaries", c.electPrimaries},
		{"schema and vschema", c.applySchemas},
		{"vtgate", c.startGate},
	}
	for _, step := range steps {
		if err := c.step(ctx, step.name, step.run); err != nil {
			return err
		}
	}
	return nil
}

// step runs one part of the start, bounded in time, and reports it.
func (c *Cluster) step(ctx context.Context, name string, run func(context.Context) error) error {
	begin := time.Now()
	fmt.Fprintf(c.opts.Out, "  starting %s\n", name)
	timeout := fmt.Errorf("not done after %s; the logs are in %s", c.opts.StepTimeout, c.opts.LogDir)
	stepCtx, cancel := context.WithTimeoutCause(ctx, c.opts.StepTimeout, timeout)
	defer cancel()
	defer c.stillStarting(name, begin)()
	if err := run(stepCtx); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	fmt.Fprintf(c.opts.Out, "  started  %s in %.1fs\n", name, time.Since(begin).Seconds())
	return nil
}

// stillStarting reports every ten seconds until the returned function is called.
func (c *Cluster) stillStarting(name string, begin time.Time) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(10 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(c.opts.Out, "  still starting %s after %.0fs\n", name, time.Since(begin).Seconds())
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// waitFor polls check until it succeeds, ctx is done or one of the processes
// that it depends on has ended.
func waitFor(ctx context.Context, what string, needs []*Process, check func(context.Context) error) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, process := range needs {
			if dead := process.Alive(); dead != nil {
				return dead
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last: %w)", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

// forEach runs f for every item at the same time and returns all errors.
func forEach[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { errs[i] = f(item) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// process describes a program of the cluster; the caller starts it.
func (c *Cluster) process(name, path string, args ...string) *Process {
	return &Process{
		Name:    name,
		LogFile: filepath.Join(c.opts.LogDir, name+".log"),
		path:    path,
		args:    args,
		env:     c.env(),
		dir:     c.dir,
		ids:     c.ids,
	}
}

// env is the whole environment of the cluster's processes: what the caller's
// has besides could only make a run differ from the next.
func (c *Cluster) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + c.dir,
		"TMPDIR=" + c.dir,
		"VTROOT=" + c.dir,
		"VTDATAROOT=" + c.dir,
		"VT_MYSQL_ROOT=" + c.opts.MySQLRoot,
		"EXTRA_MY_CNF=" + c.extraCnf(),
	}
}

// KeepData makes Close leave the data directory in place, for a look at what
// went wrong.
func (c *Cluster) KeepData() { c.keepData = true }

// Dir is the data directory (VTDATAROOT).
func (c *Cluster) Dir() string { return c.dir }

// LogDir is the directory of the logs.
func (c *Cluster) LogDir() string { return c.opts.LogDir }

// stopGrace is how long a process may take to end by itself.
const stopGrace = 15 * time.Second

// Close ends every process, those that use others first, and removes the data
// directory. It can be called more than once.
func (c *Cluster) Close() {
	c.closeOnce.Do(func() {
		c.stopAll(c.vtgate)
		c.stopAll(c.tabletProcesses()...)
		c.stopAll(c.vtctld)
		if !c.keeps() {
			// An orderly end would only write pages to files that go next.
			c.killAll(c.mysqlProcesses())
		}
		c.stopAll(c.mysqlProcesses()...)
		c.stopAll(c.etcd)
		c.saveErrorLogs()
		if c.keeps() {
			fmt.Fprintf(c.opts.Out, "  the data directory %s stays\n", c.dir)
			return
		}
		if err := os.RemoveAll(c.dir); err != nil {
			fmt.Fprintf(c.opts.Out, "  cannot remove the data directory: %v\n", err)
		}
	})
}

// keeps tells whether the data directory stays.
func (c *Cluster) keeps() bool { return c.opts.Keep || c.keepData }

// killAll kills processes at once.
func (c *Cluster) killAll(list []*Process) {
	for _, process := range list {
		_ = process.Kill() // that it has ended already is as good
	}
}

// stopAll stops processes at the same time; nil stands for one that was never
// made.
func (c *Cluster) stopAll(list ...*Process) {
	_ = forEach(list, func(process *Process) error {
		if process != nil {
			process.Stop(stopGrace)
		}
		return nil
	})
}
