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
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// MERGEBACKOFF_SEEDS says which random histories are run: a number of them,
	// or "=" and the seed of one that has failed. The default is for each row image.
	mergeSeedsEnv     = "MERGEBACKOFF_SEEDS"
	mergeSeedsDefault = 10

	historyDDL = "(id bigint, uid bigint, mail varchar(64), a int not null, b int, body text, doc json," +
		" primary key(id), unique key uid_uk(uid), unique key mail_uk(mail), unique key ab_uk(a, b))"
)

// mergeHistory makes up statements for the sources of a merge. It keeps a model of
// them, so that every statement is valid when it is made: the union of the sources
// is unique at every instant, and values are handed over as soon as they are free.
type mergeHistory struct {
	random *rand.Rand
	rows   []map[int]*historyRow // of each source, by primary key
	nextID int
	hot    int // the number of values that are fought for
}

// historyRow is a row's unique values; 0 is NULL.
type historyRow struct {
	uid, mail, b int
}

func newMergeHistory(seed uint64, streams int) *mergeHistory {
	h := &mergeHistory{random: rand.New(rand.NewPCG(seed, 0)), nextID: 1}
	h.hot = 3 + h.random.IntN(8)
	for range streams {
		h.rows = append(h.rows, make(map[int]*historyRow))
	}
	return h
}

// transaction makes up one transaction of a random source.
func (h *mergeHistory) transaction() (statements []string) {
	source := h.random.IntN(len(h.rows))
	for range 1 + h.random.IntN(3)*h.random.IntN(2) {
		statements = append(statements, h.statement(source))
	}
	return statements
}

func (h *mergeHistory) statement(source int) string {
	rows := h.rows[source]
	table := "{" + strconv.Itoa(source) + "}"
	id, row := h.pick(rows)
	switch action := h.random.IntN(10); {
	case row == nil || action < 2 && len(rows) < 2*h.hot:
		return h.insert(source, h.freshID())
	case action < 3:
		delete(rows, id)
		return fmt.Sprintf("delete from %s where id=%d", table, id)
	case action < 4:
		to := h.freshID()
		delete(rows, id)
		rows[to] = row
		// vplayer needs the whole row for that, which NOBLOB leaves out otherwise.
		return fmt.Sprintf("update %s set id=%d, body=concat(body, 'y'), doc=json_object('n', 1, 'pad', repeat('q', 200)) where id=%d", table, to, id)
	case action < 5:
		return fmt.Sprintf("update %s set doc=json_set(doc, '$.n', %d), body=concat(body, 'x') where id=%d", table, h.random.IntN(1000), id)
	}
	return fmt.Sprintf("update %s set %s where id=%d", table, strings.Join(h.change(row), ", "), id)
}

// pick returns one of the rows, or none if there are none.
func (h *mergeHistory) pick(rows map[int]*historyRow) (int, *historyRow) {
	// By id, not in the map's order: a seed stands for one history.
	for id := 1 + h.random.IntN(h.nextID); id > 0; id-- {
		if row := rows[id]; row != nil {
			return id, row
		}
	}
	return 0, nil
}

// freshID returns a primary key that no source has: now and then one that a
// deleted row had, perhaps of another source.
func (h *mergeHistory) freshID() int {
	for range h.random.IntN(4) {
		id := h.random.IntN(h.nextID)
		if id > 0 && !h.holds(func(other int, _ *historyRow) bool { return other == id }) {
			return id
		}
	}
	h.nextID++
	return h.nextID - 1
}

func (h *mergeHistory) holds(what func(id int, row *historyRow) bool) bool {
	for _, rows := range h.rows {
		for id, row := range rows {
			if what(id, row) {
				return true
			}
		}
	}
	return false
}

func (h *mergeHistory) insert(source, id int) string {
	row := &historyRow{}
	h.rows[source][id] = row
	h.change(row)
	return fmt.Sprintf("insert into {%d} values (%d, %s, %s, 7, %s, 'body of %d', json_object('n', 0, 'pad', repeat('p', 200)))",
		source, id, row.sqlUID(), row.sqlMail(), row.sqlB(), id)
}

