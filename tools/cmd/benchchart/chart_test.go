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

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestChart(t *testing.T) {
	r := report{Transactions: 100000, Rounds: 3}
	for _, name := range []string{"stock", "patched & <new>"} {
		r.Results = append(r.Results, result{Name: name, Ratio: 0.5, AtLeast: 0.8})
	}
	r.Results[1].Median.PerSecond = 12345
	r.Latency = &latency{Milliseconds: 1.5, Commits: 2, AtMost: 5}
	svg := chart(r)
	for _, want := range []string{"100,000", "12,345", "patched &amp; &lt;new&gt;", "2.0 target commits"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
