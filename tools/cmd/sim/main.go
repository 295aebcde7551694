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

// Command sim runs merge backoff over random histories, or over scenarios, and
// reports what fails, shrunk to a scenario.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

var (
	n          = flag.Int("n", 10_000, "how many histories to run, or schedules of each scenario")
	seed       = flag.Uint64("seed", 0, "the seed of the first; the others follow. 0 is one of the clock")
	genuine    = flag.Int("genuine", 10, "every so many histories end with a genuine duplicate; 0 is none")
	trace      = flag.Bool("trace", false, "run only the first, and tell what the scheduler did")
	scenario   = flag.String("scenario", "", "run the scenarios of this file, or folder, instead of random histories")
	everywhere = flag.Bool("everywhere", false, "run each history once more for each step and each fault that can come there")
	workers    = flag.Int("workers", runtime.NumCPU(), "how many processes to share the work")
	worker     = flag.Int("worker", -1, "which of them this is; for the command itself")
	shrink     = flag.Bool("shrink", true, "shrink what fails to a short history; else only its seed is told")
	out        = flag.String("out", "", "write the scenario of a failure to this file")
)

func main() {
	flag.Parse()
	// Behind it, so that the flags of a test are none of this command.
	testing.Init()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	if *trace || *workers < 1 {
		*workers = 1
	}
	if *scenario != "" {
		if err := readScenarios(*scenario); err != nil {
			fmt.Fprintln(os.Stderr, "sim:", err)
			os.Exit(2)
		}
	}
	if *worker < 0 && *workers > 1 {
		os.Exit(share())
	}
	// One history at a time: with more threads the order in which streams wake
	// up, and so a seed's run, would not be the same every time.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
	// synctest asks for a test. This one ends the program.
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "sim", F: run}}, nil, nil)
}
