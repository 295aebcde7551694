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
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// keepLines bounds what is remembered of a running test and shown of a failed
// one. The log has it all.
const keepLines = 60

// logLine matches the lines of Vitess's logger (structured, coloured, or glog's),
// of which a test prints thousands and which hide what failed.
var logLine = regexp.MustCompile(`^(\{"time"|\x1b\[2m\d{4}-|[IWE]\d{4} \d\d:\d\d:|time=|\d{4}[-/]\d\d[-/]\d\d[ T])`)

type (
	// event is one line of test2json's output.
	event struct {
		Action     string
		Package    string
		ImportPath string
		Test       string
		Output     string
	}

	// report is what has been seen so far.
	report struct {
		out, log io.Writer
		begin    time.Time
		passed   int
		skipped  int
		failed   []string
		running  []string
		// open has the packages that have begun and not ended.
		open   map[string]bool
		output map[string][]string
	}
)

func newReport(out, log io.Writer) *report {
	return &report{
		out:    out,
		log:    log,
		begin:  time.Now(),
		open:   map[string]bool{},
		output: map[string][]string{},
	}
}

// read handles every event until the end of input.
func (r *report) read(in io.Reader, every time.Duration) error {
	lines := make(chan string)
	done := make(chan error, 1)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(in)
		for {
			line, err := reader.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				done <- err
				return
			}
		}
	}()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				r.close()
				return <-done
			}
			r.handle(line)
		case <-ticker.C:
			r.printProgress()
		}
	}
}

// handle takes one line of input.
func (r *report) handle(line string) {
	var ev event
	if json.Unmarshal([]byte(line), &ev) != nil || ev.Action == "" {
		// Not from the tests: the go command, say.
		io.WriteString(r.log, line)
		io.WriteString(r.out, line)
		return
	}
	key := ev.Package + " " + ev.Test
	switch ev.Action {
	case "start":
		r.open[ev.Package] = true
	case "output", "build-output":
		io.WriteString(r.log, ev.Output)
		if ev.Action == "build-output" {
			io.WriteString(r.out, ev.Output)
			return
		}
		r.remember(key, ev.Output)
	case "run":
		if !strings.Contains(ev.Test, "/") {
			r.running = append(r.running, ev.Test)
		}
	case "build-fail":
		r.failed = append(r.failed, "build of "+ev.ImportPath)
	case "pass", "skip", "fail":
		r.finish(ev, key)
	}
}

// remember keeps the last lines of a test's output, without logging.
func (r *report) remember(key, text string) {
	if logLine.MatchString(text) || strings.HasPrefix(text, "=== ") {
		return
	}
	kept := append(r.output[key], text)
	if len(kept) > keepLines {
		kept = append([]string{"    [more is in the log]\n"}, kept[len(kept)-keepLines+1:]...)
	}
	r.output[key] = kept
}

// finish takes the end of a test or of a package.
func (r *report) finish(ev event, key string) {
	defer delete(r.output, key)
	if ev.Test == "" {
		delete(r.open, ev.Package)
		// A package that fails without a failed test crashed, or did not compile.
		if ev.Action == "fail" && len(r.failed) == 0 {
			name := "package " + ev.Package
			if len(r.running) > 0 {
				name += ", while running " + strings.Join(r.running, ", ")
			}
			r.fail(name, key)
		}
		return
	}
	top := !strings.Contains(ev.Test, "/")
	switch {
	case ev.Action == "fail":
		// A parent's failure says no more than its child's.
		if top {
			r.fail(ev.Test, key)
		} else {
			r.show(ev.Test, key)
		}
	case !top:
	case ev.Action == "pass":
		r.passed++
	default:
		r.skipped++
	}
	if top {
		for i, name := range r.running {
			if name == ev.Test {
				r.running = append(r.running[:i:i], r.running[i+1:]...)
				break
			}
		}
	}
}

// close takes the end of input. A package that has not ended by then crashed or
// was killed: test2json cannot tell when it does not run the tests itself.
func (r *report) close() {
	for pkg := range r.open {
		name := "package " + pkg + ", which ended early"
		key := pkg + " "
		if len(r.running) > 0 {
			test := r.running[len(r.running)-1]
			name = test + ", in which the package ended early"
			key += test
		}
		r.fail(name, key)
	}
}

func (r *report) fail(name, key string) {
	r.failed = append(r.failed, name)
	r.show(name, key)
}

// show prints what is remembered of a failed test.
func (r *report) show(name, key string) {
	fmt.Fprintf(r.out, "FAILED %s\n", name)
	for _, line := range r.output[key] {
		fmt.Fprintf(r.out, "  %s\n", strings.TrimRight(line, "\n"))
	}
}

func (r *report) printProgress() {
	now := ""
	if len(r.running) > 0 {
		now = "; running " + r.running[len(r.running)-1]
	}
	fmt.Fprintf(r.out, "  %4.0fs: %s%s\n", time.Since(r.begin).Seconds(), r.counts(), now)
}

func (r *report) counts() string {
	text := fmt.Sprintf("%d passed, %d failed", r.passed, len(r.failed))
	if r.skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.skipped)
	}
	return text
}

func (r *report) printEnd() {
	fmt.Fprintf(r.out, "%s in %.0fs\n", r.counts(), time.Since(r.begin).Seconds())
	for _, name := range r.failed {
		fmt.Fprintf(r.out, "  failed: %s\n", name)
	}
}

// summary is what a script reads: a word and its value on each line.
func (r *report) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "passed %d\nfailed %d\nskipped %d\n", r.passed, len(r.failed), r.skipped)
	for _, name := range r.failed {
		fmt.Fprintf(&b, "name %s\n", name)
	}
	return b.String()
}
