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

# Vets and checks the format of all Go files of this repository: as they are
# here, and, for those that compile inside Vitess only, in the patched tree.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$repo/scripts/checks.sh"
need go

mkdir -p "$work/logs"
say "Checking the code: seconds, and about three minutes the first time (go vet compiles Vitess)."
tree=$(STOCK='' "$repo/scripts/vitess.sh" | tail -n 1)
gofumpt=$(install_tool mvdan.cc/gofumpt "$gofumpt_version")
goimports=$(install_tool golang.org/x/tools/cmd/goimports "$goimports_version")
mapfile -t files < <(cd "$repo" && find . -path ./.work -prune -o -path ./bin -prune -o -name '*.go' -type f -print | sort)
check "gofumpt (${#files[@]} files)" in_dir "$repo" "$gofumpt" -l "${files[@]}"
check "goimports" in_dir "$repo" "$goimports" -local vitess.io/vitess -l "${files[@]}"
check "go vet of the package" in_dir "$repo" go vet ./...
check "go vet of the tools" in_dir "$repo/tools" go vet ./...
mapfile -t tests < <(cd "$repo" && find . -maxdepth 1 -name '*_test.go' && find hooks -name '*_test.go')
check "each test for Vitess says what it shows" in_dir "$repo" untold "${tests[@]}"
mapfile -t sent < <(cd "$repo" && find . -maxdepth 1 -name '*.go' && find testdata hooks/*/files upstream -type f ! -name 'merge_backoff_bench*')
check "nothing for Vitess names what is only here" in_dir "$repo" named_here "${sent[@]}"
take_lock "$(basename "$tree")" shared
check "go vet of vreplication in the patched tree" in_dir "$tree" go vet "./$(dirname "$pkg_dir")/..."
write_summary lint
exit $status
