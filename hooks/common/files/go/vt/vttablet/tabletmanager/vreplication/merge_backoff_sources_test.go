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
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/memorytopo"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
	"vitess.io/vitess/go/vt/vttablet/tmclient"
	"vitess.io/vitess/go/vt/vttablet/tmclienttest"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// TestMergeBackoffAsksSources shows that a duplicate is not held to be genuine
// while the primary of a source cannot be asked for its position, nor before the
// streams have read up to that position; and that it is after that.
func TestMergeBackoffAsksSources(t *testing.T) {
	m := newMergeTest(t, 2, mergeDDL)
	sources := &fakeSources{}
	was := playerEngine.mergeHub.Sources
	playerEngine.mergeHub.Sources = sources
	t.Cleanup(func() { playerEngine.mergeHub.Sources = was })
	m.startAll()
	m.exec("insert into {0} values (1, 10, 'a')")
	m.waitConverged()

	m.exec("insert into {1} values (2, 10, 'b')")
	m.waitFor("the message says that the source could not be asked", func() (bool, string) {
		state, message := m.stream(1)
		require.Equal(t, "Running", state, message)
		return strings.Contains(message, "could not be asked: no primary"), message
	})
	// A transaction more than there are.
	future := primaryPosition(t) + "1"
	sources.position.Store(&future)
	m.waitFor("the sources have been asked again several times over", func() (bool, string) {
		state, message := m.stream(1)
		require.Equal(t, "Running", state, message)
		return sources.compared.Load() > 5, message
	})
	present := primaryPosition(t)
	sources.position.Store(&present)
	// What was asked for stays the target: the sources had reached it.
	sources.instead.Store(&present)
	require.Contains(t, m.waitDuplicate(1), "genuine duplicate")
}

// fakeSources are sources all of which are at one position, if any.
type fakeSources struct {
	mergeSources
	position, instead atomic.Pointer[string]
	compared          atomic.Int64
}

func (fs *fakeSources) Position(context.Context, mergebackoff.Stream) (string, error) {
	if position := fs.position.Load(); position != nil {
		return *position, nil
	}
	return "", errors.New("no primary")
}

func (fs *fakeSources) AtLeast(position, other string) (bool, error) {
	fs.compared.Add(1)
	if instead := fs.instead.Load(); instead != nil {
		other = *instead
	}
	return fs.mergeSources.AtLeast(position, other)
}

// TestMergeBackoffSourcePosition shows whom a stream's source is asked of, and
// the errors where nobody can be.
func TestMergeBackoffSourcePosition(t *testing.T) {
	const position = "MySQL56/16b1039f-22b6-11ed-b765-0a43f95f28a3:1-9"
	registerPositionClient(position)
	tmclienttest.SetProtocol("merge_backoff_sources", "merge_backoff_sources")

	ctx := context.Background()
	ts := memorytopo.NewServer(ctx, "zone1")
	defer ts.Close()
	require.NoError(t, ts.CreateKeyspace(ctx, "ks", &topodatapb.Keyspace{}))
	alias := &topodatapb.TabletAlias{Cell: "zone1", Uid: 7}
	for _, shard := range []string{"-80", "80-"} {
		require.NoError(t, ts.CreateShard(ctx, "ks", shard))
	}
	require.NoError(t, ts.CreateTablet(ctx, &topodatapb.Tablet{
		Alias: alias, Keyspace: "ks", Shard: "-80", Type: topodatapb.TabletType_PRIMARY,
	}))
	_, err := ts.UpdateShardFields(ctx, "ks", "-80", func(si *topo.ShardInfo) error {
		si.PrimaryAlias = alias
		return nil
	})
	require.NoError(t, err)

	tests := []struct {
		name   string
		source *binlogdatapb.BinlogSource
		want   string
		err    string
	}{
		{
			name:   "the primary of the shard",
			source: &binlogdatapb.BinlogSource{Keyspace: "ks", Shard: "-80"},
			want:   position,
		},
		{
			name:   "a MySQL that is no shard is not asked",
			source: &binlogdatapb.BinlogSource{ExternalMysql: "legacy"},
		},
		{
			name:   "a shard without a primary",
			source: &binlogdatapb.BinlogSource{Keyspace: "ks", Shard: "80-"},
			err:    "shard ks/80- has no primary",
		},
		{
			name:   "no such shard",
			source: &binlogdatapb.BinlogSource{Keyspace: "ks", Shard: "-40"},
			err:    "node doesn't exist",
		},
		{
			name:   "no such cluster",
			source: &binlogdatapb.BinlogSource{Keyspace: "ks", Shard: "-80", ExternalCluster: "elsewhere"},
			err:    "no vitess cluster found with name elsewhere",
		},
	}
	sources := &mergeSources{ts: ts}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sources.Position(ctx, mergebackoff.Stream{Source: tt.source})
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	reached, err := sources.AtLeast(position, "MySQL56/16b1039f-22b6-11ed-b765-0a43f95f28a3:1-8")
	require.NoError(t, err)
	require.True(t, reached)
	reached, err = sources.AtLeast(position, "MySQL56/16b1039f-22b6-11ed-b765-0a43f95f28a3:1-10")
	require.NoError(t, err)
	require.False(t, reached)
	_, err = sources.AtLeast(position, "nonsense/1")
	require.Error(t, err)
}

// registerPositionClient may be called once per process; Vitess's framework runs
// every test twice.
var registerPositionClient = func() func(string) {
	var once sync.Once
	return func(position string) {
		once.Do(func() {
			tmclient.RegisterTabletManagerClientFactory("merge_backoff_sources", func() tmclient.TabletManagerClient {
				return &positionClient{position: position}
			})
		})
	}
}()

// positionClient is a tablet manager's client that knows a position only.
type positionClient struct {
	tmclient.TabletManagerClient
	position string
}

func (c *positionClient) PrimaryPosition(context.Context, *topodatapb.Tablet) (string, error) {
	return c.position, nil
}

func (c *positionClient) Close() {}
