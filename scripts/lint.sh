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
need go
gofumpt_version=v0.9.2
goimports_version=v0.44.0

status=0
# check NAME COMMAND...: a check fails by its exit status or by any output.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1) && [[ -z $output ]]; then
    say "  ok      $name"
    ((++passed))
  else
    say "  FAILED  $name"
    sed 's/^/          /' <<<"$output" >&2
    failed+=("$name")
    status=1
  fi
}

# install_tool PACKAGE VERSION prints its path. One folder a version: a new
# version here is a new program.
install_tool() {
  local dir=$work/host-tools/$(basename "$1")-$2
  [[ -x $dir/$(basename "$1") ]] || GOBIN=$dir go install "$1@$2" >&2
  echo "$dir/$(basename "$1")"
}

in_dir() { (cd "$1" && "${@:2}"); }

failed=() passed=0
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
take_lock "$(basename "$tree")" shared
check "go vet of vreplication in the patched tree" in_dir "$tree" go vet "./$(dirname "$pkg_dir")/..."
{
  echo "passed $passed"
  echo "failed ${#failed[@]}"
  ((${#failed[@]} == 0)) || printf 'name %s\n' "${failed[@]}"
} >"$work/logs/lint.summary"
exit $status
