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

# Tests the package by itself, and the tools: no MySQL and no Vitess tree.
# RACE=1 uses the race detector, RUN=regex chooses tests.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
mkdir -p "$work/logs"
flags=(-json)
[[ -z ${RACE:-} ]] || flags+=(-race)
[[ -z ${RUN:-} ]] || flags+=(-run "$RUN")
say "Testing the package alone: seconds, and up to three minutes the first time (compiling what it uses of Vitess)."

build_testreport
# The directories, one module each, are tested in one go to get one count.
run_all() {
  local dir status=0
  for dir in . tools; do
    # The simulator's long runs are for make sim.
    (cd "$repo/$dir" && go test "${flags[@]}" -short ./...) || status=1
  done
  return $status
}
run_all | "$testreport" -log "$work/logs/unit.log" -summary "$work/logs/unit.summary"
