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

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
	"vitess.io/vitess/go/vt/vttablet/tmclient"
)

// mergeSources asks the primaries of source shards how far they are.
type mergeSources struct {
	ts *topo.Server
}

// Position returns what the primary of the stream's source shard has executed. A
// MySQL outside of Vitess is not asked: only its address as a source is known.
func (ms *mergeSources) Position(ctx context.Context, stream mergebackoff.Stream) (string, error) {
	source := stream.Source
	if source.GetExternalMysql() != "" {
		return "", nil
	}
	ts := ms.ts
	if source.GetExternalCluster() != "" {
		external, err := ts.OpenExternalVitessClusterServer(ctx, source.ExternalCluster)
		if err != nil {
			return "", err
		}
		defer external.Close()
		ts = external
	}
	shard, err := ts.GetShard(ctx, source.GetKeyspace(), source.GetShard())
	if err != nil {
		return "", err
	}
	if !shard.HasPrimary() {
		return "", fmt.Errorf("shard %s/%s has no primary", source.GetKeyspace(), source.GetShard())
	}
	tablet, err := ts.GetTablet(ctx, shard.PrimaryAlias)
	if err != nil {
		return "", err
	}
	tmc := tmclient.NewTabletManagerClient()
	defer tmc.Close()
	position, err := tmc.PrimaryPosition(ctx, tablet.Tablet)
	if err != nil {
		return "", vterrors.Wrapf(err, "tablet %s", topoproto.TabletAliasString(shard.PrimaryAlias))
	}
	return position, nil
}

// AtLeast reports whether a position has reached another.
func (ms *mergeSources) AtLeast(position, other string) (bool, error) {
	pos, err := replication.DecodePosition(position)
	if err != nil {
		return false, err
	}
	target, err := replication.DecodePosition(other)
	if err != nil {
		return false, err
	}
	return pos.AtLeast(target), nil
}
