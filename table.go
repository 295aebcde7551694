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
	"encoding/binary"
	"slices"
	"strings"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

type (
	// Table is what net effect needs to know of the plan of one table, as one
	// FIELD event left it. It does not change.
	Table struct {
		// Name is the name of the target table.
		Name string
		// Columns is the number of columns of a row image, and Names are their names.
		Columns int
		Names   []string
		// JSON tells which columns of the image hold JSON.
		JSON []bool
		// Key are the columns of the image that identify a row: those of the
		// primary key, or of its equivalent. It is empty for a table without
		// any, whose rows have no identity.
		Key []int
		// Unique are the unique indexes of the target table, PRIMARY included.
		Unique []UniqueKey
		// InOrder is why the changes of this table cannot be folded and are
		// applied one by one, in the source's order; empty if they can be
		// folded. Such a table cannot meet a duplicate key, so its changes may
		// come before or after those of others.
		InOrder string
		// Refuse is why no change of this table may be part of a window; empty
		// if they may. See doc.go for the list.
		Refuse string
		// KeepRow is why an existing row must not be deleted and inserted again,
		// such as a target column that the plan does not write; empty if it may.
		KeepRow string
		// Copying tells that the table is being copied: of the rows in its images the
		// target has those up to some primary key, and only their changes do anything.
		// For each row that is all of them or none.
		Copying bool
		// Plan is the player's own.
		Plan any
	}

	// UniqueKey is a unique index of a target table.
	UniqueKey struct {
		// Name is the name of the index.
		Name string
		// Columns are the columns of the image that it covers. It is nil where
		// that is not known, as for an expression or a generated column: any
		// change of the row may then be a change of the key.
		Columns []int
	}
)

// fits reports whether the images of two plans of a table mean the same. A FIELD
// event comes again behind every DDL, also behind one that does not change them.
func (t *Table) fits(other *Table) bool {
	return t == other || t.Columns == other.Columns && slices.Equal(t.Names, other.Names) && slices.Equal(t.JSON, other.JSON) &&
		slices.Equal(t.Key, other.Key) && slices.EqualFunc(t.Unique, other.Unique, func(a, b UniqueKey) bool {
		return a.Name == b.Name && slices.Equal(a.Columns, b.Columns)
	})
}

// unique returns the index of this name.
func (t *Table) unique(name string) *UniqueKey {
	for i := range t.Unique {
		if t.Unique[i].Name == name {
			return &t.Unique[i]
		}
	}
	return nil
}

// rowKey is the identity of a row within its table. It goes by the bytes that
// the image carries, each column with its length: whether two values are equal
// to a collation is MySQL's business.
type rowKey string

// key returns the identity of the row of an image.
func (t *Table) key(row *querypb.Row) rowKey {
	var key []byte
	for _, index := range t.Key {
		key = appendKeyPart(key, column(row, index))
	}
	return rowKey(key)
}

func appendKeyPart(key []byte, value []byte) []byte {
	if value == nil {
		return append(key, 0)
	}
	key = append(key, 1)
	key = binary.AppendUvarint(key, uint64(len(value)))
	return append(key, value...)
}

// rowKeyOf returns the identity of a row whose key columns have these values,
// in the order of Table.Key.
func rowKeyOf(values [][]byte) rowKey {
	var key []byte
	for _, value := range values {
		key = appendKeyPart(key, value)
	}
	return rowKey(key)
}

// describe returns the key's values for people to read.
func (t *Table) describe(key rowKey) string {
	var values []string
	rest := []byte(key)
	for len(rest) > 0 {
		if rest[0] == 0 {
			values = append(values, "NULL")
			rest = rest[1:]
			continue
		}
		length, n := binary.Uvarint(rest[1:])
		value := rest[1+n : 1+n+int(length)]
		values = append(values, "'"+shorten(string(value), 60)+"'")
		rest = rest[1+n+int(length):]
	}
	return "(" + strings.Join(values, ", ") + ")"
}
