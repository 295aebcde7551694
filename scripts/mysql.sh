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

# Finds a MySQL that Vitess can run on, or brings one into .work/mysql.
# The last line of its output is the prefix to use as VT_MYSQL_ROOT.
#
# Order: $VT_MYSQL_ROOT; a mysqld on PATH; the one of an earlier run; a new one
# from the host's package mirror. That one is unpacked, never installed: it is
# newer than the host and comes with its own libc, so that nothing on the host
# changes and no root is needed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prefix=$work/mysql
download=$work/mysql-download
# What Vitess starts, and what needs the prefix's own loader and libraries.
programs=(mysqld mysql mysqladmin mysqlbinlog mysqldump my_print_defaults)

# find_program ROOT NAME prints the path of a program below ROOT, where Vitess looks.
find_program() {
  local dir
  for dir in sbin bin libexec; do
    if [[ -x $1/$dir/$2 ]]; then
      echo "$1/$dir/$2"
      return
    fi
  done
  return 1
}

# judge ROOT: 0 if it holds a MySQL that Vitess runs on. $found says what it holds.
judge() {
  local mysqld version major tool
  if ! mysqld=$(find_program "$1" mysqld); then
    found="no mysqld in $1/sbin or $1/bin"
    return 1
  fi
  if ! version=$("$mysqld" --no-defaults --version 2>&1); then
    found="$mysqld, which does not run: $(head -n 1 <<<"$version")"
    return 1
  fi
  found=$version
  [[ $version != *MariaDB* && $version =~ Ver\ ([0-9]+)\. ]] || return 1
  major=${BASH_REMATCH[1]}
  ((major >= 8)) || return 1
  # Vitess also needs the client, to load its initial schema.
  for tool in mysql mysqlbinlog; do
    if ! find_program "$1" "$tool" >/dev/null; then
      found="$version, but no $tool in $1/bin"
      return 1
    fi
  done
  # --version needs few of the libraries; the help loads what a start loads.
  if ! "$mysqld" --no-defaults --user="$(id -un)" --verbose --help >/dev/null 2>&1; then
    found="$mysqld, which fails at --verbose --help"
    return 1
  fi
}

finish() {
  say "MySQL: $found"
  echo "$1"
  exit 0
}

by_hand() {
  die "$1
Install MySQL 8.0 or newer (server, client, mysqlbinlog) yourself and run this again:
  - with its mysqld on PATH, or
  - with VT_MYSQL_ROOT=<prefix>, such that <prefix>/bin or <prefix>/sbin holds mysqld.
The packages are called mysql-server and mysql-client, or mysql-community-server and
mysql-community-client. MariaDB does not do."
}

# private_apt SOURCES ARGS...: apt with lists, caches and a status of its own
# below $download, so that it needs no root and leaves the host's alone.
# SOURCES "" takes the host's own lists.
private_apt() {
  local sources=$1 name
  shift
  name=$(basename "${sources:-host}")
  local state=$download/$name
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  : >>"$state/status"
  local options=(
    -o "Dir::State::Lists=$state/lists" -o "Dir::State::status=$state/status"
    -o "Dir::State::extended_states=$state/extended_states"
    -o "Dir::Cache::archives=$state/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o Debug::NoLocking=1 -o APT::Sandbox::User= -o APT::Install-Recommends=0
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=3 -o APT::Get::List-Cleanup=0
    -o "Dir::Log=$state" -o Dpkg::Use-Pty=0
  )
  [[ -z $sources ]] || options+=(-o "Dir::Etc::sourcelist=$sources" -o Dir::Etc::sourceparts=-)
  "${apt_program:-apt-get}" -q "${options[@]}" "$@"
}

# bring_patchelf sets $patchelf, unpacking it from the host's own suite if missing.
bring_patchelf() {
  if patchelf=$(command -v patchelf); then
    return
  fi
  patchelf=$work/host-tools/usr/bin/patchelf
  if [[ ! -x $patchelf ]]; then
    say "Fetching patchelf from the host's own package lists (a minute at most) ..."
    private_apt "" update >&2
    private_apt "" install -y --download-only --reinstall patchelf >&2 || return 1
    rm -rf "$work/host-tools.new"
    dpkg -x "$download"/host/archives/patchelf_*.deb "$work/host-tools.new"
    rm -rf "$work/host-tools"
    mv "$work/host-tools.new" "$work/host-tools"
  fi
  "$patchelf" --version >/dev/null
}

