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

package cluster

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Stream is one row of _vt.vreplication on a target.
type Stream struct {
	ID          int
	SourceShard string
	Position    string
	State       string
	Message     string
	// Updated is when the row was last written, heartbeats included.
	Updated time.Time
	// Applied is the source's time of the last applied transaction, or zero.
	Applied time.Time
}

// sourceShard finds the shard in the text form of a stream's source.
var sourceShard = regexp.MustCompile(`\bshard:\s*"([^"]*)"`)

// Streams reads the streams of a workflow from the tablet's MySQL, which also
// answers while the vttablet is down.
func (t *Tablet) Streams(ctx context.Context, workflow string) ([]Stream, error) {
	db, err := t.MySQL.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx,
		"select id, source, pos, state, message, time_updated, transaction_timestamp from _vt.vreplication "+
			"where workflow = ? and db_name = ? order by id", workflow, t.MySQL.Database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Stream
	for rows.Next() {
		var s Stream
		var source string
		var updated, applied int64
		if err := rows.Scan(&s.ID, &source, &s.Position, &s.State, &s.Message, &updated, &applied); err != nil {
			return nil, err
		}
		if found := sourceShard.FindStringSubmatch(source); found != nil {
			s.SourceShard = found[1]
		}
		s.Updated = time.Unix(updated, 0)
		if applied > 0 {
			s.Applied = time.Unix(applied, 0)
		}
		list = append(list, s)
	}
	return list, rows.Err()
}

// Executed returns the position of the tablet's MySQL.
func (t *Tablet) Executed(ctx context.Context) (string, error) {
	db, err := t.MySQL.Open()
	if err != nil {
		return "", err
	}
	defer db.Close()
	var gtid string
	err = db.QueryRowContext(ctx, "select @@global.gtid_executed").Scan(&gtid)
	return strings.ReplaceAll(gtid, "\n", ""), err
}

// Contains tells whether a stream's position includes a source's position.
// MySQL computes it, here on the tablet's own server.
func (t *Tablet) Contains(ctx context.Context, stream, source string) (bool, error) {
	db, err := t.MySQL.Open()
	if err != nil {
		return false, err
	}
	defer db.Close()
	_, set, found := strings.Cut(stream, "/")
	if !found {
		set = stream
	}
	var contained bool
	err = db.QueryRowContext(ctx, "select gtid_subset(?, ?)", source, set).Scan(&contained)
	return contained, err
}

// Vars is what a vttablet exports at /debug/vars.
type Vars map[string]json.RawMessage

// Vars reads the vttablet's counters.
func (t *Tablet) Vars(ctx context.Context) (Vars, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var vars Vars
	err := httpJSON(ctx, t.url("/debug/vars"), &vars)
	return vars, err
}

// Map returns a counter that has labels. A counter that does not exist is
// empty: an unpatched tablet lacks some.
func (v Vars) Map(name string) map[string]int64 {
	var counts map[string]int64
	if json.Unmarshal(v[name], &counts) != nil {
		return nil
	}
	return counts
}

// Int returns a counter, or the sum of one that has labels.
func (v Vars) Int(name string) int64 {
	if value, err := strconv.ParseInt(string(v[name]), 10, 64); err == nil {
		return value
	}
	var sum int64
	for _, value := range v.Map(name) {
		sum += value
	}
	return sum
}
