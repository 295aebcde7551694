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

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/vstreamer"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// createCopying creates stream i without a position, so that it copies first.
func (m *mergeTest) createCopying(i int) {
	m.t.Helper()
	m.createCopyingWith(i, false)
}

func (m *mergeTest) createCopyingWith(i int, deferSecondaryKeys bool) {
	m.t.Helper()
	source := &binlogdatapb.BinlogSource{
		Keyspace: env.KeyspaceName,
		Shard:    env.ShardName,
		Filter: &binlogdatapb.Filter{
			Rules: []*binlogdatapb.Rule{{Match: "dst", Filter: "select * from " + m.sources[i]}},
		},
	}
	query := binlogplayer.CreateVReplication("merge", source, "", 9223372036854775807, 9223372036854775807, 0, vrepldb,
		binlogdatapb.VReplicationWorkflowType_Reshard, 0, deferSecondaryKeys)
	m.configure()
	m.ids[i] = int(m.vreplication("%s", query).InsertID)
}

// waitCopied waits until stream i has copied its table. A new stream says Running
// as well, before it finds out that it has to copy.
func (m *mergeTest) waitCopied(i int) {
	m.t.Helper()
	m.waitFor("the table is copied", func() (bool, string) {
		copied := m.query(fmt.Sprintf("select count(*) from _vt.vreplication_log where vrepl_id=%d and type='%s'", m.ids[i], LogCopyEnd))
		state, message := m.stream(i)
		return state == "Running" && copied[0] != "INT64(0)", state + ": " + message
	})
}

// waitCopyBlocked waits until stream i says, in its copy phase, that it waits for
// a peer, and returns its message.
func (m *mergeTest) waitCopyBlocked(i int) (message string) {
	m.t.Helper()
	m.waitFor("a copying stream waits for a peer", func() (bool, string) {
		state, text := m.stream(i)
		message = text
		require.NotEqual(m.t, "Error", state, "stream %d: %s", i, text)
		return state == "Copying" && strings.HasPrefix(text, "merge backoff: waiting"), state + ": " + text
	})
	return message
}

// TestMergeBackoffCopyAhead shows that a row of a copy's snapshot, which wants a
// value that a peer has yet to release, is copied once the peer has. On stock the
// copying stream ends in Error 1062.
func TestMergeBackoffCopyAhead(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (5, 50, 'e')")
		m.createCopying(0)
		m.waitCopied(0)
		m.stop(0)
		m.exec("delete from {0} where id=1", "insert into {1} values (2, 10, 'b')")
		m.createCopying(1)
		message := m.waitCopyBlocked(1)
		require.Contains(t, message, "value '10' of key dst.uid_uk")
		m.start(0)
		m.waitConverged()
	})
}

// TestMergeBackoffCopyMoves shows the same for a value that goes to and fro: once
// the row of the snapshot is copied, it has overtaken the peer, whose own later
// transactions release the value. On stock one of the two ends in Error 1062.
func TestMergeBackoffCopyMoves(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (2, null, 'b')")
		m.createCopying(0)
		m.waitCopied(0)
		m.stop(0)
		m.exec(
			"update {0} set uid=11 where id=1",
			"update {1} set uid=10 where id=2",
			"update {1} set uid=12 where id=2",
			"update {0} set uid=10 where id=1",
			"update {0} set uid=13 where id=1",
			"update {1} set uid=10 where id=2",
		)
		m.createCopying(1)
		m.waitCopyBlocked(1)
		m.start(0)
		m.waitConverged()
	})
}

// TestMergeBackoffCopyGenuine shows that a row of a copy's snapshot which holds
// what a peer's row really holds as well ends the copy in Error, as on stock, and
// within ten seconds.
func TestMergeBackoffCopyGenuine(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (2, 10, 'b')")
		m.createCopying(0)
		m.waitCopied(0)
		start := time.Now()
		m.createCopying(1)
		message := m.waitState(1, "Error")
		require.Less(t, time.Since(start), 15*time.Second)
		require.Contains(t, message, "genuine duplicate")
		require.Contains(t, message, "errno 1062")
		surplus, missing := m.difference()
		require.Empty(t, surplus)
		require.Len(t, missing, 1)
	})
}

