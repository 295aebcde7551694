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

# Runs the demo, after making whatever it needs: MySQL, the Vitess tree, the
# programs of a cluster. Arguments go to the demo; see "scripts/demo.sh -help".
# STOCK=1 is the same as -stock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  export GOFLAGS='-buildvcs=false -trimpath'
  (cd tools && go run ./cmd/demo -help)
  exit 0
}

stock=${STOCK:+1}
args=()
for arg in "$@"; do
  case $arg in
    -stock | --stock) stock=1 ;;
    -h | -help | --help) usage ;;
    *) args+=("$arg") ;;
  esac
done

# The targets below are chosen here, whatever the calling make was told.
unset STOCK MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
variant=()
if [[ -n $stock ]]; then
  variant=(STOCK=1)
  args=(-stock "${args[@]}")
fi

# run_make shows what a target prints, and returns its last line.
run_make() {
  make --no-print-directory "$@" | tee /dev/stderr | tail -n 1
}

echo "Preparing what the demo needs: MySQL, the Vitess tree, and the programs of a cluster." >&2
echo "That takes seconds when it is there, and about ten minutes the first time (65 MB to download; compiling Vitess)." >&2
begin=$SECONDS
mysql_root=$(run_make mysql)
vitess=$(run_make vitess "${variant[@]}")
run_make vttablet "${variant[@]}" >/dev/null
run_make cluster-bins >/dev/null
(cd tools && GOFLAGS='-buildvcs=false -trimpath' go build -o ../bin/demo ./cmd/demo)
echo "Prepared in $((SECONDS - begin))s." >&2

# exec, so that a signal to this script reaches the demo.
exec bin/demo -bin bin -mysql-root "$mysql_root" -vitess "$vitess" -logs .work/logs ${args[@]+"${args[@]}"}
