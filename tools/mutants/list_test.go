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

package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListFits shows that each mutant can be planted: that its text is in the package
// as it is now, once, and that it changes something.
func TestListFits(t *testing.T) {
	names := make(map[string]bool)
	for _, m := range List {
		require.False(t, names[m.Name], "two mutants with the name %q", m.Name)
		names[m.Name] = true
		require.NotEmpty(t, m.Breaks, m.Name)
		require.NotEmpty(t, m.By, m.Name)
		text, err := os.ReadFile(filepath.Join("..", "..", m.File))
		require.NoError(t, err, m.Name)
		planted, err := m.Plant(string(text))
		require.NoError(t, err)
		require.NotEqual(t, string(text), planted, m.Name)
	}
}

// TestPlantRefuses shows that a mutant whose text is gone, or not unique, is not
// planted elsewhere.
func TestPlantRefuses(t *testing.T) {
	m := Mutant{Name: "m", File: "a.go", Old: "x := 1", New: "x := 2"}
	for _, text := range []string{"", strings.Repeat("x := 1\n", 2)} {
		_, err := m.Plant(text)
		require.ErrorContains(t, err, `mutant "m": its text is in a.go`)
	}
}
