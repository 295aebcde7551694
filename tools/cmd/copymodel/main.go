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

// Command copymodel copies the model that the package's tests use into tools/sim.
// It is run there, by go generate.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"mergebackoff/tools/modelcopy"
)

func main() {
	copies, err := modelcopy.Copies(filepath.Join("..", ".."))
	if err == nil {
		err = modelcopy.Write(".", copies)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "copymodel:", err)
		os.Exit(1)
	}
}
