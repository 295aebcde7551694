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
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle/throttlerapp"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

const (
	// benchHotValues is how many values are handed from shard to shard.
	benchHotValues = 20
	// benchPacket is how many source transactions are sent to MySQL at a time.
	benchPacket = 500
)

type (
	// benchHistory is a backlog of source transactions: what the vstreamer of
	// each source sends of it, in a file. It is recorded once and drained many
	// times, so that all drains have the same work, and so that the target's
	// machine does not also do the work of its sources, which are other machines
	// in production.
	benchHistory struct {
		name string
		// start is the position in front of the backlog.
		start   string
		sources []benchRecording
		// union is the checksum of all sources' rows after the backlog.
		union string
	}

	benchRecording struct {
		file         string
		transactions int
		end          replication.Position
	}

	// benchWriter makes up a history that is valid at every instant.
	benchWriter struct {
		rand   *rand.Rand
		shards []benchShard
		hot    [benchHotValues]benchOwner
		// next is the number from which the next row gets its id and its value.
		next int
	}

	// benchShard has the rows of a source that hold no hot value.
	benchShard struct{ rows []int }

	// benchOwner is the row that holds a hot value or, if id is 0, the source
	// that released it last.
	benchOwner struct{ shard, id int }
)

// recordHistory writes a backlog to the sources, of which percent of the
// transactions release or take a hot value, and records it.
func recordHistory(t *testing.T, dir, name string, streams, transactions int, percent float64) *benchHistory {
	t.Helper()
	m := newMergeTest(t, streams, mergeDDL)
	w := &benchWriter{rand: rand.New(rand.NewPCG(uint64(streams), uint64(percent*1000))), shards: make([]benchShard, streams), next: benchHotValues}
	for i := range w.hot {
		w.hot[i].shard = i % streams
	}
	return m.record(dir, name, transactions, func() string { return w.transaction(percent) })
}

// record runs the statements, each a source transaction of its own, one after
// the other, and records what the streams' sources send of them.
func (m *mergeTest) record(dir, name string, transactions int, statement func() string) *benchHistory {
	m.t.Helper()
	history := &benchHistory{name: name, start: primaryPosition(m.t), sources: make([]benchRecording, len(m.sources))}
	conn := m.mysqlConn()
	require.NoError(m.t, conn.SetMultiStatements(true))
	// In one connection, since a value must be released before it is taken.
	for n := 0; n < transactions; n += benchPacket {
		var statements []string
		for range min(benchPacket, transactions-n) {
			statements = append(statements, m.expandBench(statement()))
		}
		_, more, err := conn.ExecuteFetchMulti(strings.Join(statements, ";"), 0, false)
		require.NoError(m.t, err)
		for more {
			_, more, _, err = conn.ReadQueryResult(0, false)
			require.NoError(m.t, err)
		}
		if n/benchPacket%10 == 0 {
			benchProgress("  writing the backlog %q: %d of %d transactions", name, n, transactions)
		}
	}
	until := primaryPositionParsed(m.t)
	retime := benchRetime(m.t, history.start, until)
	var sources []string
	for i, source := range m.sources {
		if i == 0 {
			benchProgress("  recording the backlog %q", name)
		}
		history.sources[i] = m.recordSource(filepath.Join(dir, fmt.Sprintf("%s-%d", name, i)), source, history.start, until, retime)
		sources = append(sources, "select * from vttest."+source)
	}
	history.union = m.checksum("(" + strings.Join(sources, " union all ") + ") sources")
	return history
}

// expandBench is expand for more than ten sources and many statements: the
// statement begins with the number of its source.
func (m *mergeTest) expandBench(statement string) string {
	source, rest, _ := strings.Cut(statement, " ")
	i := 0
	_, err := fmt.Sscan(source, &i)
	require.NoError(m.t, err)
	return strings.Replace(rest, "{}", m.sources[i], 1)
}

