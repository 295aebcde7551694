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

// Command testreport reads what "go test -json" or test2json prints and makes
// it fit for a person: a line of progress now and then, the failures with what
// belongs to them, and the counts at the end. All output goes to a log file.
// Its exit status is 1 if something failed or nothing ran.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	logPath := flag.String("log", "", "file for the tests' whole output")
	summary := flag.String("summary", "", "file to write the counts and the names of failures to, for a script")
	every := flag.Duration("every", 15*time.Second, "time between two lines of progress")
	flag.Parse()

	// Ctrl-C goes to the tests too: say what they came to, at the end of input.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	if err := run(os.Stdin, os.Stderr, *logPath, *summary, *every); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run reports on all events of in.
func run(in io.Reader, out io.Writer, logPath, summary string, every time.Duration) error {
	log := io.Discard
	if logPath != "" {
		file, err := os.Create(logPath)
		if err != nil {
			return err
		}
		defer file.Close()
		log = file
	}
	r := newReport(out, log)
	if err := r.read(in, every); err != nil {
		return fmt.Errorf("reading the tests' output: %w", err)
	}
	r.printEnd()
	if summary != "" {
		if err := os.WriteFile(summary, []byte(r.summary()), 0o644); err != nil {
			return err
		}
	}
	if len(r.failed) > 0 {
		if logPath != "" {
			return fmt.Errorf("%d failed; all output: %s", len(r.failed), logPath)
		}
		return fmt.Errorf("%d failed", len(r.failed))
	}
	if r.passed == 0 {
		return fmt.Errorf("no test ran")
	}
	return nil
}
