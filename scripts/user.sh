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

# Runs programs as an unprivileged user if the caller is root, since Vitess and
# MySQL refuse to run as root. To be sourced after lib.sh.
# shellcheck shell=bash

# choose_user FILE PROGRAM...: sets $as_user, words to put before a command,
# and $owner, such that this user can read FILE and run each PROGRAM.
choose_user() {
  local name=mergebackoff cap
  as_user=() owner=$(id -un)
  [[ $(id -u) == 0 ]] || return 0
  need setpriv
  if ! id "$name" >/dev/null 2>&1; then
    say "Creating the system user $name, since mysqld refuses to run as root."
    useradd --system --no-create-home --shell /usr/sbin/nologin "$name" >&2 || name=nobody
  fi
  owner=$name
  # A clone below a private directory (root's home, say) can be entered with a
  # capability: cheaper and safer than copies, or opening the directory to all.
  # Containers often have only the second one.
  for cap in none dac_read_search dac_override; do
    as_user=(setpriv --reuid "$(id -u "$name")" --regid "$(id -g "$name")" --clear-groups)
    [[ $cap == none ]] || as_user+=(--inh-caps "+$cap" --ambient-caps "+$cap")
    can_use "$@" 2>/dev/null && return
  done
  die "user $name cannot read $1 or run one of ${*:2}. Move the clone out of private directories, or run this as an ordinary user."
}

# can_use FILE PROGRAM...: really tries, because access(2) disregards capabilities.
can_use() {
  local program
  "${as_user[@]}" head -c 1 "$1" >/dev/null || return 1
  for program in "${@:2}"; do
    # 126 and 127: could not be started. Anything else is the program's own.
    # A test of Vitess that finds a mysqld starts it, whatever its arguments are,
    # and would leave it behind.
    VT_MYSQL_ROOT=/nonexistent "${as_user[@]}" "$program" --version >/dev/null 2>&1 || (($? < 126)) || return 1
  done
}

# stop_below DIR: ends what has DIR, the data folder of one run of ours, in its
# command line or as its VTDATAROOT: the mysqlds of a test that could not stop
# them itself, and the test, if its run was killed.
stop_below() {
  local dir=$1 pid pids try
  for try in {1..100}; do
    pids=()
    for pid in /proc/[0-9]*; do
      pid=${pid#/proc/}
      [[ $pid != "$$" && $pid != "$BASHPID" ]] || continue
      # It may be gone by now, which is what we want.
      if grep -qsF "$dir/" "/proc/$pid/cmdline" || grep -qsF "VTDATAROOT=$dir" "/proc/$pid/environ"; then
        pids+=("$pid")
      fi
    done
    ((${#pids[@]})) || return 0
    if ((try == 1)); then kill -TERM "${pids[@]}" 2>/dev/null || true; fi
    if ((try == 99)); then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
    sleep 0.1
  done
}
