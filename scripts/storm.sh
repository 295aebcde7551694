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

# Usage: scripts/storm.sh [-save] [-duration 40s] ... (make demo's flags)
#
# Runs the demo, and draws what it saw second by second: the load, how far the
# streams were behind, the conflicts and what ended them. Leaves storm.json and
# storm.svg in .work/storm; -save also puts the chart into docs/.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go

save='' args=(-duration 40s)
for arg in "$@"; do
  case $arg in
    -save) save=1 ;;
    -h | -help | --help) sed -n '/^# Usage/,/^set/p' "${BASH_SOURCE[0]}" | sed -e '$d' -e 's/^# \{0,1\}//'; exit 0 ;;
    *) args+=("$arg") ;;
  esac
done

results=$work/storm
mkdir -p "$results"
# A job of its own, so that a signal reaches the demo once: at the second one it
# would not end its cluster in order.
set -m
STOCK='' "$repo/scripts/demo.sh" -samples "$results/storm.json" "${args[@]}" &
demo_pid=$!
set +m
trap 'kill -TERM "$demo_pid" 2>/dev/null; wait "$demo_pid"; exit 130' INT TERM
wait "$demo_pid"
trap - INT TERM
(cd "$repo/tools" && host_go run ./cmd/stormchart -in "$results/storm.json" -out "$results/storm.svg")
if [[ -n $save ]]; then
  mkdir -p "$repo/docs"
  cp "$results/storm.svg" "$repo/docs/"
fi
say "Drawn: ${results#"$repo"/}/storm.svg"