# patch_programs DIR: makes the programs in DIR use the loader and the
# libraries that will lie in $prefix. The loader's path must be absolute.
patch_programs() {
  local dir=$1 name path loader
  for name in "${programs[@]}"; do
    path=$(find_program "$dir/usr" "$name") || { say "The packages hold no $name."; return 1; }
    # In what is already patched the name of the loader's file is still right.
    loader=$(basename "$("$patchelf" --print-interpreter "$path")")
    # DT_RPATH, not RUNPATH: it must also hold for the libraries' own libraries.
    "$patchelf" --force-rpath --set-rpath "\$ORIGIN/../lib/$triplet" \
      --set-interpreter "$prefix/usr/lib/$triplet/$loader" "$path"
  done
}

# unpack DIR: every downloaded package into one prefix.
unpack() {
  local dir=$1 deb n=0 debs=("$archives"/*.deb)
  mkdir -p "$dir"
  say "Unpacking ${#debs[@]} packages ..."
  for deb in "${debs[@]}"; do
    dpkg -x "$deb" "$dir"
    ((++n % 20)) || say "  $n of ${#debs[@]}"
  done
}

# download_mysql sets $archives: a folder with all packages of one MySQL.
download_mysql() {
  local suite=unstable candidates id id_like source server
  # shellcheck disable=SC1091
  id=$(. /etc/os-release && echo "${ID:-}") id_like=$(. /etc/os-release && echo "${ID_LIKE:-}")
  # Debian has MySQL in unstable only. Ubuntu has it in every suite, and no unstable.
  if [[ " $id $id_like " == *" ubuntu "* ]]; then
    suite=-
  elif [[ " $id $id_like " != *" debian "* ]]; then
    by_hand "No MySQL on PATH, and this script can bring one on Debian and Ubuntu only (this is ${id:-unknown})."
  fi
  candidates=$download/sources
  rm -rf "$candidates"
  "$repo/scripts/apt-sources.sh" "$candidates" "$suite"
  for source in "$candidates"/*; do
    [[ -f $source ]] || break
    say "Reading the package list for MySQL (suite ${suite/#-/of the host}) ..."
    private_apt "$source" update >&2 || continue
    for server in mysql-server-core mysql-server-core-8.4 mysql-server-core-8.0; do
      apt_program=apt-cache private_apt "$source" show "$server" >/dev/null 2>&1 || continue
      say "Downloading $server and what it needs: about 65 MB, a minute on a good line ..."
      private_apt "$source" install -y --download-only "$server" "${server/server/client}" >&2 || continue
      archives=$download/$(basename "$source")/archives
      return
    done
  done
  by_hand "No MySQL on PATH, and none of the host's package sources (/etc/apt) offers mysql-server-core."
}

main() {
  local mysqld new marker=$prefix/.complete
  if [[ -n ${VT_MYSQL_ROOT:-} ]]; then
    judge "$VT_MYSQL_ROOT" && finish "$VT_MYSQL_ROOT"
    die "VT_MYSQL_ROOT=$VT_MYSQL_ROOT does not hold a MySQL 8.0 or newer that runs.
Found: $found
Point it to another prefix, or unset it to let this script look for itself."
  fi
  if mysqld=$(command -v mysqld); then
    mysqld=$(dirname "$(dirname "$(readlink -f "$mysqld")")")
    judge "$mysqld" && finish "$mysqld"
    say "Passing over the mysqld on PATH. Vitess needs MySQL 8.0 or newer; found: $found"
  fi

  take_lock mysql
  triplet=$(uname -m)-linux-gnu
  if [[ -f $marker ]]; then
    judge "$prefix/usr" && finish "$prefix/usr"
    # The loader's path is absolute: a clone that was moved is patched anew.
    say "The MySQL in $prefix does not run; adjusting it to this folder ..."
    if bring_patchelf && patch_programs "$prefix" && judge "$prefix/usr"; then
      finish "$prefix/usr"
    fi
    say "That did not help; bringing it again."
  fi

  say "No MySQL here yet: bringing one into ${prefix#"$repo"/} (about 65 MB, one to three minutes)."
  for tool in apt-get apt-cache dpkg; do
    command -v "$tool" >/dev/null || by_hand "No MySQL on PATH, and without $tool this script cannot bring one."
  done
  mkdir -p "$download"
  download_mysql
  bring_patchelf || by_hand "patchelf is needed to run an unpacked MySQL, and could not be had. Install it, or:"

  # Built aside and moved at the end: an interrupted run leaves nothing that
  # looks complete. Old left-overs are ours to remove, since we hold the lock.
  new=$work/mysql.new
  rm -rf "$new"
  unpack "$new"
  patch_programs "$new"
  # mysqld runs as another user than the one who unpacked it.
  chmod -R a+rX "$new"
  touch "$new/.complete"
  rm -rf "$prefix"
  mv "$new" "$prefix"
  judge "$prefix/usr" || die "the MySQL that was brought does not run: $found"
  rm -rf "$download"
  finish "$prefix/usr"
}

main
