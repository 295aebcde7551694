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

// Command mutants plants one bug after the other in the package mergebackoff, and has
// whatever is to find them look for them.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"mergebackoff/tools/mutants"
)

var (
	n        = flag.Int("n", 3000, "how many random histories the simulator gets for each bug")
	seed     = flag.Uint64("seed", 1, "the seed of the first")
	fuzztime = flag.Duration("fuzztime", time.Minute, "how long the fuzzer gets for each bug, on top of the inputs of every go test")
	patience = flag.Duration("patience", 10*time.Minute, "after how long a search is given up")
	only     = flag.String("run", "", "plant only those whose name matches this regular expression")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := run(ctx)
	if err == nil && missed > 0 {
		err = fmt.Errorf("%d searches found nothing", missed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

// hunt is where the repository is, and where files may be left for a while.
type hunt struct {
	root, scratch string
}

func run(ctx context.Context) (missed int, err error) {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return 0, fmt.Errorf("-run: %w", err)
	}
	h := hunt{}
	if h.root, err = filepath.Abs("."); err != nil {
		return 0, err
	}
	if h.scratch, err = os.MkdirTemp("", "mutants-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(h.scratch)
	if err := h.control(ctx); err != nil {
		return 0, err
	}
	searches := 0
	for _, m := range mutants.List {
		if !pattern.MatchString(m.Name) {
			continue
		}
		for _, by := range m.By {
			searches++
			begun := time.Now()
			how, found, err := h.search(ctx, m, by)
			if err != nil {
				return 0, fmt.Errorf("%q: %w", m.Name, err)
			}
			result := "found "
			if !found {
				result = "MISSED"
				missed++
			}
			fmt.Printf("%s  %-9s %4.0fs  %s\n                        %s\n", result, by, time.Since(begun).Seconds(), m.Name, how)
		}
	}
	if searches == 0 {
		return 0, fmt.Errorf("no mutant's name matches %q", *only)
	}
	fmt.Printf("%d of %d found\n", searches-missed, searches)
	return missed, nil
}

// control runs the simulator without a bug: one that fails anyway finds nothing.
func (h hunt) control(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "Without a bug first, then one bug after the other: %d histories each, first seed %d.\n", *n, *seed)
	how, found, err := h.simulate(ctx, nil)
	if err == nil && found {
		err = fmt.Errorf("the simulator fails without a bug: %s", how)
	}
	return err
}

func (h hunt) search(ctx context.Context, m mutants.Mutant, by mutants.Finder) (how string, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(h.root, m.File))
	if err != nil {
		return "", false, err
	}
	planted, err := m.Plant(string(text))
	if err != nil {
		return "", false, err
	}
	switch by {
	case mutants.Fuzzer:
		return h.test(ctx, m.File, planted,
			[]string{"test", "-run", "^FuzzNetEffect$", "."},
			[]string{"test", "-run", "^$", "-fuzz", "^FuzzNetEffect$", "-fuzztime", fuzztime.String(), "."})
	case mutants.Unit:
		return h.test(ctx, m.File, planted, []string{"test", "-short", "."})
	}
	mutant := filepath.Join(h.scratch, m.File)
	if err := os.WriteFile(mutant, []byte(planted), 0o644); err != nil {
		return "", false, err
	}
	return h.simulate(ctx, map[string]string{filepath.Join(h.root, m.File): mutant})
}

// simulate builds the simulator with some files replaced, and runs it.
func (h hunt) simulate(ctx context.Context, replace map[string]string) (how string, found bool, err error) {
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", false, err
	}
	overlayFile, binary := filepath.Join(h.scratch, "overlay.json"), filepath.Join(h.scratch, "sim")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return "", false, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlayFile, "-o", binary, "./cmd/sim")
	build.Dir = filepath.Join(h.root, "tools")
	if output, err := build.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("building: %w\n%s", err, output)
	}
	output, failed, err := h.run(ctx, h.root, binary, "-n", fmt.Sprint(*n), "-seed", fmt.Sprint(*seed), "-shrink=false")
	return first(output, "FAILED with seed", "panic:", "fatal error:"), failed, err
}

// test runs one go command after the other, until one fails, in a copy of the package
// with one file replaced. A copy, since an input that fails is kept in the package.
func (h hunt) test(ctx context.Context, file, planted string, commands ...[]string) (how string, found bool, err error) {
	dir := filepath.Join(h.scratch, "package")
	if err := os.RemoveAll(dir); err != nil {
		return "", false, err
	}
	if err := copyPackage(h.root, dir); err != nil {
		return "", false, err
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(planted), 0o644); err != nil {
		return "", false, err
	}
	for _, arguments := range commands {
		output, failed, err := h.run(ctx, dir, "go", arguments...)
		if strings.Contains(output, "[build failed]") {
			err = errors.New(output)
		}
		if failed || err != nil {
			return first(output, "--- FAIL:", "Error:", "panic:"), failed, err
		}
	}
	return "", false, nil
}

// copyPackage copies the package alone: the files at the root, and the testdata.
func copyPackage(from, to string) error {
	if err := os.CopyFS(filepath.Join(to, "testdata"), os.DirFS(filepath.Join(from, "testdata"))); err != nil {
		return err
	}
	for _, pattern := range []string{"*.go", "go.mod", "go.sum"} {
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs a command whose failure is a bug found. One that takes too long is ended,
// and has found nothing.
func (h hunt) run(ctx context.Context, dir, name string, arguments ...string) (output string, failed bool, err error) {
	limited, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	var both bytes.Buffer
	command := exec.CommandContext(limited, name, arguments...)
	command.Dir, command.Stdout, command.Stderr = dir, &both, &both
	// A process of its own group, so that its workers end with it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	err = command.Run()
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case limited.Err() != nil:
		return fmt.Sprintf("FAILED with seed ?: it was not through after %v", *patience), false, nil
	case errors.As(err, &exit):
		return both.String(), true, nil
	}
	return both.String(), false, err
}

// first returns the first line of output with one of the marks, or its last line.
func first(output string, marks ...string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	line := lines[len(lines)-1]
	for _, mark := range marks {
		for _, l := range lines {
			if strings.Contains(l, mark) {
				return cut(l)
			}
		}
	}
	return cut(line)
}

func cut(line string) string {
	const most = 220
	line = strings.TrimSpace(line)
	if len(line) > most {
		return line[:most] + "..."
	}
	return line
}
