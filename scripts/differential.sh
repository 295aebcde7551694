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

# Usage: scripts/differential.sh [-n 1000] [-seed 1] ... (-help lists all)
#
# Has a MySQL of its own do what the simulator's model of MySQL has done, in random
# histories and in the scenarios of testdata, and compares every result, error and row.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
cd "$repo"

mysql_root=$("$repo/scripts/mysql.sh" | tail -n 1)
say "Building the comparison: seconds, and up to two minutes the first time (compiling what it uses of Vitess)."
mkdir -p "$work/host-tools"
(cd tools && go build -o "$work/host-tools/differential" ./cmd/differential)
exec "$work/host-tools/differential" -mysql-root "$mysql_root" -scenarios testdata "$@"
