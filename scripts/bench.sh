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

# Usage: scripts/bench.sh [-n TRANSACTIONS] [-rounds N] [-cases REGEX]
#          [-percent "0.2 1"] [-rate N] [-profile DIR] [-save]
#
# Measures on a real MySQL how fast backlogs are drained, with and without
# conflicts, and how soon a stream goes on that waited for another. Prints a
# table, and leaves bench.txt, bench.json and bench.svg in .work/bench; -save also
# puts the last two into bench/, for README. It takes 10 to 15 minutes;
# "-n 10000 -rounds 1" gives a first impression in one minute. -percent adds
# percentages of hand-overs, -rate has the sources' clocks say that so many
# transactions were made a second, and -profile keeps CPU profiles of the drains.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go

transactions=100000 rounds=3 cases='' percent='' rate='' profile='' save=
while (($#)); do
  case $1 in
    -n) transactions=${2:?-n needs a number}; shift ;;
    -rounds) rounds=${2:?-rounds needs a number}; shift ;;
    -cases) cases=${2:?-cases needs a regular expression}; shift ;;
    -percent) percent=${2:?-percent needs numbers}; shift ;;
    -rate) rate=${2:?-rate needs a number}; shift ;;
    -profile) profile=${2:?-profile needs a folder}; shift ;;
    -save) save=1 ;;
    *) sed -n '/^# Usage/,/^set/p' "${BASH_SOURCE[0]}" | sed -e '$d' -e 's/^# \{0,1\}//' >&2; exit 2 ;;
  esac
  shift
done

out=$(mktemp -d /tmp/mb-bench-XXXXXX)
# The tests run as another user if this one is root.
chmod 1777 "$out"
: >"$out/progress"
chmod 666 "$out/progress"
if [[ -n $profile ]]; then mkdir -m 1777 "$out/profile"; fi
clean_up() {
  trap '' INT TERM
  for pid in ${test_pid:-} ${tail_pid:-}; do kill -TERM "$pid" 2>/dev/null && wait "$pid" || true; done
  rm -rf "$out"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

tail -n +1 -f "$out/progress" >&2 &
tail_pid=$!
# In the background, so that a signal is obeyed at once.
MERGE_BACKOFF_BENCH=$out MERGE_BACKOFF_BENCH_TRANSACTIONS=$transactions MERGE_BACKOFF_BENCH_ROUNDS=$rounds \
  MERGE_BACKOFF_BENCH_CASES=$cases MERGE_BACKOFF_BENCH_PERCENT=$percent MERGE_BACKOFF_BENCH_RATE=$rate \
  MERGE_BACKOFF_BENCH_PROFILE=${profile:+$out/profile} RACE='' STOCK='' "$repo/scripts/intree.sh" -run '^TestMergeBackoffBench$' &
test_pid=$!
status=0
wait "$test_pid" || status=$?
test_pid=
[[ -f $out/bench.json ]] || die "the benchmark has no result; what it printed is in .work/logs/intree.log"

results=$work/bench
mkdir -p "$results"
cp "$out/bench.json" "$out/bench.txt" "$results/"
(cd "$repo/tools" && go run ./cmd/benchchart -in "$results/bench.json" -out "$results/bench.svg")
if [[ -n $profile ]]; then
  mkdir -p "$profile"
  cp "$out"/profile/* "$profile/"
fi
if [[ -n $save ]]; then
  mkdir -p "$repo/bench"
  cp "$results/bench.json" "$results/bench.svg" "$repo/bench/"
fi
cat "$results/bench.txt"
say "Also in ${results#"$repo"/}: bench.json, bench.svg"
exit "$status"
