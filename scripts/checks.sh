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

# How lint.sh and patch-check.sh run checks and name their results. To be sourced
# after lib.sh.
# shellcheck shell=bash

gofumpt_version=v0.9.2
goimports_version=v0.44.0
status=0 passed=0 failed=()

# check NAME COMMAND...: a check fails by its exit status or by any output, but for
# what go says while it fills an empty module cache.
check() {
  local name=$1 output result=0
  shift
  output=$("$@" 2>&1) || result=$?
  output=$(grep -v '^go: downloading ' <<<"$output" || true)
  if ((result == 0)) && [[ -z $output ]]; then
    say "  ok      $name"
    ((++passed))
  else
    say "  FAILED  $name"
    sed 's/^/          /' <<<"$output" >&2
    failed+=("$name")
    status=1
  fi
}

# quiet COMMAND...: for a check whose output says nothing if it succeeds.
quiet() {
  local output
  output=$("$@" 2>&1) || { printf '%s\n' "$output"; return 1; }
}

# install_tool PACKAGE VERSION prints its path. One folder a version: a new
# version here is a new program.
install_tool() {
  local dir=$work/host-tools/$(basename "$1")-$2
  [[ -x $dir/$(basename "$1") ]] || GOBIN=$dir host_go install "$1@$2" >&2
  echo "$dir/$(basename "$1")"
}

in_dir() { (cd "$1" && "${@:2}"); }

# untold FILE...: the tests in these files without a comment that begins with their
# name, as Vitess's reviewers want one to say what the test shows.
untold() {
  awk '
    FNR == 1 { first = "" }
    /^\/\// { if (first == "") { first = $2; sub(/:$/, "", first) } next }
    /^func (Test|Fuzz|Benchmark)[A-Z]/ && !/^func TestMain\(/ {
      name = $2; sub(/[(].*/, "", name)
      if (first != name) print FILENAME ": " name
    }
    { first = "" }' "$@"
}

named_here() { grep -nE "$not_in_vitess" "$@" || true; }

# write_summary STAGE: for the table of test.sh.
write_summary() {
  mkdir -p "$work/logs"
  {
    echo "passed $passed"
    echo "failed ${#failed[@]}"
    ((${#failed[@]} == 0)) || printf 'name %s\n' "${failed[@]}"
  } >"$work/logs/$1.summary"
}
