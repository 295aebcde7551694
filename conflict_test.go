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
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vterrors"
)

// TestClassify: which errors of MySQL are conflicts, and what their texts name,
// whatever wraps them.
func TestClassify(t *testing.T) {
	dup := func(format string, args ...any) error {
		return sqlerror.NewSQLErrorf(sqlerror.ERDupEntry, sqlerror.SSConstraintViolation, format, args...)
	}
	tests := []struct {
		name       string
		err        error
		kind       conflictKind
		entry, key string
	}{
		{
			name: "as the client returns it",
			err:  dup("Duplicate entry '10' for key 't.uid_uk'"),
			kind: duplicateKey, entry: "10", key: "t.uid_uk",
		},
		{
			// The client appends the query, which may hold quotes and the
			// same words.
			name: "with the query behind it",
			err:  dup("Duplicate entry '10' for key 't.PRIMARY' during query: insert into t values (10, 'for key ''x''')"),
			kind: duplicateKey, entry: "10", key: "t.PRIMARY",
		},
		{
			name: "a composite key",
			err:  dup("Duplicate entry '7-3' for key 'dst.acct_slot'"),
			kind: duplicateKey, entry: "7-3", key: "dst.acct_slot",
		},
		{
			name: "a value with quotes",
			err:  dup("Duplicate entry 'O'Brien' for key 't.name'"),
			kind: duplicateKey, entry: "O'Brien", key: "t.name",
		},
		{
			name: "a value of several lines",
			err:  dup("Duplicate entry 'a\nb' for key 't.uk'"),
			kind: duplicateKey, entry: "a\nb", key: "t.uk",
		},
		{
			name: "an empty value",
			err:  dup("Duplicate entry '' for key 't.uk'"),
			kind: duplicateKey, entry: "", key: "t.uk",
		},
		{
			// updatePos does so, for one.
			name: "wrapped as text",
			err:  fmt.Errorf("error %v updating position", dup("Duplicate entry '10' for key 't.uk'")),
			kind: duplicateKey, entry: "10", key: "t.uk",
		},
		{
			name: "wrapped by vterrors, twice",
			err:  vterrors.Wrap(vterrors.Wrapf(dup("Duplicate entry '10' for key 't.uk'"), "error applying event for table %s", "t"), "outer"),
			kind: duplicateKey, entry: "10", key: "t.uk",
		},
		{
			// Not MySQL's English: understood by its number alone.
			name: "another text",
			err:  dup("Doppelter Eintrag"),
			kind: duplicateKey,
		},
		{name: "deadlock", err: lockError(sqlerror.ERLockDeadlock), kind: lockConflict},
		{name: "lock wait timeout", err: lockError(sqlerror.ERLockWaitTimeout), kind: lockConflict},
		{name: "a wrapped deadlock", err: vterrors.Wrap(lockError(sqlerror.ERLockDeadlock), "x"), kind: lockConflict},
		{name: "another error of MySQL", err: sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "42S02", "no such table"), kind: noConflict},
		{name: "a lost connection", err: sqlerror.NewSQLError(sqlerror.CRServerLost, "HY000", "EOF"), kind: noConflict},
		{name: "no error of MySQL", err: assert.AnError, kind: noConflict},
		{name: "none", err: nil, kind: noConflict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := classify(tt.err)
			assert.Equal(t, tt.kind, c.kind)
			assert.Equal(t, tt.entry, c.entry)
			assert.Equal(t, tt.key, c.key)
			assert.Equal(t, tt.err, c.err)
		})
	}
}

// TestConflictsAt pins which events may fail with a conflict of rows: a DDL
// that adds a unique key to rows that violate it must fail as it always did.
func TestConflictsAt(t *testing.T) {
	assert.True(t, conflicts(rowsOf("t")))
	assert.True(t, conflicts(commitEvent(1)))
	assert.True(t, conflicts(fieldEvent("t")))
	assert.False(t, conflicts(ddlEvent()))
	assert.False(t, conflicts(otherEvent()))
	assert.False(t, conflicts(heartbeatEvent()))
}
