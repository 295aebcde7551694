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

// Command stormchart draws what "demo -samples" has written: the load, how far
// the streams were behind, and the conflicts, second by second.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"mergebackoff/tools/demo"
)

func main() {
	in := flag.String("in", "storm.json", "what the demo has written")
	out := flag.String("out", "storm.svg", "the chart to write")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	var s demo.Samples
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if len(s.Samples) < 2 {
		return fmt.Errorf("%s: fewer than two samples, so there is nothing to draw", in)
	}
	return os.WriteFile(out, []byte(chart(s)), 0o644)
}
