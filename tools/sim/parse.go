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

package sim

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// This file reads and writes histories as scenarios: see testdata/README.md. What
// only the simulator has, a real MySQL takes for a comment where that does no harm.

// directive begins a comment that is for the simulator.
const directive = "# sim "

// beyond are the scenarios that the model cannot express, and why. They run on a
// real MySQL only. A test counts them.
var beyond = map[string]string{
	"large-transaction.txt": "its rows come from a recursive query",
}

// Beyond returns why the model cannot express a scenario; empty if it can.
func Beyond(path string) string { return beyond[filepath.Base(path)] }

// Read reads a scenario's file. seeds are those that it names.
func Read(path string) (h *History, seeds []uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return Parse(filepath.Base(path), file)
}

// Parse reads a scenario. An error names the file and the line.
func Parse(name string, text io.Reader) (h *History, seeds []uint64, err error) {
	p := &parser{h: &History{Tables: make(map[string]string)}}
	scanner := bufio.NewScanner(text)
	for n := 1; scanner.Scan(); n++ {
		if err := p.line(strings.TrimSpace(scanner.Text())); err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if n := len(p.h.Actions); n == 0 || !strings.HasPrefix(string(p.h.Actions[n-1].Kind), "expect") || p.together > 0 {
		return nil, nil, fmt.Errorf("%s: the last line must say what to expect", name)
	}
	if _, err := p.h.Defined(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return p.h, p.seeds, nil
}

type parser struct {
	h     *History
	seeds []uint64
	// together is how many of the next transactions are made at once.
	// joining is set once the first of them was.
	together int
	joining  bool
	at       string
}

var (
	sourceName = regexp.MustCompile(`\{(\d+)\}`)
	ddlWords   = []string{"alter", "create", "drop", "rename", "truncate"}
)

func (p *parser) line(line string) error {
	if rest, ok := strings.CutPrefix(line, directive); ok {
		return p.directive(strings.Fields(rest))
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch suffix, isDDL := strings.CutPrefix(verb, "ddl"); {
	case isDDL:
		p.h.Tables["t"+suffix] = rest
		return nil
	case verb == "streams":
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of streams", rest)
		}
		p.h.Streams = n
		for i := range n {
			p.add(Action{Kind: Start, Stream: i})
		}
		return nil
	case p.h.Streams == 0:
		return fmt.Errorf("%q comes in front of the line with streams", verb)
	}
	return p.action(verb, rest)
}

// directive reads what is for the simulator.
func (p *parser) directive(words []string) error {
	o := &p.h.Options
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "batches":
			o.Batches = true
		case "blind":
			o.Blind = true
		case "opaque":
			o.Opaque = true
		case "throttled":
			o.Throttled = true
		case "lockerrors":
			o.LockErrors = true
		case "stranger":
			o.Stranger = true
		case "unasked":
			o.Unasked = true
		case "noblob":
			o.Images.NoBlob = true
		case "partialjson":
			o.Images.PartialJSON = true
		case "onddl":
			n, ok := binlogdatapb.OnDDLAction_value[value]
			if !ok {
				return fmt.Errorf("%q is nothing to do at a DDL", value)
			}
			o.OnDDL = binlogdatapb.OnDDLAction(n)
		case "retained":
			o.Retained, err = strconv.Atoi(value)
		case "seed":
			var seed uint64
			seed, err = strconv.ParseUint(value, 10, 64)
			p.seeds = append(p.seeds, seed)
		case "together":
			p.together, err = strconv.Atoi(value)
		case "at":
			p.at = strings.ReplaceAll(value, "_", " ")
		default:
			return fmt.Errorf("the simulator knows no %q", name)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
	}
	return nil
}

// streams reads the numbers of streams.
func (p *parser) streams(text string) (streams []int, err error) {
	for _, word := range strings.Fields(text) {
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= p.h.Streams {
			return nil, fmt.Errorf("there is no stream %q: the %d streams are numbered from 0", word, p.h.Streams)
		}
		streams = append(streams, i)
	}
	if len(streams) == 0 {
		return nil, fmt.Errorf("which stream?")
	}
	return streams, nil
}

func (p *parser) action(verb, rest string) error {
	switch kind := Kind(verb); kind {
	case "sql", Transaction:
		return p.transaction(verb, rest)
	case Start, Stop, Come, Go, Lose, Other:
		streams, err := p.streams(rest)
		if err != nil {
			return err
		}
		for _, i := range streams {
			p.add(Action{Kind: kind, Stream: i})
		}
		return nil
	case "stopat":
		// Whose stop position, and how far ahead.
		words := strings.Fields(rest)
		if len(words) != 2 {
			return fmt.Errorf("stopat takes a stream, and how many transactions ahead")
		}
		streams, err := p.streams(words[0])
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of transactions ahead", words[1])
		}
		p.add(Action{Kind: StopAt, Stream: streams[0], N: n})
		return nil
	case Sync, Crash, Outage, Close:
		if rest != "" {
			return fmt.Errorf("%s takes nothing, not %q", verb, rest)
		}
		p.add(Action{Kind: kind})
		return nil
	case Sleep:
		d, err := time.ParseDuration(rest + "ms")
		if err != nil {
			return err
		}
		p.add(Action{Kind: Sleep, For: d})
		return nil
	case "expect":
		what, duration, _ := strings.Cut(rest, " ")
		if what != "converge" && what != "error" {
			return fmt.Errorf("nobody can expect %q, only converge or error", what)
		}
		if _, err := time.ParseDuration(duration); err != nil {
			return err
		}
		p.add(Action{Kind: Kind("expect " + what)})
		return nil
	}
	return fmt.Errorf("the simulator knows no %q", verb)
}

