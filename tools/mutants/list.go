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

// Package mutants is a list of bugs, each one that a person could write. Whatever
// claims to find the bugs of the package mergebackoff has to find these.
package mutants

import (
	"fmt"
	"strings"
)

// Finder is what has to find a bug.
type Finder string

const (
	// Simulator is the random histories of make sim.
	Simulator Finder = "make sim"
	// Fuzzer is the inputs of make fuzz.
	Fuzzer Finder = "make fuzz"
	// Unit is the package's own tests, for what depends on moments that the simulator
	// has no control of, or costs time and nothing else.
	Unit Finder = "make unit"
)

// Mutant is a bug, planted by replacing text in one file of the package.
type Mutant struct {
	// Name is unique in the list, and Breaks says what goes wrong on a real target.
	Name, Breaks string
	// File is a file of the package, and Old a text that is in it once.
	File, Old, New string
	// By are those that have to find it.
	By []Finder
}

// Plant returns a file's text with the bug in it.
func (m Mutant) Plant(text string) (string, error) {
	if n := strings.Count(text, m.Old); n != 1 {
		return "", fmt.Errorf("mutant %q: its text is in %s %d times, not once: bring it up to date with the package", m.Name, m.File, n)
	}
	return strings.Replace(text, m.Old, m.New, 1), nil
}