// change gives the row values that are free, some of them NULL.
func (h *mergeHistory) change(row *historyRow) (set []string) {
	choose := func(now *int, taken func(row *historyRow) int) {
		value := h.random.IntN(h.hot + 1)
		if value == 0 || !h.holds(func(_ int, other *historyRow) bool { return taken(other) == value }) {
			*now = value
		}
	}
	if h.random.IntN(2) == 0 {
		choose(&row.uid, func(row *historyRow) int { return row.uid })
	}
	if h.random.IntN(3) == 0 {
		choose(&row.mail, func(row *historyRow) int { return row.mail })
	}
	if h.random.IntN(3) == 0 {
		choose(&row.b, func(row *historyRow) int { return row.b })
	}
	return []string{"uid=" + row.sqlUID(), "mail=" + row.sqlMail(), "b=" + row.sqlB()}
}

func (r *historyRow) sqlUID() string { return orNull(r.uid, strconv.Itoa(r.uid)) }
func (r *historyRow) sqlB() string   { return orNull(r.b, strconv.Itoa(r.b)) }

// sqlMail spells a value in one of two ways, which are one to the key's collation.
func (r *historyRow) sqlMail() string {
	name := "name"
	if r.uid%2 == 1 {
		name = "Name"
	}
	return orNull(r.mail, fmt.Sprintf("'%s%d'", name, r.mail))
}

func orNull(value int, sql string) string {
	if value == 0 {
		return "null"
	}
	return sql
}

// TestMergeBackoffRandomHistories shows that histories which nobody has thought of
// converge: statements that are valid when they are made hand over hot values of
// several unique keys between up to six sources, while streams are stopped and
// started. On stock nearly all of them end in Error 1062.
func TestMergeBackoffRandomHistories(t *testing.T) {
	for _, seed := range mergeSeeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			forMergeBatching(t, func(t *testing.T, batching mergeOption) {
				runMergeHistory(t, seed, batching)
			})
		})
	}
}

func mergeSeeds(t *testing.T) (seeds []uint64) {
	value := os.Getenv(mergeSeedsEnv)
	if one, ok := strings.CutPrefix(value, "="); ok {
		seed, err := strconv.ParseUint(one, 10, 64)
		require.NoError(t, err, mergeSeedsEnv)
		return []uint64{seed}
	}
	n := mergeSeedsDefault
	if value != "" {
		var err error
		n, err = strconv.Atoi(value)
		require.NoError(t, err, mergeSeedsEnv)
	}
	for range n {
		seeds = append(seeds, rand.Uint64N(1_000_000))
	}
	return seeds
}

func runMergeHistory(t *testing.T, seed uint64, batching mergeOption) {
	random := rand.New(rand.NewPCG(seed, 1))
	streams := 2 + random.IntN(5)
	t.Logf("seed %d, %d streams: %s==%d runs it again", seed, streams, mergeSeedsEnv, seed)
	h := newMergeHistory(seed, streams)
	m := newMergeTest(t, streams, historyDDL, batching)
	m.startAll()
	running := make([]bool, streams)
	for i := range running {
		running[i] = true
	}
	conn, err := env.Mysqld.GetAllPrivsConnection(context.Background())
	require.NoError(t, err)
	defer conn.Close()
	for range 300 {
		run := []string{"begin"}
		for _, statement := range h.transaction() {
			run = append(run, m.expand(statement))
		}
		execConnStatements(t, conn, append(run, "commit"))
		if random.IntN(20) > 0 {
			continue
		}
		i := random.IntN(streams)
		if running[i] {
			m.stop(i)
		} else {
			m.start(i)
		}
		running[i] = !running[i]
	}
	for i := range running {
		if !running[i] {
			m.start(i)
		}
		// A stream is through when this row of its source has come.
		m.exec(fmt.Sprintf("insert into {%d} (id, a) values (%d, 7)", i, 1_000_000+i))
	}
	m.waitConverged()
}
