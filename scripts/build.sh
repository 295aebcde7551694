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

# Usage: scripts/build.sh vttablet|mysqlctl|cluster
#
# Builds programs of the patched Vitess tree into bin/. STOCK=1 builds
# bin/vttablet-stock from the unpatched tree. The cluster's other programs are
# the same in both trees. The last line of its output is what was built.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need go
etcd_version=v3.6.7
what=${1:?what to build: vttablet, mysqlctl or cluster}
vitess_version
mkdir -p "$bin" "$work/test"

# build OUT DIR PACKAGE: compiled aside, so that an interrupted build leaves
# the old program, and a program that runs can be replaced.
build() {
  local out=$bin/$1 begin=$SECONDS
  say "Compiling bin/$1 ..."
  # go does not link anew what is up to date already.
  [[ ! -f $out ]] || cp -p "$out" "$out.new"
  (cd "$2" && go build -o "$out.new" "$3")
  mv "$out.new" "$out"
  say "  bin/$1: $((SECONDS - begin))s"
}

# etcd is no part of Vitess: a module of one line chooses its version.
build_etcd() {
  local dir=$work/etcd-$etcd_version
  if [[ ! -f $dir/.complete ]]; then
    rm -rf "$dir"
    mkdir -p "$dir"
    printf 'module etcd\n\ngo 1.26\n\ntool go.etcd.io/etcd/server/v3\n' >"$dir/go.mod"
    (cd "$dir" && go get -tool "go.etcd.io/etcd/server/v3@$etcd_version" 2>&1 | tail -n 3 >&2)
    touch "$dir/.complete"
  fi
  build etcd "$dir" go.etcd.io/etcd/server/v3
}

case $what in
  vttablet)
    tree=$("$repo/scripts/vitess.sh" | tail -n 1)
    take_lock "$(basename "$tree")" shared
    say "Building vttablet: seconds if little changed, about three minutes the first time."
    build "vttablet${STOCK:+-stock}" "$tree" ./go/cmd/vttablet
    echo "$bin/vttablet${STOCK:+-stock}"
    ;;
  mysqlctl)
    tree=$(STOCK='' "$repo/scripts/vitess.sh" | tail -n 1)
    take_lock "$(basename "$tree")" shared
    # It goes with the tests of its line: another line's has other settings.
    if [[ $version != "$default_version" ]]; then bin=$bin/$version; fi
    mkdir -p "$bin"
    build mysqlctl "$tree" ./go/cmd/mysqlctl
    echo "$bin/mysqlctl"
    ;;
  cluster)
    tree=$(STOCK='' "$repo/scripts/vitess.sh" | tail -n 1)
    take_lock "$(basename "$tree")" shared
    say "Building the programs of a cluster: seconds if they are there, about four minutes the first time."
    for name in mysqlctl vtctld vtctldclient vtgate; do
      build "$name" "$tree" "./go/cmd/$name"
    done
    build_etcd
    echo "$bin"
    ;;
  *) die "unknown: $what (vttablet, mysqlctl or cluster)" ;;
esac
