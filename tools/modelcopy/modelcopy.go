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

// Package modelcopy makes copies of the model that the package's tests use. The
// model lies in test files, which nothing can import.
package modelcopy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	original = "\npackage mergebackoff_test\n"
	copied   = "\n// A copy: see doc.go.\n\npackage sim\n"
)

// Copies returns the copies of the model's files, by the names that they are to
// have. root is the package's folder.
func Copies(root string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(root, "model*_test.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no model in %s", root)
	}
	copies := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(string(text), original) {
			return nil, fmt.Errorf("%s is not in the package mergebackoff_test", path)
		}
		name := strings.TrimSuffix(filepath.Base(path), "_test.go") + ".go"
		copies[name] = strings.Replace(string(text), original, copied, 1)
	}
	return copies, nil
}

// Stale returns the names of the files in a folder that are not what they are to
// be: they differ, are missing, or have no original.
func Stale(dir string, copies map[string]string) (names []string, err error) {
	present, err := filepath.Glob(filepath.Join(dir, "model*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range present {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if name := filepath.Base(path); copies[name] != string(text) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		if !slices.Contains(present, filepath.Join(dir, name)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Write brings the copies in a folder up to date.
func Write(dir string, copies map[string]string) error {
	names, err := Stale(dir, copies)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if text, ok := copies[name]; ok {
			err = os.WriteFile(path, []byte(text), 0o644)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
