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

# What every script here shares: where things are, how they speak, and locks.
# To be sourced by bash, after "set -euo pipefail".
# shellcheck shell=bash

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
work=$repo/.work
bin=$repo/bin
# shellcheck disable=SC2034 # used by the scripts that source this file
pkg_dir=go/vt/vttablet/tabletmanager/vreplication/mergebackoff

# A caller (a git hook, say) may have pointed git at another repository.
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_OBJECT_DIRECTORY CDPATH
# -trimpath lets the build cache serve a tree that lies in another folder, and
# the trees under .work are no repository whose state belongs in a binary.
# GOWORK: a go.work above the clone must not change what is built.
export GOFLAGS='-buildvcs=false -trimpath' GOWORK=off

# What a commit for Vitess must not name, since it is only here.
# shellcheck disable=SC2034 # used by the scripts that source this file
not_in_vitess='\b(tools/sim|tools/cmd|hooks/|scripts/|make (intree|unit|suite|vitess|sim|bench|demo|lint)|\.work)\b'

# Progress goes to stderr: the last line of stdout is the result of a script.
say() { printf '%s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || die "$tool is needed and was not found on PATH"
  done
}

# take_lock NAME [shared]: one writer, or several readers, until this script
# ends. The kernel drops the lock with the process, however it ends.
take_lock() {
  local fd mode=-x
  [[ ${2:-} == shared ]] && mode=-s
  mkdir -p "$work/lock"
  exec {fd}>>"$work/lock/$1"
  if ! flock -n "$mode" "$fd"; then
    say "Waiting for another run that works on $1 in this clone ..."
    flock "$mode" "$fd"
  fi
}

# supported_versions prints the Vitess versions that have hooks, one a line.
supported_versions() {
  local dir
  for dir in "$repo"/hooks/v*/; do
    [[ -f $dir/hooks.patch || -f $dir/local.patch ]] && basename "$dir"
  done
}

# host_go is go as the user has it, for what is this repository's own: an older
# release line of Vitess may need an older go.
host_toolchain=${GOTOOLCHAIN:-}
host_go() {
  if [[ -n $host_toolchain ]]; then
    GOTOOLCHAIN=$host_toolchain go "$@"
  else
    env -u GOTOOLCHAIN go "$@"
  fi
}

# The release line that everything is about that names none.
default_version=v0.24.4

# vitess_version sets $version from $VITESS, with or without its leading v, and has
# go be the release that this line of Vitess needs, if a newer one does not do.
vitess_version() {
  version=${VITESS:-$default_version}
  version=v${version#v}
  [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ && -d $repo/hooks/$version ]] ||
    die "Vitess ${VITESS:-} is not supported. Supported (VITESS=...): $(supported_versions | paste -sd' ')"
  if [[ -f $repo/hooks/$version/toolchain ]]; then
    GOTOOLCHAIN=$(<"$repo/hooks/$version/toolchain")
    export GOTOOLCHAIN
  fi
}

# build_testreport sets $testreport, which makes test output fit to read.
build_testreport() {
  testreport=$work/host-tools/testreport
  mkdir -p "$work/host-tools" "$work/logs"
  (cd "$repo/tools" && host_go build -o "$testreport" ./cmd/testreport)
}
