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
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"mergebackoff/tools/sim"
)

// A worker writes its summary to stdout now and then, behind summaryMark, and
// everything that is for people to stderr.
const summaryMark = "summary "

// team is several processes that share the work: each runs one history at a time.
type team struct {
	mu        sync.Mutex
	summaries []*sim.Summary
	begun     time.Time
}

// share starts the workers, waits for them, and tells what they did together. It
// returns the command's status.
func share() int {
	t := &team{summaries: make([]*sim.Summary, *workers), begun: time.Now()}
	commands := make([]*exec.Cmd, *workers)
	ended := make(chan error, *workers)
	for i := range commands {
		arguments := append(os.Args[1:], fmt.Sprintf("-worker=%d", i), fmt.Sprintf("-workers=%d", *workers), fmt.Sprintf("-seed=%d", *seed))
		command := exec.Command(os.Args[0], arguments...)
		command.Stderr = os.Stderr
		output, err := command.StdoutPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "sim: cannot start a worker:", err)
			return 1
		}
		commands[i] = command
		go func() {
			t.listen(i, output)
			ended <- command.Wait()
		}()
	}
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	status := 0
	for left := len(commands); left > 0; {
		select {
		case err := <-ended:
			left--
			if err != nil && status == 0 {
				// One failure is enough.
				status = 1
				for _, command := range commands {
					_ = command.Process.Kill()
				}
			}
		case <-ticker.C:
			fmt.Fprintln(os.Stderr, t)
		}
	}
	fmt.Println(t)
	return status
}

// listen takes in what a worker says.
func (t *team) listen(worker int, output io.Reader) {
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		text, ok := strings.CutPrefix(scanner.Text(), summaryMark)
		if !ok {
			continue
		}
		summary := &sim.Summary{}
		if err := json.Unmarshal([]byte(text), summary); err == nil {
			t.mu.Lock()
			t.summaries[worker] = summary
			t.mu.Unlock()
		}
	}
}

func (t *team) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := &sim.Summary{}
	for _, summary := range t.summaries {
		if summary != nil {
			all.Merge(summary)
		}
	}
	return tell(all, t.begun)
}

// tell says what was done, and how fast.
func tell(s *sim.Summary, begun time.Time) string {
	took := time.Since(begun)
	if len(s.Faults) > 0 {
		fmt.Fprint(os.Stderr, s.Faults)
	}
	return fmt.Sprintf("%s; %v, %.0f runs a minute, first seed %d", s, took.Round(time.Second), float64(s.Runs)/took.Minutes(), *seed)
}

// teller tells a team, or people, what a worker has done so far.
type teller struct {
	summary     *sim.Summary
	begun, told time.Time
}

// progress is to be called now and then.
func (t *teller) progress() {
	switch every := time.Since(t.told); {
	case *worker >= 0 && every > time.Second:
		t.say()
	case *worker < 0 && every > 10*time.Second:
		t.told = time.Now()
		fmt.Fprintln(os.Stderr, tell(t.summary, t.begun))
	}
}

// say says what was done.
func (t *teller) say() {
	t.told = time.Now()
	if *worker < 0 {
		fmt.Println(tell(t.summary, t.begun))
		return
	}
	text, err := json.Marshal(t.summary)
	if err == nil {
		fmt.Printf("%s%s\n", summaryMark, text)
	}
}
