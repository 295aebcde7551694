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

// Package e2e runs merge workflows on real clusters, each scenario on one of its
// own: what an operator does to such a workflow, while clients hand unique values
// between rows on different shards through vtgate. The demo is the plain case;
// these are the others.
//
//	lookup.go       MoveTables merges four shards into two, with a lookup vindex
//	reverse.go      the _reverse workflow of a split merges, after SwitchTraffic
//	shards.go       MoveTables shard by shard, each its own workflow
//	operations.go   stop, throttle and reparent while a stream is blocked
//	duplicate.go    a genuine duplicate, its repair, and going on
//	copying.go      hand-overs during a long copy phase
//
// Every scenario ends with VDiff clean, with the target equal to the union of the
// sources, row for row, and with both equal to what the clients know; and every
// scenario that merges fails if no conflict was met, since nothing was shown.
//
// scenario.go starts and judges, world.go is a scenario's cluster with its clients,
// flow.go is a workflow between shards, and watch.go sees it die, and counts.
package e2e
