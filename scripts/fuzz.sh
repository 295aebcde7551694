#!/usr/bin/env bash
# Copyright 2026 The Vitess Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

# Usage: scripts/fuzz.sh
#
# Fuzzes the window: the net effect of any part of a history, with full and with
# partial images, against plain replay, on the model of MySQL. FUZZTIME is for how
# long, as go test has it (default 5m; "100000x" counts inputs). An input that fails
# is printed as a history, and kept in testdata/fuzz: from then on every go test
# tries it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
say "Fuzzing the net effect for ${FUZZTIME:-5m}, on all cores. The first inputs take up to two minutes (compiling)."
cd "$repo"
exec go test -run '^$' -fuzz '^FuzzNetEffect$' -fuzztime "${FUZZTIME:-5m}" .
