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

package vreplication

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/sqlparser"
)

type (
	// mergeScenario is the history of a merge, as a file of
	// mergebackoff/testdata tells it. See the README there for the format.
	mergeScenario struct {
		streams int
		ddl     string
		steps   []mergeStep
	}

	// mergeStep is a line of a scenario.
	mergeStep struct {
		line       int
		verb       string // the first word; "expect converge" and "expect error" are verbs
		statements []string
		streams    []int
		duration   time.Duration
	}
)

// readMergeScenario reads a file. An error names the file and the line.
func readMergeScenario(path string) (*mergeScenario, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseMergeScenario(filepath.Base(path), file)
}

func parseMergeScenario(name string, r io.Reader) (*mergeScenario, error) {
	s := &mergeScenario{}
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.parseLine(n, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(s.steps) == 0 || !strings.HasPrefix(s.steps[len(s.steps)-1].verb, "expect") {
		return nil, fmt.Errorf("%s: the last line must say what to expect", name)
	}
	return s, nil
}

func (s *mergeScenario) parseLine(n int, line string) (err error) {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	step := mergeStep{line: n, verb: verb}
	switch verb {
	case "streams":
		s.streams, err = strconv.Atoi(rest)
		if err != nil || s.streams < 1 {
			return fmt.Errorf("%q is no number of streams", rest)
		}
		return nil
	case "ddl":
		if !strings.HasPrefix(rest, "(") {
			return fmt.Errorf("a table's columns and keys must be in parentheses, not %q", rest)
		}
		s.ddl = rest
		return nil
	}
	if s.streams == 0 || s.ddl == "" {
		return fmt.Errorf("%q comes in front of the lines with streams and ddl", verb)
	}
	switch verb {
	case "sql", "tx":
		step.statements, err = s.parseStatements(verb, rest)
	case "sync":
		if rest != "" {
			err = fmt.Errorf("sync takes nothing, not %q", rest)
		}
	case "stop", "start":
		step.streams, err = s.parseStreams(rest)
	case "sleep":
		step.duration, err = time.ParseDuration(rest + "ms")
	case "expect":
		what, duration, _ := strings.Cut(rest, " ")
		if what != "converge" && what != "error" {
			return fmt.Errorf("nobody can expect %q, only converge or error", what)
		}
		step.verb = "expect " + what
		step.duration, err = time.ParseDuration(duration)
	default:
		return fmt.Errorf("%q is none of streams, ddl, sql, tx, sync, stop, start, sleep, expect", verb)
	}
	if err != nil {
		return err
	}
	s.steps = append(s.steps, step)
	return nil
}

var mergeSourceName = regexp.MustCompile(`\{(\d+)\}`)

func (s *mergeScenario) parseStatements(verb, text string) ([]string, error) {
	statements, err := sqlparser.NewTestParser().SplitStatementToPieces(text)
	if err != nil {
		return nil, err
	}
	if len(statements) == 0 {
		return nil, fmt.Errorf("%s needs a statement", verb)
	}
	if verb == "sql" && len(statements) > 1 {
		return nil, fmt.Errorf("sql takes one statement, not %d; several make a tx", len(statements))
	}
	for _, match := range mergeSourceName.FindAllStringSubmatch(text, -1) {
		if _, err := s.parseStreams(match[1]); err != nil {
			return nil, err
		}
	}
	return statements, nil
}

func (s *mergeScenario) parseStreams(text string) (streams []int, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, errors.New("which stream?")
	}
	for _, word := range words {
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= s.streams {
			return nil, fmt.Errorf("there is no stream %q: the %d streams are numbered from 0", word, s.streams)
		}
		streams = append(streams, i)
	}
	return streams, nil
}

// TestMergeScenarioFormat shows that a bad scenario is refused with the file and
// the line, so that a typing error cannot pass for a test.
func TestMergeScenarioFormat(t *testing.T) {
	const head = "# what it shows\nstreams 2\nddl (id int primary key)\n"
	for text, want := range map[string]string{
		"":                                       "test.txt: the last line must say what to expect",
		head + "sync\n":                          "test.txt: the last line must say what to expect",
		"streams two\n":                          `test.txt:1: "two" is no number of streams`,
		"streams 0\n":                            `test.txt:1: "0" is no number of streams`,
		"streams 2\nddl id int\n":                "test.txt:2: a table's columns and keys must be in parentheses",
		"sync\n":                                 `test.txt:1: "sync" comes in front of`,
		head + "\nslq delete from {0}\n":         `test.txt:5: "slq" is none of`,
		head + "sql\n":                           "test.txt:4: sql needs a statement",
		head + "sql delete from {0}; select 1\n": "test.txt:4: sql takes one statement, not 2",
		head + "tx delete from {0}; delete {2}\n":  `test.txt:4: there is no stream "2"`,
		head + "sync 1\n":                          "test.txt:4: sync takes nothing",
		head + "stop\n":                            "test.txt:4: which stream?",
		head + "stop 0 2\n":                        `test.txt:4: there is no stream "2"`,
		head + "start -1\n":                        `test.txt:4: there is no stream "-1"`,
		head + "sleep long\n":                      "test.txt:4: time: invalid duration",
		head + "expect success 1s\n":               `test.txt:4: nobody can expect "success"`,
		head + "expect converge\n":                 "test.txt:4: time: invalid duration",
		head + "stop 0 1\nsync\nexpect error 1s\n": "",
	} {
		_, err := parseMergeScenario("test.txt", strings.NewReader(text))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}
