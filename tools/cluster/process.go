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
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one program of the cluster. It is always a direct child of this
// process, in a session of its own, and the kernel kills it when this process
// dies, so that not even a SIGKILL of the caller leaves it behind.
type Process struct {
	// Name is used in messages and names the log file.
	Name string
	// LogFile receives stdout and stderr, appended over restarts.
	LogFile string

	path string
	args []string
	env  []string
	dir  string
	ids  *identity

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// errNotRunning is returned for a signal to a process that was never started
// or has ended.
var errNotRunning = errors.New("not running")

// launcher starts children from one OS thread that never ends: the parent
// death signal is tied to the thread that forked, not to the process.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startCommand starts cmd from the launcher's thread.
func startCommand(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	launcher() <- func() { result <- cmd.Start() }
	return <-result
}

// Start starts the process, or starts it again after it has ended.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil && p.running() {
		return fmt.Errorf("%s is running already", p.Name)
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "# %s\n", strings.Join(append([]string{p.path}, p.args...), " "))
	path, args := p.ids.commandLine(p.path, p.args)
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env, cmd.Dir = p.env, p.dir
	cmd.SysProcAttr = p.ids.sysProcAttr()
	if err := startCommand(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err = cmd, done, nil
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(done)
	}()
	return nil
}

// running tells whether the started process has not ended; p.mu is held.
func (p *Process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Pid is the id of the running process, or 0.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil || !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Alive returns nil while the process runs, and otherwise an error that says
// how it ended, with the end of its log.
func (p *Process) Alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		return fmt.Errorf("%s: %w", p.Name, errNotRunning)
	}
	if p.running() {
		return nil
	}
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended (%s); its log %s ends with:\n%s", p.Name, how, p.LogFile, tail(p.LogFile, 12))
}

// Signal sends sig to the process. The process is an unreaped child, so its
// id cannot have gone to somebody else.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil || !p.running() {
		return fmt.Errorf("%s: %w", p.Name, errNotRunning)
	}
	return p.cmd.Process.Signal(sig)
}

// Kill ends the process with SIGKILL, as a crash would, and waits for its end.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Pause has the process stand still, as on a machine that does not answer, until
// Resume.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets the process go on after Pause.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Stop asks the process to end and waits; after grace it is killed.
func (p *Process) Stop(grace time.Duration) {
	if p.Signal(syscall.SIGTERM) != nil {
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		_ = p.Kill()
	}
}

// run runs a short-lived program to its end, under the same rules as the
// long-lived ones, and returns its standard output.
func (ids *identity) run(ctx context.Context, env []string, dir, path string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	name, list := ids.commandLine(path, args)
	cmd := exec.CommandContext(ctx, name, list...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env, cmd.Dir = env, dir
	cmd.SysProcAttr = ids.sysProcAttr()
	cmd.WaitDelay = time.Second
	err := startCommand(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		text := strings.TrimSpace(stderr.String())
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", path, strings.Join(args, " "), err, lastLines(text, 12))
	}
	return stdout.String(), nil
}

// tail returns the last n lines of a file, or why it cannot be read.
func tail(file string, n int) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return lastLines(strings.TrimSpace(string(data)), n)
}

// lastLines returns the last n lines of s.
func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
