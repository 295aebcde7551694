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
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vterrors"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// peersOf returns running streams with long names, and stopped ones.
func peersOf(movable, stopped int) (peers []Stream) {
	for i := range movable + stopped {
		s := running(int32(i+10), "a_workflow_with_a_rather_long_name", filterOf("c0000000-c4000000", "/.*", ""))
		if i >= movable {
			s.State = binlogdatapb.VReplicationWorkflowState_Stopped
		}
		peers = append(peers, s)
	}
	return peers
}

// TestWaitMessage: the message of a stream that waits has what an operator
// looks for, and fits the column.
func TestWaitMessage(t *testing.T) {
	since := start
	tests := []struct {
		name  string
		c     conflict
		peers []Stream
		// contains is what an operator looks for.
		contains []string
	}{
		{
			name:     "one peer",
			c:        conflict{kind: duplicateKey, entry: "10", key: "t.uid_uk"},
			peers:    []Stream{running(2, "wf", filterOf("80-", "/.*", ""))},
			contains: []string{"'10'", "t.uid_uk", "stream 2 (wf, source ks/80-)", "2023-11-14T22:13:20Z"},
		},
		{
			name:     "a stopped peer is named with what to do",
			c:        conflict{kind: duplicateKey, entry: "10", key: "t.uid_uk"},
			peers:    peersOf(1, 1),
			contains: []string{"stream 10", "once it is started again", "stream 11", "Stopped"},
		},
		{
			name:     "only stopped peers",
			c:        conflict{kind: duplicateKey, entry: "10", key: "t.uid_uk"},
			peers:    peersOf(0, 2),
			contains: []string{"once", "stream 10", "stream 11"},
		},
		{
			name:     "many peers and a long value",
			c:        conflict{kind: duplicateKey, entry: strings.Repeat("ü", 500), key: "t.uid_uk"},
			peers:    peersOf(20, 20),
			contains: []string{"t.uid_uk", " more"},
		},
		{
			name:     "MySQL's text was not understood",
			c:        conflict{kind: duplicateKey},
			peers:    peersOf(1, 0),
			contains: []string{"a unique value"},
		},
		{
			name:     "a lock",
			c:        conflict{kind: lockConflict},
			peers:    peersOf(1, 0),
			contains: []string{"a row lock"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			message := waitMessage(tt.c, since, tt.peers, "")
			assertReadable(t, message)
			assert.True(t, strings.HasPrefix(message, MessagePrefix))
			for _, want := range tt.contains {
				assert.Contains(t, message, want)
			}
			assert.False(t, strings.HasSuffix(strings.TrimSpace(message), "by"), "somebody is named")
		})
	}
}

// assertReadable checks what the message column asks for.
func assertReadable(t *testing.T, message string) {
	t.Helper()
	assert.Less(t, len(message), 1000)
	assert.True(t, utf8.ValidString(message), "%q is not valid UTF-8", message)
	assert.NotContains(t, message, "\n", "it is one line")
	assert.NotContains(t, message, "\r", "it is one line")
}

// TestVerdict: the message that a stream ends with names the value, both rows
// and the streams, as far as they are known.
func TestVerdict(t *testing.T) {
	table := testTable()
	key := func(id any) chainKey { return chainKey{table: "t", row: table.key(image(id))} }
	r := &resolution{
		Backoff: &Backoff{
			hub:    new(Hub),
			config: Config{ID: 1},
			peers:  []Stream{running(2, "wf", filterOf("80-", "/.*", ""))},
		},
		ladder: &ladder{last: conflict{kind: duplicateKey, err: errors.New("x"), entry: "10", key: "t.uid_uk"}},
	}
	assert.Equal(t, MessagePrefix+"giving up on the value '10' of key t.uid_uk: because", r.verdict("because"))

	r.hub.Put(running(1, "wf", filterOf("-80", "/.*", "")))
	r.collision = &collision{
		conflict: r.ladder.last, change: Change{Table: table}, row: key(1), holder: key(2), index: "uid_uk",
	}
	text := r.verdict("because")
	for _, want := range []string{"'10'", "t.uid_uk", "('1') of stream 1 (wf, source ks/-80)", "('2') of stream 2 (wf, source ks/80-)", "because"} {
		assert.Contains(t, text, want)
	}
	assertReadable(t, text)

	r.unfoldable = "it holds a statement instead of rows"
	assert.Contains(t, r.verdict("because"), r.unfoldable)

	r.peers = nil
	assert.Contains(t, r.verdict("because"), "primary key ('2'), wanted by", "all peers were deleted meanwhile")
}

// TestGiveUp shows that the error which ends a stream keeps MySQL's number, by
// which the controller knows that it is final, and stays short.
func TestGiveUp(t *testing.T) {
	mysqlErr := sqlerror.NewSQLErrorf(sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, "Duplicate entry '%s' for key 't.uid_uk'", strings.Repeat("x", 500))
	mysqlErr.Query = strings.Repeat("y", 5000)
	err := giveUp(classify(vterrors.Wrap(mysqlErr, "error applying event")), "because")
	assert.Equal(t, duplicateKey, classify(err).kind)
	assert.ErrorContains(t, err, "because: Duplicate entry 'x")
	assert.Less(t, len(err.Error()), 300)
}

// TestShorten: a long text loses its middle, and never half a character.
func TestShorten(t *testing.T) {
	assert.Equal(t, "abc", shorten("abc", 3))
	assert.Equal(t, "abcd...wxyz", shorten("abcdefghijklmnopqrstuvwxyz", 11))
	assert.True(t, utf8.ValidString(shorten(strings.Repeat("ü", 100), 20)))
	assert.Equal(t, time.Unix(1_700_000_000, 0), start)
}
