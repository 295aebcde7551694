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

// Package sim runs merge backoff over random histories, in memory: a model of the
// target, streams that run the real package, and sources whose histories are
// valid. A scheduler lets one stream run at a time, and chooses at every call of
// the player who is next: so a seed gives one run.
//
// The model itself is that of the package's own tests. The files model*.go are
// copies, which a test compares; go generate makes them.
package sim

//go:generate go run ../cmd/copymodel
