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
)

// This file is JSON in the model: documents are objects.

func object(text string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, fmt.Errorf("the model has JSON objects only, not %q: %w", text, err)
	}
	return members, nil
}

func document(members map[string]json.RawMessage) (string, error) {
	// The members are sorted, so equal documents are equal texts.
	text, err := json.Marshal(members)
	return string(text), err
}

// patched applies a difference to a document. To NULL it comes to NULL, as MySQL's
// functions do.
func patched(text, difference string) (string, error) {
	if text == Null || difference == "" {
		return text, nil
	}
	members, err := object(text)
	if err != nil {
		return "", err
	}
	changes, err := object(difference)
	if err != nil {
		return "", err
	}
	for name, value := range changes {
		if string(value) == "null" {
			delete(members, name)
		} else {
			members[name] = value
		}
	}
	return document(members)
}

// difference is what leads from one document to another, or false if that is not
// to be told by one that is shorter than the document.
func difference(before, after string) (string, bool) {
	if before == after {
		return "", true
	}
	from, err := object(before)
	if err != nil {
		return "", false
	}
	to, err := object(after)
	if err != nil {
		return "", false
	}
	changes := make(map[string]json.RawMessage)
	for name, value := range to {
		if string(from[name]) != string(value) {
			changes[name] = value
		}
	}
	for name := range from {
		if _, ok := to[name]; !ok {
			changes[name] = json.RawMessage("null")
		}
	}
	text, err := document(changes)
	return text, err == nil && len(text) < len(after)
}
