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

// Command demo merges two shards of a real Vitess cluster under a load that
// hands unique values between them. Its exit status is 0 only if the target
// equals the union of the sources, VDiff is clean and the traffic was switched;
// 1 if not; 2 if it was called wrongly; 130 if it was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"mergebackoff/tools/cluster"
	"mergebackoff/tools/demo"
)

func main() {
	os.Exit(run())
}

// errInterrupted is why a run ends on a signal.
var errInterrupted = errors.New("interrupted")

// run does everything and returns the exit status.
func run() int {
	cfg, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	handleSignals(cancel)
	cfg.Out = &output{w: os.Stdout, cancel: cancel}

	summary, err := demo.Run(ctx, cfg)
	if errors.Is(err, errInterrupted) || errors.Is(context.Cause(ctx), errInterrupted) {
		fmt.Fprintln(cfg.Out, "Interrupted; every process has ended.")
		return 130
	}
	summary.Print(cfg.Out)
	return report(cfg, summary, err)
}

// report prints the last line and returns the exit status.
func report(cfg *demo.Config, summary *demo.Summary, err error) int {
	died := new(cluster.StreamError)
	switch {
	case err == nil && summary.Equal:
		fmt.Fprintln(cfg.Out, "\nPASS: the target equals the union of the sources.")
		return 0
	case cfg.Stock && errors.As(err, &died):
		fmt.Fprintf(cfg.Out, "\nFAIL, as expected of stock Vitess: the workflow has died.\n  %v\n"+
			"Each shard was right at every instant, and so was their union; only the order in which\n"+
			"the two streams arrived was not. The patched vttablet survives this.\n", died)
	default:
		fmt.Fprintf(cfg.Out, "\nFAIL: %v\n", err)
	}
	return 1
}

// parseFlags turns the command line into a configuration.
func parseFlags(args []string) (*demo.Config, error) {
	cfg := new(demo.Config)
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	opts := &cfg.Cluster
	flags.StringVar(&opts.Bin, "bin", "bin", "directory of etcd, mysqlctl, vtctld, vtctldclient, vtgate and the vttablets")
	flags.StringVar(&opts.MySQLRoot, "mysql-root", os.Getenv("VT_MYSQL_ROOT"), "prefix of the MySQL server")
	vitess := flags.String("vitess", "", "Vitess source tree, for config/init_db.sql")
	logs := flags.String("logs", ".work/logs", "directory in which the run makes one for its logs")
	flags.BoolVar(&cfg.Stock, "stock", false, "use the unpatched vttablet, and see the workflow die")
	short := flags.Bool("short", false, "a short run: 10s of hot load")
	flags.DurationVar(&cfg.Duration, "duration", 30*time.Second, "how long to hand over hot values")
	flags.IntVar(&cfg.HotValues, "hot-values", 8, "number of unique values that go around")
	flags.IntVar(&cfg.Clients, "clients", 4, "number of clients that hand them over")
	flags.IntVar(&cfg.Rate, "rate", 0, "bound on their transactions per second; 0 is none")
	flags.IntVar(&cfg.BulkRows, "bulk-rows", 1000, "rows per transaction that makes one stream lag; 0 is no such transactions")
	flags.IntVar(&cfg.Faults, "faults", 0, "strike the target with so many faults, at random: SIGKILL of vttablet and mysqld, connections cut")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "seed of the load; 0 chooses one")
	flags.StringVar(&cfg.Samples, "samples", "", "file to write the progress to as JSON; stormchart draws it")
	flags.BoolVar(&opts.Keep, "keep", false, "keep the data directory")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *short {
		cfg.Duration = 10 * time.Second
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64N(1_000_000)
	}
	if cfg.HotValues < 1 || cfg.Clients < 1 || cfg.Duration <= 0 || cfg.BulkRows < 0 || cfg.Rate < 0 || cfg.Faults < 0 {
		return nil, errors.New("-hot-values, -clients and -duration must be positive, -rate, -bulk-rows and -faults not negative")
	}
	return cfg, complete(opts, cfg.Stock, *vitess, *logs)
}

// complete fills in the paths that follow from the others.
func complete(opts *cluster.Options, stock bool, vitess, logs string) error {
	if vitess == "" || opts.MySQLRoot == "" {
		return errors.New("-vitess and -mysql-root (or VT_MYSQL_ROOT) are required; scripts/demo.sh sets them")
	}
	opts.Vttablet = filepath.Join(opts.Bin, "vttablet")
	if stock {
		opts.Vttablet += "-stock"
	}
	opts.InitDB = filepath.Join(vitess, "config", "init_db.sql")
	opts.LogDir = filepath.Join(logs, "demo-"+time.Now().Format("20060102-150405"))
	return nil
}

// handleSignals ends the run in order on the first signal, and at once on the
// second: the children then die with this process.
func handleSignals(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A reader that goes away shows as a write error, see output.
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "\nInterrupted: ending the cluster, which takes a few seconds. Once more ends it at once.")
		cancel(errInterrupted)
		<-signals
		os.Exit(130)
	}()
}

// output writes to the terminal; when nobody reads any more, the run ends.
type output struct {
	mu     sync.Mutex
	w      io.Writer
	cancel context.CancelCauseFunc
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(data)
	if err != nil {
		o.cancel(fmt.Errorf("output: %w", err))
	}
	return n, err
}
