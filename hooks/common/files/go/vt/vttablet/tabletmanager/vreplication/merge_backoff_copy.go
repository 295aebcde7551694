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
	"maps"
	"slices"
	"time"

	"vitess.io/vitess/go/vt/sqlparser"
	vttablet "vitess.io/vitess/go/vt/vttablet/common"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication/mergebackoff"
)

// This file is what merge backoff does in the copy phase.

// retryCopy is asked about the error that a cycle of the copy phase ended with.
// It returns nil, after a while, if that was a duplicate key which may be gone
// in the next cycle.
func (vr *vreplicator) retryCopy(ctx context.Context, err error) error {
	if vr.workflowConfig.ExperimentalFlags&vttablet.VReplicationExperimentalFlagMergeBackoff == 0 || vr.vre == nil {
		return err
	}
	config := mergebackoff.Config{
		ID:     vr.id,
		Tables: slices.Sorted(maps.Keys(vr.colInfoMap)),
		Limit:  vr.workflowConfig.MaxTimeToRetryError,
	}
	err = vr.mergeCopy.Wait(ctx, &vr.vre.mergeHub, config, err, vr.setMessage)
	if ctx.Err() != nil {
		// The caller looks at the context before it goes on.
		return nil
	}
	return err
}

// deferrableSecondaryKeys returns the keys that the copy phase may drop until its end.
// The unique keys of a merge stay. Without them streams that are at different times
// write rows which contradict each other; the keys could then only be added at an
// instant at which no two do, and adding them takes long.
func (vr *vreplicator) deferrableSecondaryKeys(ctx context.Context, tableName string) ([]*sqlparser.IndexDefinition, error) {
	keys, err := vr.getTableSecondaryKeys(ctx, tableName)
	if err != nil || !vr.merges(tableName) {
		return keys, err
	}
	return slices.DeleteFunc(keys, func(key *sqlparser.IndexDefinition) bool { return key.Info.IsUnique() }), nil
}

// carefulCopy is how long an attempt to copy a table takes at most that comes after a
// duplicate key.
const carefulCopy = 10 * time.Second

// copyConfig returns the configuration for the next attempt to copy a table. After a
// duplicate key the rows come one by one, so that those before the row which has to
// wait are copied; after that, the rest of the table comes as ever.
func (vr *vreplicator) copyConfig() *vttablet.VReplicationConfig {
	if !vr.mergeCopy.Careful() {
		return vr.workflowConfig
	}
	config := *vr.workflowConfig
	config.CopyPhaseDuration = min(config.CopyPhaseDuration, carefulCopy)
	config.Overrides = maps.Clone(config.Overrides)
	if config.Overrides == nil {
		config.Overrides = make(map[string]string)
	}
	// With underscores every release line knows them, and only one name may count.
	delete(config.Overrides, "vstream-packet-size")
	delete(config.Overrides, "vstream-dynamic-packet-size")
	config.Overrides["vstream_packet_size"] = "1"
	config.Overrides["vstream_dynamic_packet_size"] = "false"
	return &config
}

// merges reports whether merge backoff is on, and the stream has peers that write one
// of these tables.
func (vr *vreplicator) merges(tables ...string) bool {
	return vr.workflowConfig.ExperimentalFlags&vttablet.VReplicationExperimentalFlagMergeBackoff != 0 &&
		vr.vre != nil && vr.vre.mergeHub.Merges(vr.id, tables)
}
