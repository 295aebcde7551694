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
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file is the expressions of the model's SQL.

// expr is an expression: a value, or an operation with arguments.
type expr struct {
	op    string
	value string
	args  []*expr
}

// literal is a value as an expression.
func literal(value string) *expr { return &expr{value: value} }

// String writes an expression as SQL.
func (e *expr) String() string {
	switch e.op {
	case "":
		if e.value == Null {
			return "null"
		}
		if _, err := strconv.Atoi(e.value); err == nil {
			return e.value
		}
		return literalSQL(e.value)
	case "column":
		return e.value
	case "and", "=", "+", "-", "*", "%":
		operator := e.op
		if operator == "and" {
			operator = " and "
		}
		return e.args[0].String() + operator + e.args[1].String()
	case "between":
		return e.args[0].String() + " between " + e.args[1].String() + " and " + e.args[2].String()
	case "in":
		return e.args[0].String() + " in (" + joinExprs(e.args[1:]) + ")"
	}
	return e.op + "(" + joinExprs(e.args) + ")"
}

func joinExprs(all []*expr) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.String()
	}
	return strings.Join(texts, ",")
}

const (
	yes = "1"
	no  = "0"
)

func truth(b bool) string {
	if b {
		return yes
	}
	return no
}

// eval returns the expression's value for a row.
func (e *expr) eval(table *TableDef, row Row) (string, error) {
	switch e.op {
	case "":
		return e.value, nil
	case "column":
		i := table.column(e.value)
		if i < 0 {
			return "", fmt.Errorf("table %s has no column %s", table.Name, e.value)
		}
		return row[i], nil
	}
	values := make([]string, len(e.args))
	for i, arg := range e.args {
		var err error
		if values[i], err = arg.eval(table, row); err != nil {
			return "", err
		}
	}
	switch e.op {
	case "and":
		return truth(values[0] == yes && values[1] == yes), nil
	case "=", "in":
		fold := e.args[0].fold(table)
		return truth(slices.ContainsFunc(values[1:], func(v string) bool {
			return v != Null && values[0] != Null && fold(v) == fold(values[0])
		})), nil
	case "json_object":
		return jsonSet("{}", values, true)
	case "json_set":
		return jsonSet(values[0], values[1:], true)
	case "json_replace":
		return jsonSet(values[0], values[1:], false)
	case "json_remove":
		return jsonRemove(values[0], values[1:])
	}
	if slices.Contains(values, Null) {
		return Null, nil
	}
	return arithmetic(e.op, values)
}

// fold is how values are compared with this one.
func (e *expr) fold(table *TableDef) func(string) string {
	if e.op == "column" {
		if i := table.column(e.value); i >= 0 {
			c := &table.Columns[i]
			if c.Fold != nil {
				return c.Fold
			}
			if c.Width > 0 {
				return func(value string) string { return value + strings.Repeat("\x00", max(0, c.Width-len(value))) }
			}
		}
	}
	return func(value string) string { return value }
}

func arithmetic(op string, values []string) (string, error) {
	if op == "concat" {
		return strings.Join(values, ""), nil
	}
	numbers := make([]int, len(values))
	for i, value := range values {
		n, err := strconv.Atoi(value)
		if err != nil && !(op == "repeat" && i == 0) {
			return "", fmt.Errorf("the model has whole numbers only, not %q", value)
		}
		numbers[i] = n
	}
	switch {
	case op == "repeat" && len(values) == 2:
		return strings.Repeat(values[0], numbers[1]), nil
	case op == "between":
		return truth(numbers[0] >= numbers[1] && numbers[0] <= numbers[2]), nil
	case op == "+":
		return strconv.Itoa(numbers[0] + numbers[1]), nil
	case op == "-":
		return strconv.Itoa(numbers[0] - numbers[1]), nil
	case op == "*":
		return strconv.Itoa(numbers[0] * numbers[1]), nil
	case op == "%" && numbers[1] != 0:
		return strconv.Itoa(numbers[0] % numbers[1]), nil
	}
	return "", fmt.Errorf("the model has no %s of %v", op, values)
}

// member returns the name in a path of the form $.name, or in json_object's
// argument.
func member(path string) string {
	return strings.TrimPrefix(path, "$.")
}

// jsonSet sets members of a document to values: paths and values in turn. Without
// add it sets only those that are there.
func jsonSet(text string, arguments []string, add bool) (string, error) {
	if text == Null {
		return Null, nil
	}
	members, err := object(text)
	if err != nil {
		return "", err
	}
	for i := 0; i+1 < len(arguments); i += 2 {
		name, value := member(arguments[i]), arguments[i+1]
		if _, ok := members[name]; !ok && !add {
			continue
		}
		if _, err := strconv.Atoi(value); err != nil {
			quoted, err := json.Marshal(value)
			if err != nil {
				return "", err
			}
			value = string(quoted)
		}
		members[name] = json.RawMessage(value)
	}
	return document(members)
}

func jsonRemove(text string, paths []string) (string, error) {
	if text == Null {
		return Null, nil
	}
	members, err := object(text)
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		delete(members, member(path))
	}
	return document(members)
}
