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
	"testing"

	"github.com/stretchr/testify/require"
)

const mergeDDL = "(id bigint, uid bigint, val varchar(64), primary key(id), unique key uid_uk(uid))"

// forMergeBatching runs a merge test with batching on and off.
func forMergeBatching(t *testing.T, test func(t *testing.T, batching bool)) {
	for name, batching := range mergeBatching {
		t.Run(name, func(t *testing.T) { test(t, batching) })
	}
}

// TestMergeBackoffAhead shows that a stream which meets a value that a peer has
// yet to release waits for it and goes on. On stock the stream ends in Error
// 1062.
func TestMergeBackoffAhead(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching bool) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')")
		m.waitConverged()
		m.stop(0)
		m.exec(
			"delete from {0} where id=1",
			"insert into {1} values (2, 10, 'b')",
			"insert into {1} values (3, 30, 'c')",
		)
		message := m.waitBlocked(1)
		require.Contains(t, message, "value '10' of key dst.uid_uk")
		m.start(0)
		m.waitConverged()
	})
}

// TestMergeBackoffGroupedDeadlock shows that a commit which grouping put off is
// made before its stream waits: the release is in front of the blocked
// transaction, in the same group, and the peer waits for it in turn. On stock
// the stream ends in Error 1062.
func TestMergeBackoffGroupedDeadlock(t *testing.T) {
	forMergeBatching(t, func(t *testing.T, batching bool) {
		m := newMergeTest(t, 2, mergeDDL, batching)
		m.startAll()
		m.exec("insert into {0} values (1, 10, 'a')", "insert into {1} values (2, 20, 'b')")
		m.waitConverged()
		m.stop(0)
		m.stop(1)
		m.exec(
			"update {0} set uid=null where id=1", // releases 10
			"update {1} set uid=10 where id=2",   // needs it, and releases 20
			"update {0} set uid=20 where id=1",   // needs that
		)
		m.start(0)
		m.start(1)
		m.waitConverged()
	})
}
