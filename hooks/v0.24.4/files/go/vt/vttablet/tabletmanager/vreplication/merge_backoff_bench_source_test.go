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
	"io"
	"maps"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/grpcclient"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/queryservice"
	"vitess.io/vitess/go/vt/vttablet/queryservice/fakes"
	"vitess.io/vitess/go/vt/vttablet/tabletconn"
	"vitess.io/vitess/go/vt/vttablet/tabletconntest"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

type (
	// benchSource sends what a stream reads, from a position on.
	benchSource func(ctx context.Context, from replication.Position, send func([]*binlogdatapb.VEvent) error) error

	// benchTabletConn is a connection to a source tablet of the benchmark.
	benchTabletConn struct{ fakeTabletConn }

	// benchDBClient tells when each stream's target transactions are committed.
	benchDBClient struct {
		binlogplayer.DBClient
		commits *benchCommits
		// ids are the streams whose positions the open transaction saves.
		ids []int
	}

	// benchCommits has the last commit of each stream.
	benchCommits struct {
		mu   sync.Mutex
		last map[int]benchCommit
	}

	// benchCommit is a target transaction as its client sees it: when the
	// request that commits it was sent, and when it was answered.
	benchCommit struct{ sent, answered time.Time }
)

const benchProtocol = "merge_bench"

// benchSources has the sources by the names of their tables.
var benchSources struct {
	mu sync.Mutex
	m  map[string]benchSource
}

func init() {
	tabletconn.RegisterDialer(benchProtocol, func(_ context.Context, tablet *topodatapb.Tablet, _ grpcclient.FailFast) (queryservice.QueryService, error) {
		return &benchTabletConn{fakeTabletConn{QueryService: fakes.ErrorQueryService, tablet: tablet}}, nil
	})
}

// setBenchSources says what streams read that start from now on.
func setBenchSources(m map[string]benchSource) {
	benchSources.mu.Lock()
	defer benchSources.mu.Unlock()
	benchSources.m = maps.Clone(m)
}

func (c *benchTabletConn) VStream(ctx context.Context, request *binlogdatapb.VStreamRequest, send func([]*binlogdatapb.VEvent) error) error {
	benchSources.mu.Lock()
	source := benchSources.m[request.Filter.Rules[0].Match]
	benchSources.mu.Unlock()
	if source == nil {
		return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "no source has the table %s", request.Filter.Rules[0].Match)
	}
	from, err := replication.DecodePosition(request.Position)
	if err != nil {
		return err
	}
	return source(ctx, from, send)
}

// useBenchEngine replaces the framework's engine by one that talks to MySQL as a
// vttablet does: the framework's client sends a batch statement by statement.
func useBenchEngine(t *testing.T, commits *benchCommits) {
	t.Helper()
	tabletconntest.SetProtocol("merge_backoff_bench", benchProtocol)
	params, err := env.Dbcfgs.AppWithDB().MysqlParams()
	require.NoError(t, err)
	target := *params
	target.DbName = vrepldb
	factory := func() binlogplayer.DBClient {
		client := binlogplayer.NewDBClient(dbconfigs.New(&target), sqlparser.NewTestParser())
		if commits == nil {
			return client
		}
		return &benchDBClient{DBClient: client, commits: commits}
	}
	framework := playerEngine
	framework.Close()
	playerEngine = NewTestEngine(env.TopoServ, env.Cells[0], &infoSchemaMysqld{MysqlDaemon: env.Mysqld}, factory, realDBClientFactory, vrepldb, nil)
	playerEngine.Open(t.Context())
	t.Cleanup(func() {
		playerEngine.Close()
		playerEngine = framework
		playerEngine.Open(context.Background())
		tabletconntest.SetProtocol("merge_backoff_bench_end", "test")
	})
}

var benchSavesPosition = regexp.MustCompile(`update _vt\.vreplication set pos=[^;]* where id=(\d+)`)

func (c *benchDBClient) note(query string) {
	for _, match := range benchSavesPosition.FindAllStringSubmatch(query, -1) {
		id, _ := strconv.Atoi(match[1])
		c.ids = append(c.ids, id)
	}
}

func (c *benchDBClient) committed(sent time.Time) {
	answered := time.Now()
	c.commits.mu.Lock()
	defer c.commits.mu.Unlock()
	for _, id := range c.ids {
		c.commits.last[id] = benchCommit{sent: sent, answered: answered}
	}
	c.ids = nil
}

func (c *benchDBClient) ExecuteFetch(query string, maxrows int) (*sqltypes.Result, error) {
	c.note(query)
	return c.DBClient.ExecuteFetch(query, maxrows)
}

func (c *benchDBClient) ExecuteFetchMulti(query string, maxrows int) ([]*sqltypes.Result, error) {
	sent := time.Now()
	results, err := c.DBClient.ExecuteFetchMulti(query, maxrows)
	if err == nil {
		c.note(query)
		c.committed(sent)
	}
	return results, err
}

func (c *benchDBClient) Commit() error {
	sent := time.Now()
	err := c.DBClient.Commit()
	if err == nil {
		c.committed(sent)
	}
	return err
}

func (c *benchDBClient) Rollback() error {
	c.ids = nil
	return c.DBClient.Rollback()
}

// take returns the stream's last commit, once.
func (c *benchCommits) take(id int) (benchCommit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commit, ok := c.last[id]
	delete(c.last, id)
	return commit, ok
}

// gated makes a source wait until the gate opens, and tells that it does.
func gated(source benchSource, ready *sync.WaitGroup, gate <-chan struct{}) benchSource {
	arrived := sync.OnceFunc(ready.Done)
	return func(ctx context.Context, from replication.Position, send func([]*binlogdatapb.VEvent) error) error {
		arrived()
		select {
		case <-ctx.Done():
			return io.EOF
		case <-gate:
		}
		return source(ctx, from, send)
	}
}
