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
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// This file reads the definitions of the model's tables.

var (
	ddlKey       = regexp.MustCompile(`^(primary|unique)\s+key\s*(\w*)\s*\((.*)\)$`)
	ddlKeyPart   = regexp.MustCompile(`^(\w+)(?:\((\d+)\))?$`)
	ddlForeign   = regexp.MustCompile(`^(constraint\s+\w+\s+)?foreign\s+key\b`)
	ddlColumn    = regexp.MustCompile(`^(\w+)\s+(\w+)\s*(?:\(([^)]*)\))?(.*)$`)
	ddlGenerated = regexp.MustCompile(`generated\s+always\s+as\s+\((.*)\)\s+stored`)
)

// ParseTable reads the definition of a table, as scenarios have it.
func ParseTable(name, ddl string) (*TableDef, error) {
	table := &TableDef{Name: name}
	for _, part := range split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(ddl), "("), ")")) {
		if err := table.parse(part); err != nil {
			return nil, err
		}
	}
	if table.Key == nil {
		if len(table.Unique) > 0 {
			return nil, errors.New("the model has no table with a unique key but without a primary key")
		}
		table.NoKey = true
		for i := range table.Columns {
			table.Key = append(table.Key, i)
		}
	}
	return table, nil
}

func (t *TableDef) parse(part string) error {
	if ddlForeign.MatchString(part) {
		t.Refuse = "it has a foreign key, or one refers to it"
		return nil
	}
	if m := ddlKey.FindStringSubmatch(part); m != nil {
		return t.parseKey(m[1] == "primary", m[2], m[3])
	}
	m := ddlColumn.FindStringSubmatch(part)
	if m == nil {
		return fmt.Errorf("the model does not understand %q", part)
	}
	c := ColumnDef{Name: m[1]}
	switch m[2] {
	case "json":
		c.JSON = true
	case "blob":
		c.Blob = true
	case "text":
		c.Blob = true
		c.Fold = foldText
	case "char", "varchar":
		c.Fold = foldText
		if strings.Contains(m[4], "general_ci") {
			c.Fold = foldPadded
		}
	case "enum":
		for _, value := range split(m[3]) {
			c.Enum = append(c.Enum, strings.Trim(value, "'"))
		}
	case "binary":
		c.Width, _ = strconv.Atoi(m[3])
	}
	if g := ddlGenerated.FindStringSubmatch(m[4]); g != nil {
		p := newSQLParser(g[1])
		if c.Generated = p.sum(); p.err != nil {
			return p.err
		}
	}
	t.Columns = append(t.Columns, c)
	return nil
}

func (t *TableDef) parseKey(primary bool, name, parts string) error {
	key := KeyDef{Name: name}
	for _, part := range split(parts) {
		m := ddlKeyPart.FindStringSubmatch(part)
		if m == nil || t.column(m[1]) < 0 {
			return fmt.Errorf("the model does not understand a key of %q", part)
		}
		i := t.column(m[1])
		key.Columns = append(key.Columns, i)
		if m[2] != "" {
			if key.Prefix == nil {
				key.Prefix = make(map[int]int)
			}
			key.Prefix[i], _ = strconv.Atoi(m[2])
		}
	}
	if primary {
		t.Key = key.Columns
	} else {
		t.Unique = append(t.Unique, key)
	}
	return nil
}

// split splits at commas outside of parentheses and quotes.
func split(text string) (parts []string) {
	depth, quoted, start := 0, false, 0
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(text[start:]))
}
