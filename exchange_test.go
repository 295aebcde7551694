//go:build go1.25

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

package mergebackoff_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSwapWithNoBlob shows that two rows trade their values though their images
// lack a blob, so that neither can be inserted from them (binlog_row_image=NOBLOB).
func TestSwapWithNoBlob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, err := ParseTable("t", "(id bigint, uid bigint, body blob, primary key(id), unique key uid_uk(uid))")
		require.NoError(t, err)
		m := newMerge(t, 2, table)
		for _, s := range m.Streams {
			s.Images.NoBlob = true
		}
		m.sql(0, "insert into {0} values (1,10,'a')")
		m.sql(1, "insert into {1} values (2,20,'b')")
		m.startAll()
		m.sync()
		m.Streams[0].Stop()
		m.Streams[1].Stop()
		// One application transaction over both shards.
		_, err = m.Streams[0].SQL("update {0} set uid=null where id=1", "update {0} set uid=20 where id=1")
		require.NoError(t, err)
		_, err = m.Streams[1].SQL("update {1} set uid=null where id=2", "update {1} set uid=10 where id=2")
		require.NoError(t, err)
		m.startAll()
		defer func() {
			for _, s := range m.Streams {
				s.Stop()
			}
		}()
		m.settle(20 * time.Second)
		m.sync()
	})
}

// TestOvertakenByAnExchangeWithNoBlob shows the same within the window of one
// stream: an overtaken value, and behind it an exchange between two of its rows.
func TestOvertakenByAnExchangeWithNoBlob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, err := ParseTable("t", "(id bigint, uid bigint, body blob, primary key(id), unique key uid_uk(uid))")
		require.NoError(t, err)
		m := newMerge(t, 2, table)
		m.Streams[0].Images.NoBlob = true
		m.sql(0, "insert into {0} values (1,10,'a'),(2,20,'b')")
		m.startAll()
		m.sync()
		m.Streams[0].Stop()
		m.sql(0, "update {0} set uid=30 where id=1")
		m.sql(0, "update {0} set uid=10 where id=2")
		m.sql(0, "update {0} set uid=20 where id=1")
		m.sql(1, "insert into {1} values (3,30,'c')")
		m.settle(time.Second)
		m.start(0)
		defer func() {
			for _, s := range m.Streams {
				s.Stop()
			}
		}()
		m.settle(20 * time.Second)
		m.sync()
	})
}
