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
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRun shows what becomes of the ways in which tests end.
func TestRun(t *testing.T) {
	tests := []struct {
		name    string
		in      []string
		wantErr string
		summary string
		out     string
	}{
		{
			// The same test may run twice in one go: both count.
			name: "passes",
			in: []string{
				`{"Action":"run","Test":"TestA"}`,
				`{"Action":"pass","Test":"TestA/sub"}`,
				`{"Action":"pass","Test":"TestA"}`,
				`{"Action":"run","Test":"TestA"}`,
				`{"Action":"pass","Test":"TestA"}`,
				`{"Action":"skip","Test":"TestB"}`,
				`{"Action":"pass"}`,
			},
			summary: "passed 2\nfailed 0\nskipped 1\n",
			out:     "2 passed, 0 failed, 1 skipped",
		},
		{
			// The child's output is shown, without the logger's lines.
			name: "fails",
			in: []string{
				`{"Action":"run","Test":"TestA"}`,
				`{"Action":"output","Test":"TestA/sub","Output":"{\"time\":\"now\"}\n"}`,
				`{"Action":"output","Test":"TestA/sub","Output":"a_test.go:1: wrong\n"}`,
				`{"Action":"fail","Test":"TestA/sub"}`,
				`{"Action":"fail","Test":"TestA"}`,
				`{"Action":"fail"}`,
			},
			wantErr: "1 failed",
			summary: "passed 0\nfailed 1\nskipped 0\nname TestA\n",
			out:     "FAILED TestA/sub\n  a_test.go:1: wrong\nFAILED TestA\n",
		},
		{
			// A crash in TestMain fails no test, and must not look like success.
			name:    "crashes",
			in:      []string{`{"Action":"run","Test":"TestA"}`, `{"Action":"fail","Package":"p"}`},
			wantErr: "1 failed",
			summary: "passed 0\nfailed 1\nskipped 0\nname package p, while running TestA\n",
		},
		{
			// So ends the input if the tests panic or are killed.
			name: "ends early",
			in: []string{
				`{"Action":"start","Package":"p"}`,
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}`,
			},
			wantErr: "1 failed",
			summary: "passed 0\nfailed 1\nskipped 0\nname TestA, in which the package ended early\n",
			out:     "  panic: oh\n",
		},
		{
			name:    "does not compile",
			in:      []string{`{"Action":"build-output","ImportPath":"p","Output":"x.go:1: bad\n"}`, `{"Action":"build-fail","ImportPath":"p"}`, `{"Action":"fail","Package":"p"}`},
			wantErr: "1 failed",
			summary: "passed 0\nfailed 1\nskipped 0\nname build of p\n",
			out:     "x.go:1: bad",
		},
		{
			// A pattern that matches nothing is a mistake, not a success.
			name:    "nothing ran",
			in:      []string{`{"Action":"pass"}`},
			wantErr: "no test ran",
			summary: "passed 0\nfailed 0\nskipped 0\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			summary := filepath.Join(t.TempDir(), "summary")
			var out bytes.Buffer
			err := run(strings.NewReader(strings.Join(tt.in, "\n")+"\n"), &out, "", summary, time.Hour)
			switch {
			case tt.wantErr == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
				t.Errorf("error %v, want %q", err, tt.wantErr)
			}
			got, err := os.ReadFile(summary)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.summary {
				t.Errorf("summary %q, want %q", got, tt.summary)
			}
			if !strings.Contains(out.String(), tt.out) {
				t.Errorf("output %q lacks %q", out.String(), tt.out)
			}
		})
	}
}