// checksum is equal for tables of equal rows.
func (m *mergeTest) checksum(table string) string {
	m.t.Helper()
	const row = "concat_ws('#', id, ifnull(uid, 'null'), val)"
	return m.query(fmt.Sprintf("select count(*), coalesce(sum(crc32(%s)), 0), bit_xor(cast(conv(left(sha2(%s, 256), 16), 16, 10) as unsigned)) from %s", row, row, table))[0]
}

// recordSource writes what the vstreamer sends of a source table to a file,
// message by message. Transactions of other tables are left out: they are those
// of other sources, which have binary logs of their own in production.
func (m *mergeTest) recordSource(file, source, start string, until replication.Position, retime func(events []*binlogdatapb.VEvent, at replication.Position)) benchRecording {
	m.t.Helper()
	recording := benchRecording{file: file}
	f, err := os.Create(file)
	require.NoError(m.t, err)
	defer f.Close()
	out := bufio.NewWriter(f)
	filter := &binlogdatapb.Filter{Rules: []*binlogdatapb.Rule{{Match: source, Filter: "select * from " + source}}}
	err = streamerEngine.Stream(m.t.Context(), start, nil, filter, throttlerapp.VStreamerName, func(events []*binlogdatapb.VEvent) error {
		var reached replication.Position
		rows := false
		for _, event := range events {
			switch event.Type {
			case binlogdatapb.VEventType_ROW:
				rows = true
			case binlogdatapb.VEventType_GTID:
				var err error
				if reached, err = replication.DecodePosition(event.Gtid); err != nil {
					return err
				}
			}
		}
		if rows {
			recording.transactions++
			recording.end = reached
			retime(events, reached)
			message, err := (&binlogdatapb.VStreamResponse{Events: events}).MarshalVT()
			if err != nil {
				return err
			}
			if _, err := out.Write(append(binary.AppendUvarint(nil, uint64(len(message))), message...)); err != nil {
				return err
			}
		}
		if !reached.IsZero() && reached.AtLeast(until) {
			return io.EOF
		}
		return nil
	}, nil)
	if !errors.Is(err, io.EOF) {
		require.NoError(m.t, err)
	}
	require.NoError(m.t, out.Flush())
	return recording
}

// benchRetime returns a function that sets the source's time of a transaction, as
// if all sources together had made so many a second as was asked for: a backlog
// is written here in seconds that would otherwise cover minutes or hours.
func benchRetime(t *testing.T, start string, until replication.Position) func(events []*binlogdatapb.VEvent, at replication.Position) {
	t.Helper()
	rate := benchNumber(t, "MERGE_BACKOFF_BENCH_RATE", 0)
	if rate == 0 {
		return func([]*binlogdatapb.VEvent, replication.Position) {}
	}
	number := func(pos replication.Position) int64 {
		text := pos.String()
		n, err := strconv.ParseInt(text[strings.LastIndexAny(text, ":-")+1:], 10, 64)
		require.NoError(t, err, text)
		return n
	}
	from, err := replication.DecodePosition(start)
	require.NoError(t, err)
	begin := time.Now().Unix() - (number(until)-number(from))/int64(rate)
	return func(events []*binlogdatapb.VEvent, at replication.Position) {
		for _, event := range events {
			if event.Timestamp != 0 {
				event.Timestamp = begin + (number(at)-number(from))/int64(rate)
			}
		}
	}
}

