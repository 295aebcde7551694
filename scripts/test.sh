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

# Usage: scripts/test.sh [STAGE...]
#
# Runs every check, in order, and all set-up that they need; a later stage also
# runs when an earlier one failed, if it does not build on it. The last thing
# on the screen is a table of what passed and failed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Each stage: its name, the stages that must have succeeded, its command.
stages=(
  'mysql    |                     |scripts/mysql.sh'
  'vitess   |                     |scripts/vitess.sh'
  'lint     |vitess               |scripts/lint.sh'
  'unit     |                     |env RACE=1 scripts/unit.sh'
  'model    |mysql                |scripts/differential.sh -n 200'
  'intree   |mysql vitess         |scripts/intree.sh'
  'suite    |mysql vitess         |scripts/intree.sh -all'
  'demo     |mysql vitess         |scripts/demo.sh -short'
  'faults   |mysql vitess         |scripts/demo.sh -faults 5'
  # All but the scenarios and the random histories, which make matrix runs too.
  'intree-v0.23.3|mysql           |env VITESS=v0.23.3 scripts/intree.sh -run ^TestMergeBackoff([A-QT-Z]|S[^c])'
)

# The variables of single targets must not turn this into something else.
unset STOCK RACE RUN DEMO_ARGS FUZZTIME MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
export VITESS=${VITESS:-v0.24.4}
logs=$work/logs
mkdir -p "$logs"
cd "$repo"

trap 'say "Interrupted."; [[ -z ${child:-} ]] || { kill -TERM "$child" 2>/dev/null && wait "$child"; }; exit 130' INT TERM

declare -A result
table=() names=() passed=0 failed=0

# count STAGE STATUS adds up what a stage's tests came to.
count() {
  local stage=$1 status=$2 word value bad=0 line
  if [[ -f $logs/$stage.summary ]]; then
    while read -r word value; do
      case $word in
        passed) ((passed += value)) || true ;;
        failed) ((bad += value)) || true ;;
        name) names+=("$stage: $value") ;;
      esac
    done <"$logs/$stage.summary"
  elif [[ ($stage == demo || $stage == faults || $stage == model) && $status == 0 ]]; then
    # These have no tests, but are one each. Set-up is none.
    ((++passed))
  fi
  if ((status && bad == 0)); then
    bad=1
    # Its own last words, without colour, say why.
    line=$(grep -a -m 1 -E '^(error|fatal|panic)' "$logs/$stage.stage.log" || grep -av '^make' "$logs/$stage.stage.log" | tail -n 1)
    names+=("$stage: $line")
  fi
  ((failed += bad)) || true
}

run_stage() {
  local stage=$1 needs=$2 command=$3 begin=$SECONDS need status=0
  for need in $needs; do
    if [[ ${result[$need]:-ok} != ok ]]; then
      result[$stage]=skipped
      table+=("$(printf '%-14s %-8s %6s   %s' "$stage" skipped - "needs $need")")
      return
    fi
  done
  say ""
  say "== $stage: $command"
  rm -f "$logs/$stage.summary"
  # In the background, so that a signal is obeyed at once; the log has its
  # own reader, which ends with the stage.
  $command > >(tee "$logs/$stage.stage.log" >&2) 2>&1 &
  child=$!
  wait "$child" || status=$?
  child=
  sleep 0.2
  result[$stage]=$([[ $status == 0 ]] && echo ok || echo FAILED)
  count "$stage" "$status"
  table+=("$(printf '%-14s %-8s %5ds   %s' "$stage" "${result[$stage]}" $((SECONDS - begin)) ".work/logs/$stage.stage.log")")
}

say "Running all checks: about 20 minutes, and up to 45 the first time (downloads, and compiling Vitess, twice with the race detector)."
for entry in "${stages[@]}"; do
  IFS='|' read -r stage needs command <<<"$entry"
  stage=${stage// /}
  if (($# == 0)) || [[ " $* " == *" $stage "* ]]; then
    run_stage "$stage" "$needs" "$command"
  fi
done

{
  echo
  printf '%-14s %-8s %6s   %s\n' stage result time log
  printf '%s\n' "${table[@]}"
  if ((${#names[@]})); then
    echo
    echo "Failed:"
    printf '  %s\n' "${names[@]}"
  fi
  echo
  echo "$passed passed, $failed failed"
} | tee "$logs/test.txt"
((failed == 0))
