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

package vreplication

// This file has what the tests of merge backoff need of the test framework that is
// not the same in all release lines. Before v24 a throttler's client cannot be
// replaced by a test's, so TestMergeBackoffThrottled is of v24 only.

// experimentalFlagsName is the name of the flag whose bit switches merge backoff.
const experimentalFlagsName = "vreplication_experimental_flags"

func drainDBQueries() {
	for {
		select {
		case <-globalDBQueries:
		default:
			return
		}
	}
}
