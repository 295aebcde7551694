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

# Runs the simulator, as "scripts/sim.sh -h" says. Paths are from the root of the
# repository.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
mkdir -p "$work/host-tools"
say "Building the simulator: seconds, and up to two minutes the first time (compiling what it uses of Vitess)."
(cd "$repo/tools" && go build -o "$work/host-tools/sim" ./cmd/sim)
cd "$repo"
exec "$work/host-tools/sim" "$@"
