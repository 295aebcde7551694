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
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"mergebackoff/tools/sim"
)

func column(table *sim.TableDef, name string) *sim.ColumnDef {
	i := slices.IndexFunc(table.Columns, func(c sim.ColumnDef) bool { return strings.EqualFold(c.Name, name) })
	return &table.Columns[i]
}

// imageOf is a value as a row image has it, whether it comes from there or from a query.
func imageOf(c *sim.ColumnDef, value string) string {
	switch {
	case c.Enum != nil:
		if i := slices.Index(c.Enum, value); i >= 0 {
			return strconv.Itoa(1 + i)
		}
	case c.Width > 0:
		return strings.TrimRight(value, "\x00")
	case c.JSON:
		return canonical(value)
	}
	return value
}

// canonical writes a JSON document such that equal ones are equal.
func canonical(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	out, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(out)
}

func equalValues(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return strings.HasPrefix(a, "{") && json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// differentRows tells how two sets of rows differ.
func differentRows(model, server [][]string) string {
	slices.SortFunc(model, slices.Compare)
	slices.SortFunc(server, slices.Compare)
	for i := range max(len(model), len(server)) {
		switch {
		case i >= len(model):
			return fmt.Sprintf("%q on the server, and not on the model", server[i])
		case i >= len(server):
			return fmt.Sprintf("%q on the model, and not on the server", model[i])
		case !slices.Equal(model[i], server[i]):
			return fmt.Sprintf("%q on the model, and %q on the server", model[i], server[i])
		}
	}
	return ""
}