// play sends the recording from a position on, and heartbeats after its end, as
// the vstreamer of a tablet does. It is decoded on the way, as gRPC does.
func (r *benchRecording) play(ctx context.Context, from replication.Position, send func([]*binlogdatapb.VEvent) error) error {
	f, err := os.Open(r.file)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	for ctx.Err() == nil {
		response, err := readBenchMessage(in)
		if errors.Is(err, io.EOF) {
			return benchHeartbeats(ctx, send)
		}
		if err != nil {
			return err
		}
		if !from.IsZero() && from.AtLeast(benchPosition(response.Events)) {
			continue
		}
		// It is not looked at again: positions only grow.
		from = replication.Position{}
		if err := send(response.Events); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// readBenchMessage reads one message of a recording.
func readBenchMessage(in *bufio.Reader) (*binlogdatapb.VStreamResponse, error) {
	size, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(in, message); err != nil {
		return nil, err
	}
	response := &binlogdatapb.VStreamResponse{}
	if err := response.UnmarshalVT(message); err != nil {
		return nil, err
	}
	now := time.Now().UnixNano()
	for _, event := range response.Events {
		event.CurrentTime = now
	}
	return response, nil
}

func benchHeartbeats(ctx context.Context, send func([]*binlogdatapb.VEvent) error) error {
	ticker := time.NewTicker(900 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			now := time.Now()
			if err := send([]*binlogdatapb.VEvent{{Type: binlogdatapb.VEventType_HEARTBEAT, Timestamp: now.Unix(), CurrentTime: now.UnixNano()}}); err != nil {
				return err
			}
		}
	}
}

// benchPosition returns the position that a message leads to.
func benchPosition(events []*binlogdatapb.VEvent) replication.Position {
	i := slices.IndexFunc(events, func(event *binlogdatapb.VEvent) bool { return event.Type == binlogdatapb.VEventType_GTID })
	if i < 0 {
		return replication.Position{}
	}
	pos, err := replication.DecodePosition(events[i].Gtid)
	if err != nil {
		return replication.Position{}
	}
	return pos
}

// transaction makes up the next source transaction: the number of its source,
// and a statement, in which {} stands for the source's table.
func (w *benchWriter) transaction(percent float64) string {
	if w.rand.Float64()*100 < percent {
		return w.hotTransaction(w.rand.IntN(benchHotValues))
	}
	shard := w.rand.IntN(len(w.shards))
	what := w.rand.IntN(8)
	switch {
	case what < 4 || len(w.shards[shard].rows) < 10:
		w.next++
		w.shards[shard].rows = append(w.shards[shard].rows, w.next)
		return fmt.Sprintf("%d insert into {} values (%d, %d, 'a value of some length')", shard, w.next, w.next)
	case what < 6:
		w.next++
		return fmt.Sprintf("%d update {} set uid=%d, val='another value of some length' where id=%d", shard, w.next, w.row(shard, false))
	}
	return fmt.Sprintf("%d delete from {} where id=%d", shard, w.row(shard, true))
}

// row returns one of a source's rows, and takes it away if asked to.
func (w *benchWriter) row(shard int, take bool) int {
	rows := w.shards[shard].rows
	i := w.rand.IntN(len(rows))
	id := rows[i]
	if take {
		rows[i] = rows[len(rows)-1]
		w.shards[shard].rows = rows[:len(rows)-1]
	}
	return id
}

// hotTransaction takes a hot value on another source than the one that has
// released it, or releases it.
func (w *benchWriter) hotTransaction(value int) string {
	owner := &w.hot[value]
	release := owner.id != 0
	if !release && len(w.shards) > 1 {
		owner.shard = (owner.shard + 1 + w.rand.IntN(len(w.shards)-1)) % len(w.shards)
	}
	shard := &w.shards[owner.shard]
	how := w.rand.IntN(2)
	switch {
	case release && how == 0:
		id := owner.id
		owner.id = 0
		return fmt.Sprintf("%d delete from {} where id=%d", owner.shard, id)
	case release:
		id := owner.id
		owner.id = 0
		w.next++
		shard.rows = append(shard.rows, id)
		return fmt.Sprintf("%d update {} set uid=%d where id=%d", owner.shard, w.next, id)
	case how == 0 || len(shard.rows) < 10:
		w.next++
		owner.id = w.next
		return fmt.Sprintf("%d insert into {} values (%d, %d, 'a value of some length')", owner.shard, owner.id, value)
	}
	owner.id = w.row(owner.shard, true)
	return fmt.Sprintf("%d update {} set uid=%d where id=%d", owner.shard, value, owner.id)
}
