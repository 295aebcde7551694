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
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// mergeTimeout is how long a merge test waits for a condition before it fails.
// It is far more than any of them needs on a busy machine.
const mergeTimeout = 60 * time.Second

// mergeBatching are the two ways in which a workflow may send its statements.
// Every merge test runs in both.
var mergeBatching = map[string]bool{"batching on": true, "batching off": false}

// mergeTest is a merge on one mysqld: stream i applies the table src_i of the
// test database to the table dst of the target database.
type mergeTest struct {
	t       *testing.T
	sources []string
	ids     []int
	columns string
}

// newMergeTest creates the tables of a merge, whose columns and keys are ddl.
// The streams are started with startAll or startStream.
func newMergeTest(t *testing.T, streams int, ddl string, batching bool) *mergeTest {
	t.Helper()
	restoreFlags := setMergeFlag(vttablet.VReplicationExperimentalFlagVPlayerBatching, batching)
	t.Cleanup(restoreFlags)
	tablet := addTablet(100)
	t.Cleanup(func() { deleteTablet(tablet) })
	logged := doNotLogDBQueries
	doNotLogDBQueries = true
	t.Cleanup(func() { doNotLogDBQueries = logged; drainDBQueries() })

	m := &mergeTest{t: t, ids: make([]int, streams)}
	create := []string{fmt.Sprintf("create table %s.dst %s", vrepldb, ddl)}
	drop := []string{fmt.Sprintf("drop table %s.dst", vrepldb)}
	for i := range streams {
		source := "src_" + strconv.Itoa(i)
		m.sources = append(m.sources, source)
		create = append(create, fmt.Sprintf("create table %s %s", source, ddl))
		drop = append(drop, "drop table "+source)
	}
	execStatements(t, create)
	t.Cleanup(func() { execStatements(t, drop) })
	t.Cleanup(func() {
		for i := range streams {
			m.deleteStream(i)
		}
	})
	return m
}

// setMergeFlag sets or clears a bit of the experimental flags of the workflows
// that start from now on.
func setMergeFlag(bit int64, on bool) (restore func()) {
	config := vttablet.InitVReplicationConfigDefaults()
	flags := config.ExperimentalFlags
	config.ExperimentalFlags &^= bit
	if on {
		config.ExperimentalFlags |= bit
	}
	return func() { config.ExperimentalFlags = flags }
}

// startAll creates all streams, at the present position.
func (m *mergeTest) startAll() {
	m.t.Helper()
	for i := range m.ids {
		m.createStream(i, primaryPosition(m.t), binlogdatapb.VReplicationWorkflowType_Reshard)
	}
}

// createStream creates stream i, running.
func (m *mergeTest) createStream(i int, pos string, workflowType binlogdatapb.VReplicationWorkflowType) {
	m.t.Helper()
	source := &binlogdatapb.BinlogSource{
		Keyspace: env.KeyspaceName,
		Shard:    env.ShardName,
		Filter: &binlogdatapb.Filter{
			Rules: []*binlogdatapb.Rule{{Match: "dst", Filter: "select * from " + m.sources[i]}},
		},
		OnDdl: binlogdatapb.OnDDLAction_IGNORE,
	}
	query := binlogplayer.CreateVReplication("merge", source, pos, 9223372036854775807, 9223372036854775807, 0, vrepldb, workflowType, 0, false)
	qr, err := playerEngine.Exec(query)
	require.NoError(m.t, err)
	m.ids[i] = int(qr.InsertID)
	m.waitState(i, "Running")
}

// deleteStream deletes stream i, if there is one.
func (m *mergeTest) deleteStream(i int) {
	m.t.Helper()
	if m.ids[i] == 0 {
		return
	}
	_, err := playerEngine.Exec("delete from _vt.vreplication where id = " + strconv.Itoa(m.ids[i]))
	require.NoError(m.t, err)
	m.ids[i] = 0
}

// stop and start set the state of stream i, as an operator does.
func (m *mergeTest) stop(i int)  { m.t.Helper(); m.setState(i, "Stopped") }
func (m *mergeTest) start(i int) { m.t.Helper(); m.setState(i, "Running") }

func (m *mergeTest) setState(i int, state string) {
	m.t.Helper()
	_, err := playerEngine.Exec(fmt.Sprintf("update _vt.vreplication set state='%s', message='' where id=%d", state, m.ids[i]))
	require.NoError(m.t, err)
}

// exec runs each statement as a source transaction of its own. {0} stands for
// the table of source 0, and so on.
func (m *mergeTest) exec(statements ...string) {
	m.t.Helper()
	for _, statement := range statements {
		m.tx(statement)
	}
}

// tx runs the statements as one source transaction.
func (m *mergeTest) tx(statements ...string) {
	m.t.Helper()
	conn, err := env.Mysqld.GetAllPrivsConnection(m.t.Context())
	require.NoError(m.t, err)
	defer conn.Close()
	run := []string{"begin"}
	for _, statement := range statements {
		run = append(run, m.expand(statement))
	}
	execConnStatements(m.t, conn, append(run, "commit"))
}