// List are all mutants.
var List = []Mutant{
	{
		Name:   "a row that came and went is deleted",
		Breaks: "the row that another stream has put under the same primary key is lost",
		File:   "net_effect.go",
		Old:    "c.known, c.born, c.gone = true, true, false",
		New:    "c.known, c.born, c.gone = c.gone, true, false",
		By:     []Finder{Simulator},
	},
	{
		Name:   "the last of two partial images counts alone",
		Breaks: "what the first one changed is stale",
		File:   "net_effect.go",
		Old:    "\tcase !complete(change.Table, change.Row):\n\t\tc.steps = append(c.steps, change)",
		New:    "\tcase !c.born && !complete(change.Table, change.Row):\n\t\tc.steps = []Change{change}",
		By:     []Finder{Simulator, Fuzzer},
	},
	{
		Name:   "a change of the primary key is an update of the row",
		Breaks: "the window's later changes of the row are made to another",
		File:   "net_effect.go",
		Old:    "\tif before == after {\n\t\treturn before.update(change)",
		New:    "\tif before == after || !before.born {\n\t\treturn before.update(change)",
		By:     []Finder{Simulator, Fuzzer},
	},
	{
		Name:   "a JSON difference is taken for the value",
		Breaks: "a document is replaced by the difference to it",
		File:   "images.go",
		Old:    "return carriesAll(table, change) && !hasJSONDiff(table, change)",
		New:    "return carriesAll(table, change)",
		By:     []Finder{Simulator, Fuzzer},
	},
	{
		Name:   "inserts come before deletes",
		Breaks: "a value is taken before it is free: streams are stuck in conflicts that are none",
		File:   "joint_write.go",
		Old:    "\t\tfunc(s statements) []Change { return s.deletes },\n\t\tfunc(s statements) []Change { return s.updates },\n\t\tfunc(s statements) []Change { return s.inserts },",
		New:    "\t\tfunc(s statements) []Change { return s.inserts },\n\t\tfunc(s statements) []Change { return s.updates },\n\t\tfunc(s statements) []Change { return s.deletes },",
		By:     []Finder{Simulator},
	},
	{
		Name:   "values that a row only passed through are taken",
		Breaks: "streams are stuck in conflicts that are none",
		File:   "net_effect.go",
		Old:    "\tif len(c.steps) < 2 {\n\t\treturn c.steps",
		New:    "\tif len(c.steps) < 2 || !c.born {\n\t\treturn c.steps",
		By:     []Finder{Simulator},
	},
	{
		Name:   "only the leader's position is saved",
		Breaks: "what others had in a joint commit is applied again after a crash",
		File:   "joint_write.go",
		Old:    "err = j.savePosition(ctx, m, gtid, timestamp)",
		New:    "err = nil",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a member does not learn what the leader committed for it",
		Breaks: "it applies that again",
		File:   "joint_write.go",
		Old:    "\t\tm.committed = m.units\n",
		New:    "\t\tif m == j.leader {\n\t\t\tm.committed = m.units\n\t\t}\n",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a position is one unit ahead",
		Breaks: "a crash loses a source transaction",
		File:   "joint_write.go",
		Old:    "gtid, timestamp := m.window.position(m.units)",
		New:    "gtid, timestamp := m.window.position(min(m.units+1, len(m.window.units)))",
		By:     []Finder{Simulator},
	},
	{
		Name:   "an attempt that failed is not rolled back",
		Breaks: "the next commit has half of it",
		File:   "joint_write.go",
		Old:    "\tc, err = j.write(ctx)\n\tif c != nil || err != nil {\n\t\tif rerr := player.Rollback(); rerr != nil {\n\t\t\treturn nil, rerr\n\t\t}\n\t\treturn c, err",
		New:    "\tc, err = j.write(ctx)\n\tif c != nil || err != nil {\n\t\treturn c, err",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a COMMIT whose answer is lost is taken for one that failed",
		Breaks: "what it committed is applied again",
		File:   "joint_write.go",
		Old:    "\t\tfor _, m := range members {\n\t\t\tm.unknown = err\n\t\t}\n\t\treturn nil, err",
		New:    "\t\treturn &collision{conflict: conflict{kind: lockConflict, err: err}}, nil",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a stream leaves its seat while its COMMIT is under way",
		Breaks: "it starts again from a position that is about to change, and applies that again",
		File:   "seats.go",
		Old:    "\tif committing != nil {\n\t\t<-committing\n\t}",
		New:    "\t_ = committing",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a stream that was stopped is committed for all the same",
		Breaks: "its position moves while it is stopped, and what it applies after its start is applied twice",
		File:   "seats.go",
		Old:    "if member.withdrawn {",
		New:    "if member.withdrawn && len(members) == 1 {",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a stop position is passed in a joint commit",
		Breaks: "a stream goes on behind the position at which it is to stop",
		File:   "window.go",
		Old:    "u.stops = w.planner.StopsAt(event.Gtid)",
		New:    "_ = w.planner.StopsAt(event.Gtid)",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a DDL that is executed is folded over",
		Breaks: "the DDL is not executed",
		File:   "window.go",
		Old:    "if !w.planner.SkipsDDL() {",
		New:    "if false {",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a window goes on over what it has not read",
		Breaks: "a transaction is folded twice, or not at all",
		File:   "window.go",
		Old:    "\tw.read -= events\n",
		New:    "\tw.read -= min(events, w.building.events)\n",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a leader does not notice that its peer has stood up",
		Breaks: "both apply the same transactions",
		File:   "combine.go",
		Old:    "\tif r.seat != nil {\n\t\tr.meter.hand.Store(nil)\n\t\tr.hub.seats.leave(r.seat)\n\t\tr.seat = nil",
		New:    "\tif r.seat != nil {\n\t\tr.meter.hand.Store(nil)\n\t\tr.seat = nil",
		By:     []Finder{Simulator},
	},
	{
		Name:   "the release is looked for one transaction too early",
		Breaks: "streams are stuck in conflicts that are none",
		File:   "joint.go",
		Old:    "units[m] = max(units[m], unit+1)",
		New:    "units[m] = max(units[m], unit)",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a release is only looked for in the holder's stream",
		Breaks: "a row that was overtaken is taken for a genuine duplicate",
		File:   "joint.go",
		Old:    "\tconsider(c.member, c.row)\n",
		New:    "",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a duplicate is genuine at the second sight",
		Breaks: "a stream ends in Error although the release is on its way",
		File:   "genuine.go",
		Old:    "if !conclusive || !s.proven(readings, sources, stuck) {",
		New:    "if !conclusive {",
		By:     []Finder{Simulator},
	},
	{
		Name:   "what the meters say after an attempt is evidence",
		Breaks: "a stream ends in Error although the release has just come",
		File:   "genuine.go",
		Old:    "append(before.readings, before.again()...)",
		New:    "before.again()",
		By:     []Finder{Unit},
	},
	{
		Name:   "what the meters said before an attempt is evidence",
		Breaks: "a stream ends in Error although the one that had the release in hand was only restarted",
		File:   "genuine.go",
		Old:    "append(before.readings, before.again()...)",
		New:    "before.readings",
		By:     []Finder{Unit},
	},
	{
		Name:   "no duplicate is genuine",
		Breaks: "a stream hangs for ever instead of ending in its error",
		File:   "genuine.go",
		Old:    "\ts.barred = readings.stuck()\n",
		New:    "\tif true {\n\t\treturn\n\t}\n\ts.barred = readings.stuck()\n",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a deadlock is an error like any other",
		Breaks: "a stream ends in Error, or starts anew, at a deadlock",
		File:   "conflict.go",
		Old:    "\tcase sqlerror.ERLockDeadlock, sqlerror.ERLockWaitTimeout:\n\t\tc.kind = lockConflict\n",
		New:    "\tcase sqlerror.ERLockDeadlock, sqlerror.ERLockWaitTimeout:\n",
		By:     []Finder{Unit},
	},
	{
		Name:   "a replay leaves out the first event",
		Breaks: "a row is lost",
		File:   "queue.go",
		Old:    "\treturn q.ends[units-1] - q.base\n",
		New:    "\treturn q.ends[units-1] - q.base - 1\n",
		By:     []Finder{Simulator},
	},
	{
		Name:   "vplayer is handed again what was committed for it",
		Breaks: "a transaction is applied twice",
		File:   "queue.go",
		Old:    "\tq.skip += max(n-q.next, 0)\n",
		New:    "",
		By:     []Finder{Simulator},
	},
	{
		Name:   "what a transaction outgrew is forgotten without a word",
		Breaks: "the part of the transaction that was let go is lost at a conflict",
		File:   "queue.go",
		Old:    "\t\tq.truncated = true\n",
		New:    "",
		By:     []Finder{Simulator},
	},
	{
		Name:   "an exchanged row loses the columns that its images lack",
		Breaks: "a blob becomes NULL",
		File:   "exchange.go",
		Old:    "if carries(step.Row, i) && !differences[i] && !table.JSON[i] {",
		New:    "if !differences[i] && !table.JSON[i] {",
		By:     []Finder{Simulator},
	},
	{
		Name:   "a pack that was written in part is taken for written",
		Breaks: "the rest of the rows is lost",
		File:   "joint_write.go",
		Old:    "\tcase c.partly:\n\t\t// What was written would meet itself.\n\t\tj.unpacked = true\n\t\treturn []*collision{c}, nil",
		New:    "\tcase c.partly:\n\t\treturn nil, nil",
		By:     []Finder{Simulator},
	},
	{
		Name:   "the rows behind a duplicate in a pack are not written",
		Breaks: "rows are lost",
		File:   "joint_write.go",
		Old:    "\t\tif c != nil {\n\t\t\tmet = append(met, c)\n",
		New:    "\t\tif c != nil && i > 0 {\n\t\t\tmet = append(met, c)\n",
		By:     []Finder{Simulator},
	},
}
