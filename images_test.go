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
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestColumn: a column is found in an image, and NULL is told from an empty
// value.
func TestColumn(t *testing.T) {
	row := image("a", nil, "", "bc")
	assert.Equal(t, []byte("a"), column(row, 0))
	assert.Nil(t, column(row, 1))
	assert.NotNil(t, column(row, 2), "an empty value is not NULL")
	assert.Empty(t, column(row, 2))
	assert.Equal(t, []byte("bc"), column(row, 3))
	assert.Nil(t, column(row, 4))
	assert.Equal(t, "x,NULL,,bc", show(withColumn(row, 0, []byte("x"))))
	assert.Equal(t, "a,xyz,,bc", show(withColumn(row, 1, []byte("xyz"))))
	assert.Equal(t, "a,NULL,,NULL", show(withColumn(row, 3, nil)))
	assert.Equal(t, "a,NULL,,bc", show(row), "the image is not written to")
}

// TestSameColumns: two images agree in columns by their bytes, NULL agrees with
// NULL only, and unknown columns agree in nothing.
func TestSameColumns(t *testing.T) {
	tests := []struct {
		name    string
		columns []int
		same    bool
	}{
		{name: "equal", columns: []int{0}, same: true},
		{name: "different", columns: []int{0, 1}},
		{name: "NULL and NULL", columns: []int{2}, same: true},
		{name: "NULL and empty", columns: []int{3}},
		{name: "none of none", columns: []int{}, same: true},
		{name: "not known", columns: nil},
	}
	a, b := image(1, 2, nil, nil), image(1, 3, nil, "")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.same, sameColumns(tt.columns, a, b))
		})
	}
}

// TestDescribe: a row's key is shown to people as SQL would have it, and in
// valid UTF-8.
func TestDescribe(t *testing.T) {
	table := testTable()
	table.Key = []int{0, 1, 2}
	assert.Equal(t, "('1', NULL, '')", table.describe(table.key(image(1, nil, "", "x"))))
	assert.Equal(t, "('a?b', '2', '3')", table.describe(table.key(image("a\xffb", 2, 3, "x"))))
	assert.Equal(t, table.key(image(1, nil, "", "x")), rowKeyOf([][]byte{[]byte("1"), nil, {}}))
	assert.Nil(t, table.unique("nothing"))
	assert.Equal(t, "uid_uk", table.unique("uid_uk").Name)
}
