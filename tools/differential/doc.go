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

// Package differential compares the simulator's model of MySQL with MySQL. It runs
// histories on the model, has a server do the same statements, in the same order,
// each transaction on a connection of its own, and compares errors, results and rows.
//
// What the model says about locks is not compared: a statement that waited comes when
// it was done, and one that failed for its locks is left out. Where the server makes a
// statement wait that the model lets through, as for a gap, the rest of that history is
// left out; Summary counts them.
package differential