func (m *mergeTest) expand(statement string) string {
	for i, source := range m.sources {
		statement = strings.ReplaceAll(statement, "{"+strconv.Itoa(i)+"}", source)
	}
	return statement
}

// query returns the rows of a query, each a line of tab separated values.
func (m *mergeTest) query(query string) []string {
	m.t.Helper()
	qr, err := env.Mysqld.FetchSuperQuery(context.Background(), query)
	require.NoError(m.t, err)
	lines := make([]string, 0, len(qr.Rows))
	for _, row := range qr.Rows {
		values := make([]string, 0, len(row))
		for _, value := range row {
			values = append(values, value.String())
		}
		lines = append(lines, strings.Join(values, "\t"))
	}
	return lines
}

// difference returns the rows that the target has and the union of the sources
// has not, and the other way round.
func (m *mergeTest) difference() (surplus, missing []string) {
	m.t.Helper()
	count := make(map[string]int)
	for _, source := range m.sources {
		for _, row := range m.query("select * from " + source) {
			count[row]--
		}
	}
	for _, row := range m.query("select * from " + vrepldb + ".dst") {
		count[row]++
	}
	for row, n := range count {
		for ; n > 0; n-- {
			surplus = append(surplus, row)
		}
		for ; n < 0; n++ {
			missing = append(missing, row)
		}
	}
	return surplus, missing
}

// stream returns the state and the message of stream i.
func (m *mergeTest) stream(i int) (state, message string) {
	m.t.Helper()
	qr, err := env.Mysqld.FetchSuperQuery(context.Background(), "select state, message from _vt.vreplication where id="+strconv.Itoa(m.ids[i]))
	require.NoError(m.t, err)
	require.Len(m.t, qr.Rows, 1)
	return qr.Rows[0][0].ToString(), qr.Rows[0][1].ToString()
}

// waitFor waits until the condition holds, and fails with what it last said.
func (m *mergeTest) waitFor(what string, condition func() (ok bool, last string)) {
	m.t.Helper()
	deadline := time.Now().Add(mergeTimeout)
	for {
		ok, last := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(m.t, "timed out waiting until "+what, last)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// waitState waits until stream i is in the state, and returns its message.
func (m *mergeTest) waitState(i int, want string) (message string) {
	m.t.Helper()
	m.waitFor(fmt.Sprintf("stream %d is %s", i, want), func() (bool, string) {
		var state string
		state, message = m.stream(i)
		return state == want, state + ": " + message
	})
	return message
}

// waitBlocked waits until stream i says that it waits for a peer, and returns
// its message.
func (m *mergeTest) waitBlocked(i int) (message string) {
	m.t.Helper()
	m.waitFor(fmt.Sprintf("stream %d waits for a peer", i), func() (bool, string) {
		state, text := m.stream(i)
		message = text
		return state == "Running" && strings.HasPrefix(text, "merge backoff: waiting"), state + ": " + text
	})
	return message
}

// waitConverged waits until the target equals the union of the sources and all
// streams run without a message.
func (m *mergeTest) waitConverged() {
	m.t.Helper()
	m.waitFor("the target equals the union of the sources", func() (bool, string) {
		for i := range m.ids {
			state, message := m.stream(i)
			require.NotEqual(m.t, "Error", state, "stream %d: %s", i, message)
			if state != "Running" || message != "" {
				return false, fmt.Sprintf("stream %d is %s: %s", i, state, message)
			}
		}
		surplus, missing := m.difference()
		return len(surplus)+len(missing) == 0, fmt.Sprintf("surplus rows %q, missing rows %q", surplus, missing)
	})
}

// applied waits until stream i has applied all that its source holds now.
func (m *mergeTest) waitApplied(i int) {
	m.t.Helper()
	want := primaryPositionParsed(m.t)
	m.waitFor(fmt.Sprintf("stream %d reaches %v", i, want), func() (bool, string) {
		qr, err := env.Mysqld.FetchSuperQuery(context.Background(), "select pos from _vt.vreplication where id="+strconv.Itoa(m.ids[i]))
		require.NoError(m.t, err)
		pos, err := binlogplayer.DecodePosition(qr.Rows[0][0].ToString())
		require.NoError(m.t, err)
		return pos.AtLeast(want), pos.String()
	})
}

// mysqlConn opens a connection to the target database of its own.
func (m *mergeTest) mysqlConn() *mysql.Conn {
	m.t.Helper()
	params, err := env.Dbcfgs.AllPrivsConnector().MysqlParams()
	require.NoError(m.t, err)
	conn, err := mysql.Connect(m.t.Context(), params)
	require.NoError(m.t, err)
	m.t.Cleanup(conn.Close)
	return conn
}
