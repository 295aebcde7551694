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

# Usage: scripts/intree.sh [-run REGEX] [-all] [-race] [-stock] [-count N] [-tree DIR]
#
# Runs tests of Vitess's package vreplication in the tree under .work, on a real
# MySQL: those that match REGEX (default ^TestMerge, ours), or all of Vitess's own. RUN,
# RACE and STOCK in the environment mean the same. Vitess runs every test twice,
# with row image FULL and then NOBLOB; the second round needs a clean first one.
# With -stock Vitess's own tests run in the tree without the patch, and ours with
# merge backoff switched off: a stream then does what it does on stock, and a test
# fails if merge backoff is what it needs, as its comment says.
# With -tree it runs all tests, ours included, in another tree of Vitess.
# The tests' whole output goes to .work/logs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$repo/scripts/user.sh"
need go

run=${RUN:-^TestMerge} skip='^$' tree= race=${RACE:-} stock=${STOCK:-} count=1 stage=intree timeout=30m
while (($#)); do
  case $1 in
    -run) run=${2:?-run needs a regular expression}; shift ;;
    -count) count=${2:?-count needs a number}; shift ;;
    -all) run=. skip=^TestMerge stage=suite ;;
    -tree) tree=${2:?-tree needs a folder} run=${RUN:-.} stage=patch-suite; shift ;;
    -race) race=1 ;;
    -stock) stock=1 ;;
    *) sed -n '/^# Usage/,/^set/p' "${BASH_SOURCE[0]}" | sed -e '$d' -e 's/^# \{0,1\}//' >&2; exit 2 ;;
  esac
  shift
done

vitess_version
[[ $version == "$default_version" || $stage == patch-suite ]] || stage=$stage-$version
variant=${stock:+-stock}${race:+-race}
package=go/vt/vttablet/tabletmanager/vreplication

# build sets $binary, $tree and $mysql_root.
build() {
  local begin=$SECONDS
  mysql_root=$("$repo/scripts/mysql.sh" | tail -n 1)
  # Vitess's test framework starts mysqld through mysqlctl.
  mysqlctl=$("$repo/scripts/build.sh" mysqlctl | tail -n 1)
  # Ours are in the patched tree only.
  [[ -n $tree ]] || tree=$(STOCK=$([[ $stage != suite ]] || echo "$stock") "$repo/scripts/vitess.sh" | tail -n 1)
  binary=$work/test/vreplication-$(basename "$tree")${race:+-race}.test
  say "Compiling the tests: under a minute if Vitess is compiled, about three the first time${race:+; twice that with the race detector} ..."
  mkdir -p "$work/test"
  # A subshell: the tree is locked while it is read, not while tests run.
  (
    take_lock "$(basename "$tree")" shared
    # go does not link anew what is up to date already.
    [[ ! -f $binary ]] || cp -p "$binary" "$binary.new"
    cd "$tree"
    go test ${race:+-race} -c -o "$binary.new" "./$package"
    mv "$binary.new" "$binary"
  )
  say "  compiled in $((SECONDS - begin))s"
  build_testreport
}

# sweep ends what an earlier run left that was killed before it could clean up.
sweep() {
  local file dir pid
  for file in "$work"/test/run-*; do
    [[ -f $file ]] || continue
    pid=${file##*/run-} dir=$(<"$file")
    if kill -0 "$pid" 2>/dev/null || [[ $dir != /*/mb-* ]]; then continue; fi
    stop_below "$dir"
    rm -rf "$dir" "$file"
  done
}

clean_up() {
  trap '' INT TERM
  [[ -z ${test_pid:-} ]] || kill -TERM "$test_pid" 2>/dev/null || true
  if [[ -n ${data:-} ]]; then
    stop_below "$data"
    rm -rf "$data" "$work/test/run-$$"
  fi
}

build
choose_user "$tree/$package/engine.go" "$binary" "$mysqlctl" "$mysql_root"/*bin/mysqld
sweep
# Short, since a path of a socket has at most 107 bytes.
data=$(mktemp -d /tmp/mb-XXXXXX)
echo "$data" >"$work/test/run-$$"
trap clean_up EXIT
trap 'say "Interrupted."; exit 130' INT TERM
# Where Vitess looks for its programs and MySQL settings. A folder of its own,
# since the framework joins these paths with ":", which a clone's may contain.
mkdir "$data/root"
ln -s "$(dirname "$mysqlctl")" "$data/root/bin"
ln -s "$tree/config" "$data/root/config"
mkfifo "$data/output"
chown "$owner" "$data"

log=$work/logs/$stage$variant.log summary=$work/logs/$stage$variant.summary
rm -f "$summary"
say "Running $([[ $run == . ]] && echo "all tests" || echo "the tests that match $run"), as user $owner ..."
host_go tool test2json -t -p vreplication <"$data/output" |
  "$testreport" -log "$log" -summary "$summary" &
report_pid=$!
# In the background, so that a signal is obeyed at once: the shell would only
# look at it when a command in front ended.
(
  cd "$tree/$package"
  # "=": the parser that Vitess puts before the flags of go test knows no other form.
  exec env -u EXTRA_MY_CNF ${stock:+MERGEBACKOFF_OFF=1} PATH="$(dirname "$mysqlctl"):$PATH" HOME="$data" TMPDIR="$data" \
    VTROOT="$data/root" VTDATAROOT="$data" VT_MYSQL_ROOT="$mysql_root" \
    "${as_user[@]}" "$binary" -test.v=test2json -test.run="$run" -test.skip="$skip" -test.count="$count" -test.timeout="$timeout"
) >"$data/output" 2>&1 &
test_pid=$!
status=0
wait "$test_pid" || status=$?
test_pid=
# A mysqld that outlived its test may hold the pipe open.
stop_below "$data"
wait "$report_pid" || status=1
if ((status)); then say "What the tests printed: ${log#"$repo"/}"; fi
exit $((status > 0))
