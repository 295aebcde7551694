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

// A copy: see doc.go.

package sim

import (
	"slices"
	"strconv"
	"strings"
)

// This file is the tables of the model, and what MySQL takes for equal.

type (
	// Row has a value for each column of a table. Null is NULL.
	Row []string

	// TableDef is a table of the sources and of the target.
	TableDef struct {
		Name    string
		Columns []ColumnDef
		// Key are the columns of the primary key. Those of a table without any key
		// are all its columns, as vplayer has it.
		Key []int
		// Unique are the other unique keys.
		Unique []KeyDef
		// NoKey is set for a table without any key: its changes are applied in order.
		NoKey bool
		// Refuse is why no change of it can be folded, as for a table with a
		// foreign key; empty if they can.
		Refuse string
	}

	ColumnDef struct {
		Name string
		// Blob values are left out of images that do not change them, with
		// binlog_row_image=NOBLOB.
		Blob bool
		// JSON values change by differences, with PARTIAL_JSON: here by RFC 7396's
		// merge patches.
		JSON bool
		// Fold, if set, returns the same for values that MySQL takes for equal.
		Fold func(value string) string
		// Width is that of a binary column, which is padded with zero bytes.
		Width int
		// Enum are the values of an enum, whose numbers are in the images.
		Enum []string
		// Generated, if set, is what a generated column holds.
		Generated *expr
	}

	KeyDef struct {
		Name    string
		Columns []int
		// Prefix is how many characters of a column are indexed, if not all.
		Prefix map[int]int
	}
)

// Null is the value NULL.
const Null = "NULL"

func (t *TableDef) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c ColumnDef) bool { return strings.EqualFold(c.Name, name) })
}

// key returns the row's primary key, with the table's name.
func (t *TableDef) key(row Row) string {
	return t.join(t.Name+"(", row, t.Key, nil)
}

// entry returns the row's value in a unique key, or "" if one part of it is NULL.
func (t *TableDef) entry(key *KeyDef, row Row) string {
	for _, i := range key.Columns {
		if row[i] == Null {
			return ""
		}
	}
	return t.join(t.Name+"."+key.Name+"(", row, key.Columns, key.Prefix)
}

func (t *TableDef) join(start string, row Row, columns []int, prefix map[int]int) string {
	var room [64]byte
	text := append(room[:0], start...)
	for k, i := range columns {
		if k > 0 {
			text = append(text, ',')
		}
		value := row[i]
		if n := prefix[i]; n > 0 {
			if runes := []rune(value); len(runes) > n {
				value = string(runes[:n])
			}
		}
		if fold := t.Columns[i].Fold; fold != nil {
			value = fold(value)
		}
		if len(columns) > 1 && strings.ContainsAny(value, `,)"`) {
			value = strconv.Quote(value)
		}
		text = append(text, value...)
	}
	return string(append(text, ')'))
}

// sameKey reports whether two rows have the same bytes as their primary key, which
// is what vplayer goes by.
func (t *TableDef) sameKey(a, b Row) bool {
	return !slices.ContainsFunc(t.Key, func(i int) bool { return a[i] != b[i] })
}

// complete returns the row as MySQL stores it: padded, and with the columns that
// MySQL generates.
func (t *TableDef) complete(row Row) Row {
	completed, own := row, false
	set := func(i int, value string) {
		if value == completed[i] {
			return
		}
		if !own {
			completed, own = slices.Clone(row), true
		}
		completed[i] = value
	}
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case c.Generated != nil:
			value, _ := c.Generated.eval(t, completed)
			set(i, value)
		case c.Width > len(row[i]) && row[i] != Null:
			set(i, row[i]+strings.Repeat("\x00", c.Width-len(row[i])))
		}
	}
	return completed
}

// image returns a value as a row image carries it.
func (c *ColumnDef) image(value string) string {
	switch {
	case c.Enum != nil:
		return strconv.Itoa(1 + slices.Index(c.Enum, value))
	case c.Width > 0:
		return strings.TrimRight(value, "\x00")
	}
	return value
}

// value returns the value that an image carries.
func (c *ColumnDef) value(image string) string {
	if n, err := strconv.Atoi(image); c.Enum != nil && err == nil && n > 0 && n <= len(c.Enum) {
		return c.Enum[n-1]
	}
	return image + strings.Repeat("\x00", max(0, c.Width-len(image)))
}

func pick(row Row, columns []int) []string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = row[c]
	}
	return parts
}

// duplicate is MySQL's message of a duplicate value.
func (t *TableDef) duplicate(index string, row Row, columns []int) string {
	return "Duplicate entry '" + strings.Join(pick(row, columns), "-") + "' for key '" + t.Name + "." + index + "'"
}

// foldText folds as the collation utf8mb4_0900_ai_ci does, as far as tests go.
func foldText(value string) string {
	ascii := true
	for i := range len(value) {
		if c := value[i]; c >= 0x80 || c >= 'A' && c <= 'Z' {
			ascii = false
			break
		}
	}
	if ascii {
		return value
	}
	return accents.Replace(strings.ToLower(value))
}

var accents = strings.NewReplacer("ä", "a", "á", "a", "à", "a", "é", "e", "è", "e", "ö", "o", "ü", "u")

// foldPadded folds as a collation does that pads with spaces.
func foldPadded(value string) string {
	return foldText(strings.TrimRight(value, " "))
}
