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

# Usage: scripts/e2e.sh [-list] [-stock] [-duration 1m] ... [SCENARIO...] (-help lists all)
#
# Runs merge workflows on real clusters, one scenario after the other, after making
# whatever that needs: MySQL, the Vitess tree, and the programs of a cluster.
# STOCK=1 is the same as -stock.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
cd "$repo"

build_e2e() {
  mkdir -p "$bin"
  (cd tools && go build -o "$bin/e2e.new" ./cmd/e2e)
  mv "$bin/e2e.new" "$bin/e2e"
}

stock=${STOCK:+1}
args=()
for arg in "$@"; do
  case $arg in
    -stock | --stock) stock=1 ;;
    -h | -help | --help | -list | --list)
      build_e2e
      exec "$bin/e2e" "$arg"
      ;;
    *) args+=("$arg") ;;
  esac
done
if [[ -n $stock ]]; then
  args=(-stock "${args[@]}")
fi

say "Preparing what the scenarios need: MySQL, a Vitess tree, and the programs of a cluster."
say "Under a minute when they are there; about ten minutes the first time (downloads, and compiling Vitess)."
begin=$SECONDS
build_e2e
mysql_root=$("$repo/scripts/mysql.sh" | tail -n 1)
vitess=$(STOCK='' "$repo/scripts/vitess.sh" | tail -n 1)
STOCK=$stock "$repo/scripts/build.sh" vttablet >/dev/null
STOCK='' "$repo/scripts/build.sh" cluster >/dev/null
say "Prepared in $((SECONDS - begin))s."

# exec, so that a signal to this script reaches the scenarios.
exec "$bin/e2e" -bin "$bin" -mysql-root "$mysql_root" -vitess "$vitess" -logs "$work/logs" "${args[@]}"
