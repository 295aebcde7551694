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

# Usage: scripts/matrix.sh [VERSION...]
#
# Builds and tests the patch on every supported release line of Vitess, or on
# those named: the tree, vttablet, our tests inside Vitess, and Vitess's own suite
# in the patched tree. Each line takes about 15 minutes, and 10 more the first
# time. The last thing on the screen is a table.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

unset STOCK RACE RUN
logs=$work/logs
mkdir -p "$logs"
if (($#)); then lines=("$@"); else mapfile -t lines < <(supported_versions | sort -rV); fi
for line in "${lines[@]}"; do (VITESS=$line vitess_version); done
trap 'say "Interrupted."; [[ -z ${child:-} ]] || { kill -TERM "$child" 2>/dev/null && wait "$child"; }; exit 130' INT TERM

table=() failed=0

# run LINE WHAT COMMAND...: one row of the table. It tells whether that succeeded.
run() {
  local line=$1 what=$2 begin=$SECONDS status=0 result summary suffix=
  shift 2
  say ""
  say "== $line: $what"
  VITESS=$line "$@" > >(tee "$logs/matrix-$line-$what.log" >&2) 2>&1 &
  child=$!
  wait "$child" || status=$?
  child=
  result=$([[ $status == 0 ]] && echo ok || echo FAILED)
  if [[ $line != "$default_version" ]]; then suffix=-$line; fi
  summary=$logs/$what$suffix.summary
  if [[ $what == intree || $what == suite ]] && [[ -f $summary ]]; then
    result+=$(awk '$1 ~ /^(passed|failed|skipped)$/ { printf "  %s %s", $2, $1 }' "$summary")
  fi
  table+=("$(printf '%-9s %-9s %5ds  %s' "$line" "$what" $((SECONDS - begin)) "$result")")
  ((failed += status > 0)) || true
  return $status
}

cd "$repo"
for line in "${lines[@]}"; do
  rm -f "$logs"/{intree,suite}"-$line.summary"
  run "$line" tree scripts/vitess.sh || continue
  run "$line" vttablet scripts/build.sh vttablet || true
  run "$line" intree scripts/intree.sh || true
  run "$line" suite scripts/intree.sh -all || true
done

{
  echo
  printf '%-9s %-9s %6s  %s\n' line what time result
  printf '%s\n' "${table[@]}"
} | tee "$logs/matrix.txt"
((failed == 0))