func (p *parser) add(action Action) {
	action.At, p.at = p.at, ""
	p.h.Actions = append(p.h.Actions, action)
}

// transaction reads statements, which are all for one source.
func (p *parser) transaction(verb, text string) error {
	texts := splitStatements(text)
	if verb == "sql" && len(texts) > 1 {
		return fmt.Errorf("sql takes one statement, not %d; several make a tx", len(texts))
	}
	action := Action{Kind: Transaction, Stream: -1}
	for _, text := range texts {
		if first, _, _ := strings.Cut(strings.ToLower(text), " "); slices.Contains(ddlWords, first) {
			action.Kind = DDL
			m := sourceName.FindStringSubmatch(text)
			if m == nil || len(texts) > 1 {
				return fmt.Errorf("the simulator does not understand the DDL %q", text)
			}
			action.Stream, _ = strconv.Atoi(m[1])
			continue
		}
		statement, err := ParseSQL(text)
		if err != nil {
			return err
		}
		m := sourceName.FindStringSubmatch(statement.Table)
		if m == nil {
			return fmt.Errorf("%q is not the table of a source", statement.Table)
		}
		i, _ := strconv.Atoi(m[1])
		if action.Stream >= 0 && i != action.Stream {
			return fmt.Errorf("a transaction is on one source, not on %d and %d", action.Stream, i)
		}
		action.Stream = i
		action.SQL = append(action.SQL, statement)
	}
	if action.Stream < 0 || action.Stream >= p.h.Streams {
		return fmt.Errorf("%q is on none of the %d sources", text, p.h.Streams)
	}
	p.addTransaction(action)
	return nil
}

// addTransaction adds a transaction, to the one in front if both are made at once.
func (p *parser) addTransaction(action Action) {
	if p.together > 0 {
		p.together--
		if last := len(p.h.Actions) - 1; p.joining {
			p.h.Actions[last].And = append(p.h.Actions[last].And, action)
			p.joining = p.together > 0
			return
		}
		p.joining = p.together > 0
	}
	p.add(action)
}

// splitStatements splits at semicolons outside of quotes.
func splitStatements(text string) (parts []string) {
	quoted, start := false, 0
	for i, c := range text + ";" {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ';' && !quoted:
			if part := strings.TrimSpace(text[start:i]); part != "" {
				parts = append(parts, part)
			}
			start = min(i+1, len(text))
		}
	}
	return parts
}
