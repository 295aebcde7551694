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
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

const (
	// mergeTimeout is how long a merge test waits for a condition before it
	// fails. It is far more than any of them needs on a busy machine.
	mergeTimeout = 60 * time.Second

	// MERGEBACKOFF_OFF, if set, switches merge backoff off for every stream of a
	// merge test: the tests that guard it can then be seen to fail.
	mergeOffEnv = "MERGEBACKOFF_OFF"

	// mergeDDL are the columns and keys of most merge tests.
	mergeDDL = "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))"
)

type (
	// mergeTest is a merge on one mysqld: stream i applies the table src_i of the
	// test database to the table dst of the target database.
	mergeTest struct {
		t       *testing.T
		sources []string
		// ids are the streams' ids in _vt.vreplication; 0 is a stream that was
		// not created yet, or is deleted.
		ids []int
		// options are how the streams' configuration differs from the default.
		options []mergeOption
	}

	// mergeStream is how a stream differs from the usual one of a merge test,
	// which is of a Reshard and starts at the present position.
	mergeStream struct {
		pos      string
		workflow string
		rules    []*binlogdatapb.Rule
		onDDL    binlogdatapb.OnDDLAction
		// onlineDDL makes it the stream of an Online DDL.
		onlineDDL bool
	}

	// mergeOption changes the configuration of the streams of a merge test.
	mergeOption func(config *vttablet.VReplicationConfig)
)

// forMergeBatching runs a merge test with batching on and off.
func forMergeBatching(t *testing.T, test func(t *testing.T, batching mergeOption)) {
	t.Helper()
	for _, mode := range []struct {
		name string
		on   bool
	}{{"batching on", true}, {"batching off", false}} {
		t.Run(mode.name, func(t *testing.T) {
			test(t, mergeFlag(vttablet.VReplicationExperimentalFlagVPlayerBatching, mode.on))
		})
	}
}

// mergeFlag sets or clears a bit of the experimental flags.
func mergeFlag(bit int64, on bool) mergeOption {
	return func(config *vttablet.VReplicationConfig) {
		config.ExperimentalFlags &^= bit
		if on {
			config.ExperimentalFlags |= bit
		}
	}
}

// mergeRetryDelay sets how long a stream stands still after an error, which is 5
// seconds otherwise.
func mergeRetryDelay(delay time.Duration) mergeOption {
	return func(config *vttablet.VReplicationConfig) { config.RetryDelay = delay }
}

