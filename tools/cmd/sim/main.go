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

// Command sim runs merge backoff over random histories, and reports the first
// that fails, shrunk to a scenario.
package main

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"mergebackoff/tools/sim"
)

func main() {
	n := flag.Int("n", 10_000, "how many histories to run")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "the seed of the first; the others follow")
	genuine := flag.Int("genuine", 10, "every so many histories end with a genuine duplicate; 0 is none")
	replay := flag.Bool("trace", false, "run only the first, and tell what the scheduler did")
	scenario := flag.String("scenario", "", "a scenario's file to run instead of random histories, n times with other seeds")
	everywhere := flag.Bool("everywhere", false, "run each history again for each step and each fault that can come there; n is 1 unless it is set")
	testing.Init()
	flag.Parse()
	// One history at a time: with more threads the order in which streams wake
	// up, and so a seed's run, would not be the same every time.
	runtime.GOMAXPROCS(1)
	run := func(t *testing.T) {
		isGenuine := func(i int) bool { return *genuine > 0 && (*seed+uint64(i))%uint64(*genuine) == 0 }
		history := func(i int) *sim.History {
			h, err := sim.Generate(*seed+uint64(i), isGenuine(i))
			if *scenario != "" {
				h, _, err = sim.Read(*scenario)
			}
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		if *replay {
			h := history(0)
			result := sim.Run(t, h, sim.How{Seed: *seed, Trace: true})
			fmt.Println(h.Scenario())
			for _, line := range result.Trace {
				fmt.Println(line)
			}
			fmt.Printf("%d steps, failure: %q\n", result.Steps, result.Failure)
			return
		}
		summary := &sim.Summary{}
		begun := time.Now()
		last := begun
		for i := range *n {
			failure := try(t, summary, history(i), *seed+uint64(i), *everywhere)
			if failure != nil {
				fmt.Println(failure.Report(t))
				t.Fail()
				break
			}
			if time.Since(last) > 10*time.Second {
				last = time.Now()
				fmt.Printf("%d histories, %.0f a minute: %s\n", i+1, float64(i+1)/time.Since(begun).Minutes(), summary)
			}
		}
		fmt.Printf("seeds %d to %d: %s, %.0f histories a minute\n", *seed, *seed+uint64(summary.Runs)-1, summary, float64(summary.Runs)/time.Since(begun).Minutes())
	}
	// synctest asks for a test. This one ends the program.
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "sim", F: run}}, nil, nil)
}

// try runs a history, and with everywhere again and again with one fault.
func try(t *testing.T, summary *sim.Summary, h *sim.History, seed uint64, everywhere bool) *sim.Failure {
	if everywhere {
		coverage := make(sim.Coverage)
		failure, runs := sim.Everywhere(t, h, seed, coverage)
		fmt.Printf("seed %d: %d runs with one fault each\n", seed, runs-1)
		return failure
	}
	how := sim.How{Seed: seed}
	if result := summary.Add(sim.Run(t, h, how), seed); result.Failure != "" {
		return &sim.Failure{Seed: seed, History: h, How: how, What: result.Failure}
	}
	return nil
}
