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
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// guideSchema has a table that merges, and some that cannot be reordered.
const guideSchema = `create table customer (id bigint primary key, email varchar(64), unique key email_uk (email));
create table parent (id bigint primary key);
create table child (id bigint primary key, foreign key (id) references parent (id));
create table keyless (id bigint, unique key (id));
create table equivalent (id bigint not null, u bigint, unique key (id), unique key (u))`

// guideTest follows the operator's guide on a cluster: it runs the guide's own
// commands, in which ks and wf stand for the keyspace and the workflow.
type guideTest struct {
	*testing.T
	ctx     context.Context
	guide   string
	cluster *Cluster
	target  *Tablet
	path    string // for its shell
}

// TestOperatorsGuide follows docs/operators.md: it tells a merge by its streams,
// meets a genuine duplicate, reads message, log and metrics, repairs the source,
// starts again, and switches merge backoff off for the workflow. See testOptions
// for how to run it.
func TestOperatorsGuide(t *testing.T) {
	opts := testOptions(t)
	for _, tool := range []string{"bash", "curl", "jq"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "the guide's commands need it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var tables []string
	for _, table := range []string{"customer", "parent", "child", "keyless", "equivalent"} {
		tables = append(tables, `"`+table+`":{"column_vindexes":[{"column":"id","name":"hash"}]}`)
	}
	opts.Keyspaces = []Keyspace{{
		Name:    "ks",
		Shards:  []Shard{{Name: "-80"}, {Name: "80-"}, {Name: "-"}},
		Schema:  guideSchema,
		VSchema: `{"sharded":true,"vindexes":{"hash":{"type":"hash"}},"tables":{` + strings.Join(tables, ",") + `}}`,
	}}
	c, err := Start(ctx, opts)
	must(t, "start", err)
	defer c.Close()
	guide, err := os.ReadFile("../../docs/operators.md")
	require.NoError(t, err)
	g := &guideTest{T: t, ctx: ctx, guide: string(guide), cluster: c, target: c.Tablets("ks", "-")[0]}
	g.putOnPath(opts.Bin)

	_, err = c.Reshard(ctx, "ks", "wf", []string{"-80", "80-"}, []string{"-"})
	must(t, "Reshard", err)
	g.await("both streams run", func() bool {
		streams, err := g.target.Streams(ctx, "wf")
		require.NoError(t, err)
		running := len(streams) == 2
		for _, stream := range streams {
			// A new stream says Running as well, before it copies.
			running = running && stream.State == "Running" && !stream.Applied.IsZero()
		}
		return running
	})
	assert.Regexp(t, "^-/zone1-[0-9]+: 2 streams\n$", g.run("streams | length"))

	g.barred()
	g.duplicate()
	g.repair()
	g.switchOff()
}

// putOnPath makes a vtctldclient that knows the server, as the guide has it.
func (g *guideTest) putOnPath(bin string) {
	dir := g.TempDir()
	client, err := filepath.Abs(filepath.Join(bin, "vtctldclient"))
	require.NoError(g, err)
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' --server %s \"$@\"\n", client, loopback(g.cluster.vtctldPort))
	require.NoError(g, os.WriteFile(filepath.Join(dir, "vtctldclient"), []byte(script), 0o755))
	g.path = dir + ":" + os.Getenv("PATH")
}

// commands are those of the guide: indented, or between backquotes.
var commands = regexp.MustCompile("(?m)(?:^ {4,}|`)((?:vtctldclient (?:Workflow|ExecuteFetchAsDBA)|curl) (?:[^`\n]*))(?:`|$)")

// run runs the first command of the guide that has the text; a backquote at the
// text's end is the command's end.
func (g *guideTest) run(text string) string {
	g.Helper()
	for _, match := range commands.FindAllStringSubmatch(g.guide, -1) {
		if !strings.Contains(match[1]+"`", text) {
			continue
		}
		command := strings.NewReplacer("tablet:port", loopback(g.target.port), "zone1-100", g.cluster.Tablets("ks", "-80")[0].Alias).Replace(match[1])
		cmd := exec.CommandContext(g.ctx, "bash", "-o", "pipefail", "-c", command)
		cmd.Env = append(os.Environ(), "PATH="+g.path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(g, err, "%s\n%s", command, stderr.String())
		return string(out)
	}
	require.Fail(g, "the guide has no such command", text)
	return ""
}

// await waits until a condition holds.
func (g *guideTest) await(what string, holds func() bool) {
	g.Helper()
	must(g.T, what, waitFor(g.ctx, what, nil, func(context.Context) error {
		if !holds() {
			return errNotRunning
		}
		return nil
	}))
}

// exec writes to the sources, through vtgate.
func (g *guideTest) exec(query string) {
	g.Helper()
	db, err := g.cluster.Gate("ks")
	require.NoError(g, err)
	defer db.Close()
	_, err = db.ExecContext(g.ctx, query)
	require.NoError(g, err, query)
}

// messages are those of the streams.
func (g *guideTest) messages() string {
	g.Helper()
	streams, err := g.target.Streams(g.ctx, "wf")
	require.NoError(g, err)
	var all []string
	for _, stream := range streams {
		if stream.Message != "" {
			all = append(all, stream.State+": "+stream.Message)
		}
	}
	return strings.Join(all, "\n")
}

// rows counts what the target has.
func (g *guideTest) rows(where string) (n int) {
	g.Helper()
	db, err := g.target.MySQL.Open()
	require.NoError(g, err)
	defer db.Close()
	require.NoError(g, db.QueryRowContext(g.ctx, "select count(*) from customer where "+where).Scan(&n))
	return n
}

// barred shows that the tables are found which cannot be reordered.
func (g *guideTest) barred() {
	found := g.run("referential_constraints")
	for _, table := range []string{"parent", "child", "keyless"} {
		assert.Regexp(g, `(?m)^\| +`+table+` +\|$`, found)
	}
	assert.NotContains(g, found, "customer")
	assert.NotContains(g, found, "equivalent")
	assert.Regexp(g, `\| +ROW +\|`, g.run("binlog_format"))
}

// duplicate meets a genuine duplicate. Customer 1 lives in -80, customer 4 in 80-.
func (g *guideTest) duplicate() {
	g.exec("insert into customer (id, email) values (1, 'ann@example.com')")
	g.await("the first row is on the target", func() bool { return g.rows("id = 1") == 1 })
	g.exec("insert into customer (id, email) values (4, 'ann@example.com')")

	g.await("the stream says what it waits for", func() bool { return g.messages() != "" })
	assert.Regexp(g, `^Running: merge backoff: waiting since \S+ for the value 'ann@example.com' of key customer.email_uk, held by the row with primary key \('1'\) `+
		`of stream \d+ \(wf, source ks/-80\), to be released by stream \d+ \(wf, source ks/-80\)`, g.messages())
	g.await("the duplicate is genuine", func() bool { return strings.HasPrefix(g.messages(), "Error: ") })
	assert.Regexp(g, `^Error: .*merge backoff: giving up on the value 'ann@example.com' of key customer.email_uk, held by the row with primary key \('1'\) of `+
		`stream \d+ \(wf, source ks/-80\), wanted by the row with primary key \('4'\) of stream \d+ \(wf, source ks/80-\): it is a genuine duplicate: .*`+
		`Duplicate entry 'ann@example.com' for key 'customer.email_uk' \(errno 1062\)`, g.messages())

	shown := g.run("show --workflow wf`")
	assert.Contains(g, shown, "merge backoff: giving up on the value")
	assert.Contains(g, shown, `"type": "State Changed"`, "rows of vreplication_log")
	assert.Regexp(g, `"state":"Error","message":"[^"]*merge backoff: giving up on the value`, g.run("{id, state, message}"))
	assert.Regexp(g, `"state":"Error","message":"[^"]*merge backoff: giving up on the value`, g.run("{stream_id"))

	vars := g.run("debug/vars")
	assert.Regexp(g, `"VReplicationMergeGenuineDuplicateCountTotal": 1\b`, vars)
	assert.Regexp(g, `"VReplicationMergeBlockedTimings"`, vars)
	g.prometheus()
}

// prometheus shows that each metric of the dashboard is exported, with the label
// by which it is chosen.
func (g *guideTest) prometheus() {
	dashboard, err := os.ReadFile("../../docs/grafana.json")
	require.NoError(g, err)
	response, err := http.Get(g.target.url("/metrics"))
	require.NoError(g, err)
	defer response.Body.Close()
	exported, err := io.ReadAll(response.Body)
	require.NoError(g, err)
	names := regexp.MustCompile(`vttablet_\w+`).FindAllString(string(dashboard), -1)
	require.NotEmpty(g, names)
	for _, name := range names {
		assert.Regexp(g, `(?m)^`+name+`\{[^}]*\bworkflow="wf"`, string(exported))
	}
}

// repair changes one row on its source, and starts the workflow.
func (g *guideTest) repair() {
	g.exec("update customer set email = 'ann.4@example.com' where id = 4")
	g.run("start --workflow wf")
	g.await("the repaired row arrives", func() bool { return g.rows("id = 4 and email = 'ann.4@example.com'") == 1 })
	g.await("the message is gone", func() bool { return g.messages() == "" })
	assert.Equal(g, 1, g.rows("id = 1 and email = 'ann@example.com'"))
}

// switchOff shows that the workflow then ends at a duplicate as on stock.
func (g *guideTest) switchOff() {
	assert.Equal(g, "{}\n", g.run("options.config"))
	g.run("experimental-flags=7")
	assert.Equal(g, `{"vreplication-experimental-flags":"7"}`+"\n", g.run("options.config"))
	g.exec("insert into customer (id, email) values (6, 'ann@example.com')")
	g.await("the stream ends", func() bool { return strings.HasPrefix(g.messages(), "Error: ") })
	assert.NotContains(g, g.messages(), "merge backoff")
	assert.Contains(g, g.messages(), "errno 1062")

	g.run("experimental-flags=`")
	assert.NotContains(g, g.run("options.config"), "7")
}
