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

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mergebackoff/tools/sim"
)

// run does this process's share of the work.
func run(t *testing.T) {
	tell := &teller{summary: &sim.Summary{}, begun: time.Now(), told: time.Now()}
	defer tell.say()
	for job := range jobs() {
		if *trace {
			follow(t, job)
			return
		}
		try := tell.summary.Try
		if *everywhere {
			try = tell.summary.Everywhere
		}
		if failure := try(t, job.history, job.seed); failure != nil {
			report(t, failure)
			t.Fail()
			return
		}
		tell.progress()
	}
}

// follow tells what the scheduler does in one run.
func follow(t *testing.T, job job) {
	fmt.Println(job.history.Scenario(job.seed))
	result := sim.Run(t, job.history, sim.How{Seed: job.seed, Trace: true})
	fmt.Println(strings.Join(result.Trace, "\n"))
	fmt.Printf("%d steps, failure: %q\n", result.Steps, result.Failure)
}

func report(t *testing.T, failure *sim.Failure) {
	if !*shrink {
		fmt.Fprintln(os.Stderr, failure)
		return
	}
	text, scenario := failure.Report(t)
	fmt.Fprintln(os.Stderr, text)
	if *out == "" {
		return
	}
	if err := os.WriteFile(*out, []byte(scenario), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
	}
}

// job is a history, and a seed to run it with.
type job struct {
	history *sim.History
	seed    uint64
}

// jobs goes through this process's share of the histories.
func jobs() func(yield func(job) bool) {
	return func(yield func(job) bool) {
		count := 0
		next := func(history *sim.History, seed uint64) bool {
			count++
			mine := *worker < 0 || count%*workers == *worker
			return !mine || yield(job{history, seed})
		}
		if *scenario != "" {
			schedules(next)
			return
		}
		for i := range uint64(*n) {
			seed := *seed + i
			history, err := sim.Generate(seed, *genuine > 0 && seed%uint64(*genuine) == 0)
			if err != nil {
				panic(fmt.Sprintf("seed %d: %v", seed, err))
			}
			if !next(history, seed) {
				return
			}
		}
	}
}

// schedules goes through the schedules of the scenarios: first those that a file
// names, then others.
func schedules(next func(*sim.History, uint64) bool) {
	for _, s := range scenarios {
		for _, variant := range s.history.Variants() {
			seeds := slices.Clone(s.seeds)
			for i := range uint64(*n) {
				seeds = append(seeds, *seed+i)
			}
			for _, seed := range seeds {
				if !next(variant, seed) {
					return
				}
			}
		}
	}
}

// read is a scenario that was read.
type read struct {
	history *sim.History
	seeds   []uint64
}

// scenarios are those that were asked for.
var scenarios []read

// readScenarios reads a scenario, with or without .txt, or all of a folder.
func readScenarios(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, other := os.Stat(path + ".txt"); other == nil {
			path += ".txt"
			info, err = os.Stat(path)
		}
	}
	if err != nil {
		return err
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(path, "*.txt")); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if why := sim.Beyond(path); why != "" {
			if *worker <= 0 {
				fmt.Fprintf(os.Stderr, "%s is left out: %s\n", path, why)
			}
			continue
		}
		history, seeds, err := sim.Read(path)
		if err != nil {
			return err
		}
		scenarios = append(scenarios, read{history, seeds})
	}
	if len(scenarios) == 0 {
		return fmt.Errorf("no scenario in %s", path)
	}
	return nil
}