// newMergeTest creates the tables of a merge, whose columns and keys are ddl.
// The streams are started with startAll or createStream.
func newMergeTest(t *testing.T, streams int, ddl string, options ...mergeOption) *mergeTest {
	t.Helper()
	if os.Getenv(mergeOffEnv) != "" {
		options = append(options, mergeFlag(vttablet.VReplicationExperimentalFlagMergeBackoff, false))
	}
	defaults := *vttablet.InitVReplicationConfigDefaults()
	t.Cleanup(func() { *vttablet.InitVReplicationConfigDefaults() = defaults })
	tablet := addTablet(100)
	t.Cleanup(func() { deleteTablet(tablet) })
	logged := doNotLogDBQueries
	doNotLogDBQueries = true
	t.Cleanup(func() { doNotLogDBQueries = logged; drainDBQueries() })

	m := &mergeTest{t: t, ids: make([]int, streams), options: options}
	m.configure()
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

// configure sets the configuration that streams start with. The framework sets it
// back to the flags' values whenever it streams rows to be copied.
func (m *mergeTest) configure() {
	config := vttablet.InitVReplicationConfigDefaults()
	for _, option := range m.options {
		option(config)
	}
}

// newBlockedMerge starts a merge of two streams and blocks stream 1: it waits
// for the value 10, which stream 0 has yet to release, but that one is stopped.
func newBlockedMerge(t *testing.T, options ...mergeOption) *mergeTest {
	t.Helper()
	m := newMergeTest(t, 2, mergeDDL, options...)
	m.startAll()
	m.block()
	return m
}

// block blocks stream 1 of a merge whose streams have just started.
func (m *mergeTest) block() {
	m.t.Helper()
	m.exec("insert into {0} values (1, 10, 'a')")
	m.waitConverged()
	m.stop(0)
	m.exec(
		"delete from {0} where id=1",
		"insert into {1} values (2, 10, 'b')",
		"insert into {1} values (3, 30, 'c')",
	)
	m.waitBlocked(1)
}

// startAll creates all streams, at the present position.
func (m *mergeTest) startAll() {
	m.t.Helper()
	for i := range m.ids {
		m.createStream(i, mergeStream{})
	}
}

// createStream creates stream i, running.
func (m *mergeTest) createStream(i int, s mergeStream) {
	m.t.Helper()
	if s.pos == "" {
		s.pos = primaryPosition(m.t)
	}
	if s.workflow == "" {
		s.workflow = "merge"
	}
	if s.rules == nil {
		s.rules = []*binlogdatapb.Rule{{Match: "dst", Filter: "select * from " + m.sources[i]}}
	}
	workflowType := binlogdatapb.VReplicationWorkflowType_Reshard
	if s.onlineDDL {
		workflowType = binlogdatapb.VReplicationWorkflowType_OnlineDDL
	}
	source := &binlogdatapb.BinlogSource{
		Keyspace: env.KeyspaceName,
		Shard:    env.ShardName,
		Filter:   &binlogdatapb.Filter{Rules: s.rules},
		OnDdl:    s.onDDL,
	}
	query := binlogplayer.CreateVReplication(s.workflow, source, s.pos, 9223372036854775807, 9223372036854775807, 0, vrepldb, workflowType, 0, false)
	m.configure()
	m.ids[i] = int(m.vreplication("%s", query).InsertID)
	m.waitState(i, "Running")
}

// vreplication has the engine run a statement on _vt.vreplication, as vtctld
// does.
func (m *mergeTest) vreplication(format string, args ...any) *sqltypes.Result {
	m.t.Helper()
	qr, err := playerEngine.Exec(fmt.Sprintf(format, args...))
	require.NoError(m.t, err)
	return qr
}

// deleteStream deletes stream i, if there is one.
func (m *mergeTest) deleteStream(i int) {
	m.t.Helper()
	if m.ids[i] == 0 {
		return
	}
	m.vreplication("delete from _vt.vreplication where id=%d", m.ids[i])
	m.ids[i] = 0
}

// stop and start set the state of stream i, as an operator does.
func (m *mergeTest) stop(i int)  { m.t.Helper(); m.setState(i, "Stopped") }
func (m *mergeTest) start(i int) { m.t.Helper(); m.setState(i, "Running") }

func (m *mergeTest) setState(i int, state string) {
	m.t.Helper()
	m.configure()
	m.vreplication("update _vt.vreplication set state='%s', message='' where id=%d", state, m.ids[i])
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
	conn, err := env.Mysqld.GetAllPrivsConnection(context.Background())
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

// mysqlConn opens a connection to the target database of its own.
func (m *mergeTest) mysqlConn() *mysql.Conn {
	m.t.Helper()
	params, err := env.Dbcfgs.AllPrivsConnector().MysqlParams()
	require.NoError(m.t, err)
	conn, err := mysql.Connect(context.Background(), params)
	require.NoError(m.t, err)
	m.t.Cleanup(conn.Close)
	return conn
}

// run runs statements on a connection of the test's own.
func (m *mergeTest) run(conn *mysql.Conn, statements ...string) {
	m.t.Helper()
	for _, statement := range statements {
		_, err := conn.ExecuteFetch(statement, 1000, false)
		require.NoError(m.t, err, statement)
	}
}

// setLockWaitTimeout sets how many seconds the connections that are opened from
// now on wait for a row lock. The framework has set 1.
func (m *mergeTest) setLockWaitTimeout(seconds int) {
	m.t.Helper()
	set := func(seconds int) {
		query := fmt.Sprintf("set @@global.innodb_lock_wait_timeout=%d", seconds)
		require.NoError(m.t, env.Mysqld.ExecuteSuperQuery(context.Background(), query))
	}
	set(seconds)
	m.t.Cleanup(func() { set(1) })
}
