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
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// TestMergeBackoffOtherWorkflow shows that a stream of another workflow is a
// peer, as in a shard by shard MoveTables. On stock the stream ends in Error
// 1062.
func TestMergeBackoffOtherWorkflow(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.createStream(0, mergeStream{workflow: "shard_0"})
		m.createStream(1, mergeStream{workflow: "shard_1"})
		m.block()
		_, message := m.stream(1)
		require.Contains(t, message, fmt.Sprintf("stream %d (shard_0,", m.ids[0]))
		m.start(0)
		m.waitConverged()
	})
}

// TestMergeBackoffRegexRules shows that rules which are patterns, and rules which
// exclude, say who is a peer as they say what is replicated. On stock all the
// streams end in Error 1062.
func TestMergeBackoffRegexRules(t *testing.T) {
	exclude := func(match string) *binlogdatapb.Rule {
		return &binlogdatapb.Rule{Match: match, Filter: ExcludeStr}
	}
	all := &binlogdatapb.Rule{Match: "/.*"}
	for name, test := range map[string]struct {
		rules  []*binlogdatapb.Rule // of the other stream
		isPeer bool
	}{
		"all tables":           {rules: []*binlogdatapb.Rule{all}, isPeer: true},
		"all but others":       {rules: []*binlogdatapb.Rule{exclude("/src_.*"), exclude("other"), all}, isPeer: true},
		"all but the same":     {rules: []*binlogdatapb.Rule{exclude("dst"), all}},
		"a pattern for others": {rules: []*binlogdatapb.Rule{{Match: "/^other_.*"}}},
	} {
		t.Run(name, func(t *testing.T) {
			forMergeBatching(t, func(t *testing.T, batching mergeOption) {
				m := newMergeTest(t, 2, mergeDDL, batching)
				// The other stream reads the table that has the target's name.
				execStatements(t, []string{"create table dst " + mergeDDL})
				t.Cleanup(func() { execStatements(t, []string{"drop table dst"}) })
				m.createStream(0, mergeStream{rules: test.rules})
				m.createStream(1, mergeStream{})
				m.stop(0)
				m.run(m.mysqlConn(), "insert into vrepl.dst values (1, 10, 'a')")
				m.exec("insert into {1} values (2, 10, 'b')")
				if !test.isPeer {
					m.waitDuplicate(1)
					return
				}
				m.waitBlocked(1)
				m.exec("insert into dst values (1, 10, 'a')", "delete from dst where id=1")
				m.vreplication("update _vt.vreplication set pos='%s' where id=%d", primaryPosition(t), m.ids[0])
				m.run(m.mysqlConn(), "delete from vrepl.dst where id=1")
				m.start(0)
				m.waitConverged()
			})
		})
	}
}

// TestMergeBackoffPeersDeleted shows that a stream which waits fails, as on
// stock, once all its peers are deleted: nobody can release the value any more.
// While one is left it waits.
func TestMergeBackoffPeersDeleted(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 3, mergeDDL, batching)
		m.startAll()
		m.block()
		deleted := fmt.Sprintf("stream %d ", m.ids[0])
		m.deleteStream(0)
		m.waitFor("the message no longer names the deleted stream", func() (bool, string) {
			_, message := m.stream(1)
			return m.isBlocked(1) && !strings.Contains(message, deleted), message
		})
		m.quickly(3*time.Second, "failing", func() {
			m.deleteStream(2)
			m.waitDuplicate(1)
		})
		require.Equal(t, []string{"1"}, m.values("select id from vrepl.dst"))
	})
}
