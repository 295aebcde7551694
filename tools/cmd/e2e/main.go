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

// Command e2e runs merge workflows on real Vitess clusters, one scenario after the
// other. Its exit status is 0 only if all succeeded; 1 if not; 2 if it was called
// wrongly; 130 if it was interrupted.
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
	"syscall"
	"text/tabwriter"
	"time"

	"mergebackoff/tools/e2e"
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
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 2
	}
	if cfg == nil { // -list
		return 0
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "\nInterrupted: ending the cluster, which takes a few seconds. Once more ends it at once.")
		signal.Stop(signals) // the next signal ends this process, and its children die with it
		cancel(errInterrupted)
	}()

	results, err := e2e.Run(ctx, cfg)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(os.Stderr, "Interrupted; every process has ended.")
		return 130
	case err != nil:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 2
	}
	return report(os.Stdout, results)
}

// report prints what became of each scenario, and returns the exit status.
func report(out io.Writer, results []e2e.Result) int {
	failed := 0
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nscenario\tresult\ttime\trows compared\tstatements\tconflicts\n")
	for _, r := range results {
		word := "PASS"
		if r.Err != nil {
			word = "FAIL"
			failed++
		}
		fmt.Fprintf(w, "%s\t%s\t%.0fs\t%d\t%d\t%s\n", r.Scenario.Name, word, r.Duration.Seconds(), r.Rows, r.Sent, r.Conflicts)
	}
	w.Flush()
	for _, r := range results {
		if r.Err != nil {
			fmt.Fprintf(out, "\nFAIL %s: %v\n", r.Scenario.Name, r.Err)
		}
	}
	fmt.Fprintf(out, "\n%d passed, %d failed\n", len(results)-failed, failed)
	if failed > 0 {
		return 1
	}
	return 0
}

// parseFlags turns the command line into a configuration, or nil if it only asks for
// the list.
func parseFlags(args []string) (*e2e.Config, error) {
	cfg := &e2e.Config{Out: os.Stdout}
	opts := &cfg.Cluster
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "e2e [flags] [scenario ...] runs the scenarios named, or all. The flags are:")
		flags.PrintDefaults()
	}
	flags.StringVar(&opts.Bin, "bin", "bin", "directory of etcd, mysqlctl, vtctld, vtctldclient, vtgate and vttablet")
	flags.StringVar(&opts.MySQLRoot, "mysql-root", os.Getenv("VT_MYSQL_ROOT"), "prefix of the MySQL server")
	vitess := flags.String("vitess", "", "Vitess source tree, for config/init_db.sql")
	logs := flags.String("logs", ".work/logs", "directory in which the run makes one for its logs")
	list := flags.Bool("list", false, "print the scenarios")
	stock := flags.Bool("stock", false, "use the unpatched vttablet, and see the workflows die")
	flags.DurationVar(&cfg.Duration, "duration", 10*time.Second, "how long to hand over hot values, each time")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "seed of the load; 0 chooses one")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	cfg.Only = flags.Args()
	if *list {
		for _, s := range e2e.Scenarios() {
			fmt.Printf("%-11s %s\n", s.Name, s.Shows)
		}
		return nil, nil
	}
	if *vitess == "" || opts.MySQLRoot == "" {
		return nil, errors.New("-vitess and -mysql-root (or VT_MYSQL_ROOT) are required; scripts/e2e.sh sets them")
	}
	if cfg.Duration <= 0 {
		return nil, errors.New("-duration must be positive")
	}
	if cfg.Seed == 0 {
		cfg.Seed = 1 + rand.Uint64N(1_000_000)
	}
	opts.Vttablet = filepath.Join(opts.Bin, "vttablet")
	if *stock {
		opts.Vttablet += "-stock"
	}
	opts.InitDB = filepath.Join(*vitess, "config", "init_db.sql")
	opts.LogDir = filepath.Join(*logs, "e2e-"+time.Now().Format("20060102-150405"))
	return cfg, nil
}
