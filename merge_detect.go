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

package mergebackoff

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// excludeFilter is the filter of a rule that keeps a table out of a stream. It
// is vreplication's ExcludeStr, which this package cannot import.
const excludeFilter = "exclude"

// Stream is what merge detection knows of one row of _vt.vreplication.
type Stream struct {
	// ID is the row's id, unique on a target database.
	ID int32
	// Workflow is the name of the workflow that the stream belongs to. Peers
	// need not share it: a shard by shard MoveTables has one workflow a shard.
	Workflow string
	// WorkflowType tells Online DDL apart, which never merges.
	WorkflowType binlogdatapb.VReplicationWorkflowType
	// Source says where the stream reads and which tables it writes.
	Source *binlogdatapb.BinlogSource
	// State is the last state that this process saw or wrote.
	State binlogdatapb.VReplicationWorkflowState
	// Silent is set for a stream that runs with merge backoff switched off: it
	// announces no commit, and does not say how far it has read.
	Silent bool
	// Err is why the row cannot run: it could not be read, or its source does
	// not parse. Which tables it would write is then not known.
	Err error
}

// canMove reports whether the stream can commit anything without an operator.
func (s Stream) canMove() bool {
	return s.Err == nil &&
		s.State != binlogdatapb.VReplicationWorkflowState_Stopped &&
		s.State != binlogdatapb.VReplicationWorkflowState_Error
}

// String names the stream as the messages do: its id, its workflow, where it
// reads, and its state where that keeps it from moving.
func (s Stream) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stream %d (%s", s.ID, s.Workflow)
	if s.Source != nil {
		b.WriteString(", source " + s.source())
	}
	switch {
	case s.Err != nil:
		fmt.Fprintf(&b, ", unreadable: %v", s.Err)
	case !s.canMove():
		fmt.Fprintf(&b, ", %s", s.State)
	}
	b.WriteByte(')')
	return b.String()
}

// source names the stream's source shard.
func (s Stream) source() string {
	return s.Source.GetKeyspace() + "/" + s.Source.GetShard()
}

// merges reports whether a stream of this kind takes part in merges at all.
// Online DDL copies one table of one shard into a shadow of its own: a unique
// violation there is the migration's failure, and must stay one.
func (s Stream) merges() bool {
	return s.WorkflowType != binlogdatapb.VReplicationWorkflowType_OnlineDDL
}

// peersAmong returns those of others that can write a target table that self can
// write too, by id. Whether they run, or of which workflow they are, does not
// matter: a stopped peer cannot help now, but may be started.
//
// tables are the tables of the target database, as the plan builder sees them:
// a rule may be a regular expression, and only a table that exists can meet two
// streams. A stream whose row could not be read counts as a peer, since nobody
// can say that it is none. The error is that of self's own rules, and names the
// rule.
func peersAmong(self Stream, others []Stream, tables []string) ([]Stream, error) {
	if !self.merges() {
		return nil, nil
	}
	own, err := compileRules(self.Source)
	if err != nil {
		return nil, fmt.Errorf("stream %d: %w", self.ID, err)
	}
	written := make([]string, 0, len(tables))
	for _, table := range tables {
		if own.writes(table) {
			written = append(written, table)
		}
	}
	if len(written) == 0 {
		return nil, nil
	}
	var peers []Stream
	for _, other := range others {
		if other.ID == self.ID || !other.merges() {
			continue
		}
		if other.Err == nil {
			theirs, err := compileRules(other.Source)
			if err == nil {
				if slices.ContainsFunc(written, theirs.writes) {
					peers = append(peers, other)
				}
				continue
			}
			// Its own player refuses these rules as well: it cannot run, and
			// what it would write is not known.
			other.Err = err
		}
		peers = append(peers, other)
	}
	slices.SortFunc(peers, func(a, b Stream) int { return int(a.ID) - int(b.ID) })
	return peers, nil
}

// rule is one compiled rule of a filter: a table's name, or a pattern.
type rule struct {
	table   string
	pattern *regexp.Regexp
	exclude bool
}

func (r rule) matches(table string) bool {
	if r.pattern != nil {
		return r.pattern.MatchString(table)
	}
	return r.table == table
}

type rules []rule

// writes reports whether a stream with these rules writes the table. As for the
// plan builder (vreplication.MatchTable) the first rule that matches decides.
func (rs rules) writes(table string) bool {
	for _, r := range rs {
		if r.matches(table) {
			return !r.exclude
		}
	}
	return false
}

// compileRules reads the rules of a source. A source without a filter is of the
// older kind, which lists tables, or takes all of a key range.
func compileRules(source *binlogdatapb.BinlogSource) (rules, error) {
	var rs rules
	add := func(match string, exclude bool) error {
		if !strings.HasPrefix(match, "/") {
			rs = append(rs, rule{table: match, exclude: exclude})
			return nil
		}
		pattern, err := regexp.Compile(strings.Trim(match, "/"))
		if err != nil {
			return fmt.Errorf("rule %q of the source's filter is no valid pattern: %w", match, err)
		}
		rs = append(rs, rule{pattern: pattern, exclude: exclude})
		return nil
	}
	switch {
	case source == nil:
		return nil, nil
	case source.Filter != nil:
		for _, r := range source.Filter.Rules {
			if err := add(r.Match, r.Filter == excludeFilter); err != nil {
				return nil, err
			}
		}
	case len(source.Tables) > 0:
		for _, table := range source.Tables {
			if err := add(table, false); err != nil {
				return nil, err
			}
		}
	case source.KeyRange != nil:
		return rules{{pattern: regexp.MustCompile("")}}, nil
	}
	return rs, nil
}
