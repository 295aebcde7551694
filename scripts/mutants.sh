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

# Plants one bug after the other in the package, in copies of it, and has the
# simulator, the fuzzer or the package's tests look for it, as "scripts/mutants.sh -h"
# says. A bug that is not found fails.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
mkdir -p "$work/host-tools"
say "Building: seconds, and up to two minutes the first time (compiling what it uses of Vitess)."
(cd "$repo/tools" && go build -o "$work/host-tools/mutants" ./cmd/mutants)
cd "$repo"
exec "$work/host-tools/mutants" "$@"