// TestMergeBackoffCopyDeferredKeys shows that a merge whose secondary keys are added at
// the end of the copy phase keeps its unique keys. Without them rows would be copied
// that contradict each other; adding the keys then fails, again and again while values
// are handed over.
func TestMergeBackoffCopyDeferredKeys(t *testing.T) {
	m := newMergeTest(t, 2, "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid), key val_k(val))")
	m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (5, 50, 'e')")
	keys := func() []string {
		return m.query(fmt.Sprintf("select distinct index_name from information_schema.statistics where table_schema='%s' and table_name='dst' order by 1", vrepldb))
	}
	m.createCopyingWith(0, true)
	m.waitCopied(0)
	m.stop(0)
	m.exec("delete from {0} where id=1", "insert into {1} values (2, 10, 'b')")
	m.createCopyingWith(1, true)
	m.waitCopyBlocked(1)
	require.Equal(t, []string{`VARCHAR("PRIMARY")`, `VARCHAR("uid_uk")`}, keys())
	m.start(0)
	m.waitConverged()
	m.waitCopied(1)
	require.Equal(t, []string{`VARCHAR("PRIMARY")`, `VARCHAR("uid_uk")`, `VARCHAR("val_k")`}, keys())
}

// TestMergeBackoffCopyOvertaken shows that a conflict between two parts of a copy is
// resolved as any other is. The copy of stream 1 stands before row 9, whose value is
// stream 2's to release. What was copied before is kept up to date meanwhile; there
// the stream meets a value that stream 0 has taken after it, and keeps: only the net
// effect helps. The row that was not copied yet is changed as well. On stock the
// copying stream ends in Error 1062 at row 9.
func TestMergeBackoffCopyOvertaken(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching mergeOption) {
		t.Cleanup(vstreamer.AdjustPacketSize(1))
		m := newMergeTest(t, 3, mergeDDL, batching)
		m.exec("insert into {0} values (5, 40, 'e')", "insert into {2} values (30, 10, 'z')", "insert into {1} values (2, null, 'b'), (9, 90, 'i'), (10, 91, 'j')")
		for _, i := range []int{0, 2} {
			m.createCopying(i)
			m.waitCopied(i)
		}
		m.stop(2)
		m.exec("update {2} set uid=null where id=30", "update {1} set uid=10 where id=9")
		m.createCopying(1)
		m.waitCopyBlocked(1)
		require.Equal(t, []string{"INT64(2)"}, m.query("select id from "+vrepldb+".dst where id in (2, 9, 10)"))

		m.stop(1)
		m.exec(
			"update {1} set uid=50 where id=2", "update {1} set uid=92 where id=10", "update {1} set uid=51, val='b2' where id=2",
			"delete from {1} where id=10", "insert into {1} values (1, 50, 'a'), (10, 52, 'j2')", "delete from {1} where id=1",
			"update {0} set uid=50 where id=5",
		)
		m.waitFor("stream 0 takes the value", func() (bool, string) {
			rows := m.query("select uid from " + vrepldb + ".dst where id=5")
			return rows[0] == "INT64(50)", rows[0]
		})
		m.start(1)
		m.waitFor("stream 1 goes on with what it has copied", func() (bool, string) {
			state, message := m.stream(1)
			require.NotEqual(t, "Error", state, message)
			rows := m.query("select val from " + vrepldb + ".dst where id=2")
			return rows[0] == `VARCHAR("b2")`, state + ": " + message
		})
		require.Equal(t, []string{"INT64(2)"}, m.query("select id from "+vrepldb+".dst where id in (1, 2, 9, 10)"))
		m.start(2)
		m.waitConverged()
		m.waitCopied(1)
	})
}

// TestMergeBackoffCopyConfig shows that an attempt after a duplicate key asks the source
// for one row at a time, in the names that this release line knows, and whatever the
// workflow has asked for; and that other attempts are as on stock.
func TestMergeBackoffCopyConfig(t *testing.T) {
	asked, err := vttablet.NewVReplicationConfig(map[string]string{"vstream_packet_size": "5000"})
	require.NoError(t, err)
	vr := &vreplicator{workflowConfig: asked}
	require.Same(t, asked, vr.copyConfig())

	var hub mergebackoff.Hub
	filter := &binlogdatapb.Filter{Rules: []*binlogdatapb.Rule{{Match: "t"}}}
	for id := range int32(2) {
		hub.Put(mergebackoff.Stream{ID: id, Workflow: "wf", State: binlogdatapb.VReplicationWorkflowState_Copying, Source: &binlogdatapb.BinlogSource{Filter: filter}})
	}
	duplicate := sqlerror.NewSQLErrorf(sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, "Duplicate entry '1' for key 't.uk'")
	err = vr.mergeCopy.Wait(t.Context(), &hub, mergebackoff.Config{ID: 1, Tables: []string{"t"}}, duplicate, func(string) error { return nil })
	require.NoError(t, err)

	careful := vr.copyConfig()
	require.Equal(t, carefulCopy, careful.CopyPhaseDuration)
	source, err := vttablet.NewVReplicationConfig(careful.Overrides)
	require.NoError(t, err)
	require.Equal(t, 1, source.VStreamPacketSize)
	require.False(t, source.VStreamDynamicPacketSize)
	require.Equal(t, "5000", asked.Overrides["vstream_packet_size"])
	require.Same(t, asked, vr.copyConfig(), "after an attempt that met none")
}
