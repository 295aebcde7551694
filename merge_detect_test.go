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
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// filterOf builds a source with a filter from pairs of match and filter.
func filterOf(shard string, pairs ...string) *binlogdatapb.BinlogSource {
	source := &binlogdatapb.BinlogSource{Keyspace: "ks", Shard: shard, Filter: &binlogdatapb.Filter{}}
	for i := 0; i < len(pairs); i += 2 {
		source.Filter.Rules = append(source.Filter.Rules, &binlogdatapb.Rule{Match: pairs[i], Filter: pairs[i+1]})
	}
	return source
}

func running(id int32, workflow string, source *binlogdatapb.BinlogSource) Stream {
	return Stream{ID: id, Workflow: workflow, Source: source, State: binlogdatapb.VReplicationWorkflowState_Running}
}

// TestPeers: which streams can write a stream's tables: rules, patterns,
// exclusions, states and types of workflow.
func TestPeers(t *testing.T) {
	tables := []string{"customer", "orders", "order_items"}
	onlineDDL := running(2, "wf", filterOf("80-", "/.*", ""))
	onlineDDL.WorkflowType = binlogdatapb.VReplicationWorkflowType_OnlineDDL
	stopped := running(2, "wf", filterOf("80-", "/.*", ""))
	stopped.State = binlogdatapb.VReplicationWorkflowState_Stopped
	failed := running(2, "wf", filterOf("80-", "/.*", ""))
	failed.State = binlogdatapb.VReplicationWorkflowState_Error
	unreadable := Stream{ID: 2, Err: errors.New("source does not parse")}
	ddlSelf := running(1, "wf", filterOf("-80", "/.*", ""))
	ddlSelf.WorkflowType = binlogdatapb.VReplicationWorkflowType_OnlineDDL

	tests := []struct {
		name string
		self Stream
		// other is stream 2.
		other Stream
		peer  bool
		err   string
	}{
		{
			// What Reshard creates.
			name:  "the same workflow, all tables",
			self:  running(1, "wf", filterOf("-80", "/.*", "-")),
			other: running(2, "wf", filterOf("80-", "/.*", "-")),
			peer:  true,
		},
		{
			// What MoveTables creates.
			name:  "the same table by name",
			self:  running(1, "wf", filterOf("-80", "orders", "select * from orders")),
			other: running(2, "wf", filterOf("80-", "orders", "select * from orders")),
			peer:  true,
		},
		{
			name:  "different tables",
			self:  running(1, "wf", filterOf("-80", "orders", "")),
			other: running(2, "wf", filterOf("80-", "customer", "")),
		},
		{
			// A shard by shard MoveTables.
			name:  "another workflow",
			self:  running(1, "first", filterOf("-80", "orders", "")),
			other: running(2, "second", filterOf("80-", "orders", "")),
			peer:  true,
		},
		{
			name:  "a pattern and a name",
			self:  running(1, "wf", filterOf("-80", "/^order.*/", "")),
			other: running(2, "wf", filterOf("80-", "order_items", "")),
			peer:  true,
		},
		{
			name:  "two patterns that share no table that exists",
			self:  running(1, "wf", filterOf("-80", "/^order/", "")),
			other: running(2, "wf", filterOf("80-", "/^cust/", "")),
		},
		{
			// MatchTable trims the slashes, and a pattern is not anchored.
			name:  "a pattern without its closing slash",
			self:  running(1, "wf", filterOf("-80", "/items", "")),
			other: running(2, "wf", filterOf("80-", "order_items", "")),
			peer:  true,
		},
		{
			name:  "a table that does not exist",
			self:  running(1, "wf", filterOf("-80", "gone", "")),
			other: running(2, "wf", filterOf("80-", "gone", "")),
		},
		{
			name:  "excluded on the other side",
			self:  running(1, "wf", filterOf("-80", "orders", "")),
			other: running(2, "wf", filterOf("80-", "orders", "exclude", "/.*", "")),
		},
		{
			name:  "excluded on this side",
			self:  running(1, "wf", filterOf("-80", "orders", "exclude", "customer", "exclude", "/.*", "")),
			other: running(2, "wf", filterOf("80-", "/^(orders|customer)$/", "")),
		},
		{
			name:  "the first rule that matches decides, not the exclusion behind it",
			self:  running(1, "wf", filterOf("-80", "/.*", "", "orders", "exclude")),
			other: running(2, "wf", filterOf("80-", "orders", "")),
			peer:  true,
		},
		{
			name:  "an Online DDL is nobody's peer",
			self:  running(1, "wf", filterOf("-80", "/.*", "")),
			other: onlineDDL,
		},
		{
			name:  "an Online DDL has no peers",
			self:  ddlSelf,
			other: running(2, "wf", filterOf("80-", "/.*", "")),
		},
		{
			name:  "a stopped stream may be started",
			self:  running(1, "wf", filterOf("-80", "/.*", "")),
			other: stopped,
			peer:  true,
		},
		{
			name:  "so may one in error",
			self:  running(1, "wf", filterOf("-80", "/.*", "")),
			other: failed,
			peer:  true,
		},
		{
			name:  "nobody can say that an unreadable row is no peer",
			self:  running(1, "wf", filterOf("-80", "/.*", "")),
			other: unreadable,
			peer:  true,
		},
		{
			name:  "nor one with a bad pattern",
			self:  running(1, "wf", filterOf("-80", "/.*", "")),
			other: running(2, "wf", filterOf("80-", "/(/", "")),
			peer:  true,
		},
		{
			name:  "a bad pattern of its own is named",
			self:  running(1, "wf", filterOf("-80", "/(/", "")),
			other: running(2, "wf", filterOf("80-", "/.*", "")),
			err:   `stream 1: rule "/(/"`,
		},
		{
			name:  "the older kind of source: tables",
			self:  running(1, "wf", &binlogdatapb.BinlogSource{Tables: []string{"orders"}}),
			other: running(2, "wf", &binlogdatapb.BinlogSource{Tables: []string{"customer", "orders"}}),
			peer:  true,
		},
		{
			name:  "the older kind of source: a key range takes all tables",
			self:  running(1, "wf", filterOf("-80", "customer", "")),
			other: running(2, "wf", &binlogdatapb.BinlogSource{KeyRange: &topodatapb.KeyRange{}}),
			peer:  true,
		},
		{
			name:  "a source that says nothing writes nothing",
			self:  running(1, "wf", &binlogdatapb.BinlogSource{}),
			other: running(2, "wf", filterOf("80-", "/.*", "")),
		},
		{
			name:  "no source",
			self:  running(1, "wf", nil),
			other: running(2, "wf", filterOf("80-", "/.*", "")),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			peers, err := peersAmong(tt.self, []Stream{tt.other, tt.self}, tables)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			if !tt.peer {
				assert.Empty(t, peers)
				return
			}
			require.Len(t, peers, 1)
			assert.Equal(t, int32(2), peers[0].ID)
		})
	}
}

