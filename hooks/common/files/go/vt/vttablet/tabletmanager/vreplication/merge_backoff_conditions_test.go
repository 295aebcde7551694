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
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/binlog/binlogplayer"
)

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

// values returns the values of a query's first column.
func (m *mergeTest) values(query string) []string {
	m.t.Helper()
	qr, err := env.Mysqld.FetchSuperQuery(context.Background(), query)
	require.NoError(m.t, err)
	values := make([]string, 0, len(qr.Rows))
	for _, row := range qr.Rows {
		values = append(values, row[0].ToString())
	}
	return values
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

// column returns a column of the row of stream i in _vt.vreplication.
func (m *mergeTest) column(i int, name string) string {
	m.t.Helper()
	qr, err := env.Mysqld.FetchSuperQuery(context.Background(), fmt.Sprintf("select %s from _vt.vreplication where id=%d", name, m.ids[i]))
	require.NoError(m.t, err)
	require.Len(m.t, qr.Rows, 1)
	return qr.Rows[0][0].ToString()
}

// stream returns the state and the message of stream i.
func (m *mergeTest) stream(i int) (state, message string) {
	m.t.Helper()
	qr, err := env.Mysqld.FetchSuperQuery(context.Background(), fmt.Sprintf("select state, message from _vt.vreplication where id=%d", m.ids[i]))
	require.NoError(m.t, err)
	require.Len(m.t, qr.Rows, 1)
	return qr.Rows[0][0].ToString(), qr.Rows[0][1].ToString()
}

// isBlocked reports whether stream i says that it waits for a peer.
func (m *mergeTest) isBlocked(i int) bool {
	m.t.Helper()
	return saysBlocked(m.stream(i))
}

// saysBlocked reports whether a stream's state and message, of one moment, are those
// of one that waits for a peer.
func saysBlocked(state, message string) bool {
	return state == "Running" && strings.HasPrefix(message, "merge backoff: waiting")
}

// logged returns how much is in the log of stream i. An error, and so a restart,
// adds to it.
func (m *mergeTest) logged(i int) (rows int) {
	m.t.Helper()
	for _, n := range m.values(fmt.Sprintf("select count from _vt.vreplication_log where vrepl_id=%d", m.ids[i])) {
		count, err := strconv.Atoi(n)
		require.NoError(m.t, err)
		rows += count
	}
	return rows
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
		var state string
		state, message = m.stream(i)
		require.NotEqual(m.t, "Error", state, "stream %d: %s", i, message)
		return saysBlocked(state, message), state + ": " + message
	})
	return message
}

// waitConverged waits until the target equals the union of the sources and all
// streams run without a message.
func (m *mergeTest) waitConverged() {
	m.t.Helper()
	m.waitFor("the target equals the union of the sources", func() (bool, string) {
		for i, id := range m.ids {
			if id == 0 {
				continue
			}
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

// waitDuplicate waits until stream i has ended in MySQL's error 1062, and
// returns its message.
func (m *mergeTest) waitDuplicate(i int) (message string) {
	m.t.Helper()
	message = m.waitState(i, "Error")
	require.Contains(m.t, message, "(errno 1062)")
	return message
}

// waitApplied waits until stream i has applied all that its source holds now.
func (m *mergeTest) waitApplied(i int) {
	m.t.Helper()
	want, err := binlogplayer.DecodePosition(primaryPosition(m.t))
	require.NoError(m.t, err)
	m.waitFor(fmt.Sprintf("stream %d reaches %v", i, want), func() (bool, string) {
		pos, err := binlogplayer.DecodePosition(m.column(i, "pos"))
		require.NoError(m.t, err)
		return pos.AtLeast(want), pos.String()
	})
}

// quickly fails the test if f takes longer than the limit. What took how long is
// in the verbose output.
func (m *mergeTest) quickly(limit time.Duration, what string, f func()) {
	m.t.Helper()
	start := time.Now()
	f()
	took := time.Since(start)
	m.t.Logf("%s took %v", what, took)
	require.Less(m.t, took, limit, what)
}

// waitLocked waits until a connection waits for a row lock, and returns its id.
func (m *mergeTest) waitLocked() (connection string) {
	m.t.Helper()
	// Not information_schema.innodb_trx: that is a copy, which is refreshed only
	// if nobody has looked for a while.
	const waits = "select processlist_id from performance_schema.data_lock_waits w" +
		" join performance_schema.threads t on t.thread_id = w.requesting_thread_id"
	m.waitFor("a connection waits for a row lock", func() (bool, string) {
		qr, err := env.Mysqld.FetchSuperQuery(context.Background(), waits)
		require.NoError(m.t, err)
		if len(qr.Rows) == 0 {
			return false, ""
		}
		connection = qr.Rows[0][0].ToString()
		return true, ""
	})
	return connection
}

// lockTimeouts returns how many waits for a row lock have ended in MySQL's 1205
// since the server started.
func (m *mergeTest) lockTimeouts() int {
	m.t.Helper()
	n, err := strconv.Atoi(m.values("select sum_error_raised from performance_schema.events_errors_summary_global_by_error where error_number=1205")[0])
	require.NoError(m.t, err)
	return n
}

// sent returns the statements that stream 0 sends to the target for source
// transactions that come one by one, with the positions and times taken out.
func (m *mergeTest) sent(transactions [][]string) (sent []string) {
	m.t.Helper()
	drainDBQueries()
	doNotLogDBQueries = false
	defer func() { doNotLogDBQueries = true }()
	open, commits := false, 0
	receive := func(query string) {
		switch {
		case query == "begin":
			open = true
		case query == "commit":
			if !open {
				return // what came before is logged late
			}
			open = false
			commits++
		case strings.HasPrefix(query, "update _vt.vreplication set pos="):
			if !open {
				return // a position without rows is saved by the clock
			}
			query = "save the position"
		}
		sent = append(sent, query)
	}
	for i, transaction := range transactions {
		m.tx(transaction...)
		m.waitFor("the transaction is committed", func() (bool, string) {
			for commits <= i {
				select {
				case query := <-globalDBQueries:
					if !shouldIgnoreQuery(query) {
						receive(query)
					}
				default:
					return false, fmt.Sprintf("%q", sent)
				}
			}
			return true, ""
		})
	}
	return sent
}
