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

package differential

import (
	"errors"
	"testing"

	"vitess.io/vitess/go/mysql/sqlerror"

	"mergebackoff/tools/sim"
)

type (
	// Recording is what the model has done in one history.
	Recording struct {
		Seed    uint64
		Name    string
		History *sim.History
		Deeds   []Deed
		// Rows are those that the model ended with.
		Rows map[string]sim.Row
		// LockErrors is how many statements failed for their locks.
		LockErrors int
		// Failure is what the simulator itself has found.
		Failure string
	}

	// Deed is a statement that the model has run, or the end of a transaction.
	Deed struct {
		// Tx tells transactions apart.
		Tx  int
		SQL string
		// Errno is the error's number, or 0, and Message the error's.
		Errno    int
		Message  string
		Affected uint64
		// Found has the rows of a query.
		Found [][]string
	}
)

// Record runs a history on the model.
func Record(t *testing.T, name string, h *sim.History, seed uint64) *Recording {
	r := &Recording{Seed: seed, Name: name, History: h}
	numbers := make(map[*sim.Tx]int)
	result := sim.Run(t, h, sim.How{Seed: seed, Watch: func(deed sim.Deed) { r.note(numbers, deed) }})
	r.Rows, r.Failure = result.Rows, result.Failure
	return r
}

func (r *Recording) note(numbers map[*sim.Tx]int, deed sim.Deed) {
	number, ok := numbers[deed.Tx]
	if !ok {
		number = len(numbers) + 1
		numbers[deed.Tx] = number
	}
	d := Deed{Tx: number, SQL: deed.SQL}
	if deed.Err != nil {
		d.Errno, d.Message = numberOf(deed.Err), deed.Err.Error()
		if isLockError(d.Errno) {
			r.LockErrors++
			return
		}
	}
	if deed.Result != nil {
		d.Affected = deed.Result.RowsAffected
		for _, row := range deed.Result.Rows {
			var values []string
			for _, value := range row {
				if value.IsNull() {
					values = append(values, sim.Null)
				} else {
					values = append(values, value.ToString())
				}
			}
			d.Found = append(d.Found, values)
		}
	}
	r.Deeds = append(r.Deeds, d)
}

// otherError stands for an error that is none of SQL.
const otherError = -1

func numberOf(err error) int {
	var sqlErr *sqlerror.SQLError
	if !errors.As(err, &sqlErr) {
		return otherError
	}
	return int(sqlErr.Number())
}

// isLockError reports whether a statement failed for what others did: it waited too
// long, it was chosen to end a deadlock, or its connection was lost.
func isLockError(errno int) bool {
	switch sqlerror.ErrorCode(errno) {
	case sqlerror.ERLockWaitTimeout, sqlerror.ERLockDeadlock, sqlerror.CRServerLost:
		return true
	}
	return false
}