// TestPeersAreSorted pins the order, which messages and locks rest on.
func TestPeersAreSorted(t *testing.T) {
	self := running(2, "wf", filterOf("-80", "/.*", ""))
	peers, err := peersAmong(self, []Stream{
		running(7, "wf", filterOf("a", "/.*", "")), self, running(1, "wf", filterOf("b", "/.*", "")),
	}, []string{"t"})
	require.NoError(t, err)
	require.Len(t, peers, 2)
	assert.Equal(t, []int32{1, 7}, []int32{peers[0].ID, peers[1].ID})
}

// TestPeersKeepTheErrorOfABadPattern shows that the reason a peer cannot run is
// there for the message.
func TestPeersKeepTheErrorOfABadPattern(t *testing.T) {
	self := running(1, "wf", filterOf("-80", "/.*", ""))
	peers, err := peersAmong(self, []Stream{running(2, "wf", filterOf("80-", "/(/", ""))}, []string{"t"})
	require.NoError(t, err)
	require.Len(t, peers, 1)
	require.Error(t, peers[0].Err)
	assert.False(t, peers[0].canMove())
	assert.Contains(t, peers[0].String(), "unreadable")
}

// TestStreamString: how messages name a stream, with its state where that keeps
// it from moving.
func TestStreamString(t *testing.T) {
	s := running(3, "move", filterOf("-80", "/.*", ""))
	assert.Equal(t, "stream 3 (move, source ks/-80)", s.String())
	assert.True(t, s.canMove())

	s.State = binlogdatapb.VReplicationWorkflowState_Stopped
	assert.Equal(t, "stream 3 (move, source ks/-80, Stopped)", s.String())
	assert.False(t, s.canMove())

	s.State = binlogdatapb.VReplicationWorkflowState_Copying
	assert.True(t, s.canMove(), "a stream that copies moves")

	s.Source = nil
	assert.Equal(t, "stream 3 (move)", s.String())
}
