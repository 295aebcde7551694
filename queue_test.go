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
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// queueOf returns a queue that has these events, of which vplayer was handed the
// first ones.
func queueOf(t *testing.T, handed int, events ...*binlogdatapb.VEvent) *queue {
	t.Helper()
	q := &queue{}
	q.add([][]*binlogdatapb.VEvent{events})
	for _, event := range events[:handed] {
		require.NoError(t, q.take(event))
	}
	return q
}

// TestQueueUnits: the queue knows how many whole transactions were handed to
// the player, and whether one is open.
func TestQueueUnits(t *testing.T) {
	row := rowsOf("t", insertOf(image(1)))
	tests := []struct {
		name   string
		events []*binlogdatapb.VEvent
		// handed is how many of them vplayer was handed; 0 is all.
		handed int
		ends   []int
		open   bool
	}{
		{
			name:   "one transaction",
			events: transactionOf("g1", 1, row),
			ends:   []int{4},
		},
		{
			name:   "two transactions",
			events: append(transactionOf("g1", 1, row), transactionOf("g2", 1, row, row)...),
			ends:   []int{4, 9},
		},
		{
			name:   "the second has not arrived whole",
			events: append(transactionOf("g1", 1, row), beginEvent(), row),
			ends:   []int{4, 6}, open: true,
		},
		{
			name:   "nothing but its beginning has",
			events: append(transactionOf("g1", 1, row), beginEvent()),
			ends:   []int{5},
		},
		{
			name:   "the only one has not",
			events: []*binlogdatapb.VEvent{beginEvent(), row},
			ends:   []int{2}, open: true,
		},
		{
			name:   "heartbeats between transactions belong to the next",
			events: append(append(transactionOf("g1", 1, row), heartbeatEvent()), transactionOf("g2", 1, row)...),
			ends:   []int{4, 9},
		},
		{
			name:   "heartbeats behind the last belong to it",
			events: append(transactionOf("g1", 1, row), heartbeatEvent(), heartbeatEvent()),
			ends:   []int{6},
		},
		{
			name:   "a heartbeat alone is nothing to apply",
			events: []*binlogdatapb.VEvent{heartbeatEvent()},
		},
		{
			name:   "what was not handed to vplayer yet does not count",
			events: append(transactionOf("g1", 1, row), transactionOf("g2", 1, row)...),
			handed: 6,
			ends:   []int{4, 6}, open: true,
		},
		{name: "nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			handed := tt.handed
			if handed == 0 {
				handed = len(tt.events)
			}
			q := queueOf(t, handed, tt.events...)
			count, open := q.units()
			assert.Equal(t, len(tt.ends), count)
			assert.Equal(t, tt.open, open)
			for i, end := range tt.ends {
				assert.Equal(t, end, q.end(i+1))
			}
		})
	}
}

// TestQueueRefusesDisorder shows that the ladder never works with other events
// than vplayer.
func TestQueueRefusesDisorder(t *testing.T) {
	events := transactionOf("g1", 1, rowsOf("t"))
	q := queueOf(t, 1, events...)
	require.ErrorContains(t, q.take(events[2]), "out of the order")
	require.NoError(t, q.take(events[1]))
	require.ErrorContains(t, q.take(events[1]), "out of the order")

	require.ErrorContains(t, (&queue{}).take(events[0]), "out of the order")
}

// TestQueueCommit: committed events leave the queue, also those that the player
// was not handed yet, which are then skipped.
func TestQueueCommit(t *testing.T) {
	first, second := transactionOf("g1", 1, rowsOf("t")), transactionOf("g2", 1, rowsOf("t"))
	events := append(append([]*binlogdatapb.VEvent{}, first...), second...)

	t.Run("of what was handed", func(t *testing.T) {
		q := queueOf(t, 6, events...)
		q.commit(4)
		assert.Equal(t, second, q.events)
		assert.Equal(t, 2, q.next)
		assert.False(t, q.skips())
		require.NoError(t, q.take(second[2]))
	})
	t.Run("of what is still to come is skipped", func(t *testing.T) {
		q := queueOf(t, 3, events...)
		q.commit(6)
		assert.Equal(t, second[2:], q.events)
		assert.Zero(t, q.next)
		for range 3 {
			assert.True(t, q.skips())
		}
		assert.False(t, q.skips())
		require.NoError(t, q.take(second[2]))
	})
	t.Run("twice adds up", func(t *testing.T) {
		q := queueOf(t, 3, events...)
		q.commit(5)
		q.commit(2)
		skipped := 0
		for q.skips() {
			skipped++
		}
		assert.Equal(t, 4, skipped)
		require.NoError(t, q.take(second[3]))
	})
}

// TestQueueIsBounded shows that a transaction too large to keep is let go, and
// that nothing before it is.
func TestQueueIsBounded(t *testing.T) {
	large := rowsOf("t", insertOf(image(1, strings.Repeat("x", maxRetained))))
	small := rowsOf("t", insertOf(image(2)))
	q := queueOf(t, 0, beginEvent(), large, small)
	require.NoError(t, q.take(q.events[0]))
	assert.False(t, q.truncated, "one event is kept, however large")
	require.NoError(t, q.take(large))
	assert.True(t, q.truncated)
	assert.LessOrEqual(t, q.size, maxRetained)
	require.NoError(t, q.take(small), "the order is still known")

	q.commit(q.next)
	assert.False(t, q.truncated, "a commit makes an end of it")
	assert.Zero(t, q.size)
	assert.Empty(t, q.events)
}

// TestQueueSize shows that the size comes back to zero whatever was in it.
func TestQueueSize(t *testing.T) {
	statement := &binlogdatapb.VEvent{Type: binlogdatapb.VEventType_INSERT, Statement: "insert into t values (1)"}
	events := transactionOf("g1", 1, rowsOf("t", updateOf(image(1, "a"), image(1, "bcd")), deleteOf(image(2))), statement)
	q := queueOf(t, len(events), events...)
	assert.Equal(t, len("1a")+len("1bcd")+len("2")+len(statement.Statement), q.size)
	q.commit(len(events))
	assert.Zero(t, q.size)
}
