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

# Usage: scripts/patch.sh [-author "NAME <EMAIL>"]
#
# Writes one commit for Vitess, as git format-patch does: for the version VITESS
# or, with VITESS_DIR=path, on top of HEAD of that checkout (or of a folder as it
# is), which is only read. The last line of its output is the patch's path.
#
# In the commit: the package with its tests and testdata, the adapter, the hooks
# with the flag's new default, the tests in package vreplication, and from
# upstream/ a README of the package, the release note and the message. Left out:
#   - go.mod and go.sum, since the package is part of Vitess's module there,
#   - hooks/<version>/local.patch, which is for this machine's MySQL,
#   - merge_backoff_bench*_test.go, the benchmark: it guards nothing and needs
#     minutes and scripts/bench.sh,
#   - tools: the simulator, the demo and the cluster that they run on.
#
# The author, who signs off, is git's (user.name and user.email), or else that of
# this repository's last commit. The same content makes the same patch.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need git go
author=
while (($#)); do
  case $1 in
    -author) author=${2:?-author needs a name and an address}; shift ;;
    *) die "unknown argument $1 (-author \"NAME <EMAIL>\")" ;;
  esac
  shift
done
# With the user's configuration, which tree.sh switches off.
if [[ -z $author ]] && ! author=$(git -C "$repo" -c user.useConfigOnly=true var GIT_AUTHOR_IDENT 2>/dev/null); then
  author=$(git -C "$repo" log -1 --format='%an <%ae>' 2>/dev/null) ||
    die "who signs the commit off? Set git's user.name and user.email, or give -author \"NAME <EMAIL>\""
  say "git has no user.name and user.email: the author is that of this repository's last commit, $author."
fi
[[ $author =~ ^([^<>]+)\ \<([^<>\ ]+@[^<>\ ]+)\> ]] || die "not a name and an address: $author"
name=${BASH_REMATCH[1]} email=${BASH_REMATCH[2]}
. "$repo/scripts/tree.sh"
. "$repo/scripts/patch-notes.sh"

# open_base makes $tree, a repository that borrows the objects of the version's
# tree or of the checkout, and sets $version, $base and $label.
open_base() {
  local objects release made dir
  tree=$work/patch
  open_tree
  tree=$scratch/repo
  git init -q --bare "$tree"
  if [[ -z ${VITESS_DIR:-} ]]; then
    vitess_version
    label=$version
    made=$(STOCK='' "$repo/scripts/vitess.sh" | tail -n 1)
    objects=$(cd "$made" && git rev-parse --path-format=absolute --git-path objects)
    base=$(git -C "$made" rev-parse base)
  else
    [[ -f $VITESS_DIR/go/vt/servenv/version.go ]] || die "VITESS_DIR=$VITESS_DIR is no checkout of Vitess: it has no go/vt/servenv/version.go"
    dir=$(cd "$VITESS_DIR" && pwd -P)
    label=$(basename "$dir")
    if [[ $(git -C "$dir" rev-parse --show-toplevel 2>/dev/null) == "$dir" ]]; then
      objects=$(git -C "$dir" rev-parse --path-format=absolute --git-path objects)
      base=$(git -C "$dir" rev-parse HEAD)
      [[ -z $(git -C "$dir" status --porcelain) ]] || say "$dir has changes that are not committed. They are not looked at."
    else
      objects=
      git --git-dir="$tree" --work-tree="$dir" add -A -f
      base=$(tree_git commit-tree -m "Vitess, as it lies there" "$(tree_git write-tree)")
    fi
  fi
  [[ -z $objects ]] || echo "$objects" >"$tree/objects/info/alternates"
  tree_git update-ref refs/tags/base "$base"
  release=$(tree_git show base:go/vt/servenv/version.go | sed -n 's/.*versionName = "\(.*\)"/\1/p')
  [[ -n $release ]] || die "what version is it? base:go/vt/servenv/version.go does not say"
  set_notes "$release"
  [[ -z ${VITESS_DIR:-} ]] || line_of "$release"
}

# line_of RELEASE sets $version to the hooks to use: those of the same release
# line or, for what is newer than all of them, the newest.
line_of() {
  local major=${1%%.*} one newest
  version=
  newest=$(supported_versions | sort -V | tail -n 1)
  for one in $(supported_versions); do
    [[ $one != v0."$major".* ]] || version=$one
  done
  if [[ -z $version ]]; then
    ((major > $(cut -d. -f2 <<<"$newest"))) || die "there are no hooks for Vitess $1. Supported: $(supported_versions | paste -sd' ')"
    version=$newest
    say "There are no hooks for Vitess $1 yet. Trying those of $version."
  fi
}

# in_patch PATH: whether a file of this repository is for Vitess.
in_patch() { [[ $1 != */merge_backoff_bench*_test.go ]]; }

# put_go_file INDEX PATH FILE. A build tag for Go 1.25 says nothing to a tree
# whose go.mod wants that anyway.
put_go_file() {
  local file=$3
  if ((go_minor >= 25)) && [[ $(head -n 1 "$file") == '//go:build go1.25' ]]; then
    sed '1,2d' "$file" >"$scratch/file"
    file=$scratch/file
  fi
  put_file "$1" "$2" "$file"
}

# patch_tree prints the tree that the commit leads to.
patch_tree() {
  local index=$scratch/patch.index path file go_minor
  go_minor=$(tree_git show base:go.mod | sed -n 's/^go 1\.\([0-9]*\).*/\1/p')
  with_index "$index" read-tree base
  apply_patch "$index" "$repo/hooks/$version/hooks.patch"
  while IFS=$'\t' read -r path file; do
    in_patch "$path" || continue
    ! tree_git cat-file -e "base:$path" 2>/dev/null || die "$path exists in that Vitess already"
    put_go_file "$index" "$path" "$file"
  done < <(hook_files)
  while read -r file; do
    put_go_file "$index" "$pkg_dir/$file" "$repo/$file"
  done < <(package_files)
  put_file "$index" "$pkg_dir/README.md" "$repo/upstream/README.md"
  write_notes >"$scratch/notes"
  put_file "$index" "$notes" "$scratch/notes"
  with_index "$index" write-tree
}

# check_names TREE refuses what would name things that Vitess does not have.
check_names() {
  local found
  found=$(tree_git diff -U0 --no-color base "$1" |
    sed -n 's/^+++ b\///p; s/^+\([^+].*\)/  \1/p' |
    grep -E "$not_in_vitess" || true)
  [[ -z $found ]] || die "the commit would name what is not in Vitess:"$'\n'"$found"
}

when=$(git -C "$repo" log -1 --format=%aI 2>/dev/null) || when=$(date -Iseconds)
export GIT_AUTHOR_NAME=$name GIT_AUTHOR_EMAIL=$email GIT_AUTHOR_DATE=$when
export GIT_COMMITTER_NAME=$name GIT_COMMITTER_EMAIL=$email GIT_COMMITTER_DATE=$when

open_base
[[ -f $repo/hooks/$version/hooks.patch ]] || die "hooks/$version/hooks.patch does not exist: there is nothing to put into Vitess $version yet"
made=$(patch_tree)
check_names "$made"
git interpret-trailers --trailer "Signed-off-by: $name <$email>" "$repo/upstream/message.txt" >"$scratch/message"
commit=$(tree_git commit-tree -p base -F "$scratch/message" "$made")
out=$work/patch/$label
rm -rf "$out"
mkdir -p "$out"
tree_git format-patch -q -1 --full-index --no-renames --zero-commit --no-signature -o "$out" "$commit"
say "$(tree_git diff --shortstat base "$made" | sed 's/^ //'), on top of $label:"
tree_git diff --no-renames --numstat base "$made" | awk -v pkg="$pkg_dir" '
  { kind = $3 ~ pkg "/testdata" ? "testdata" : $3 ~ /_test\.go$/ ? "tests" : index($3, pkg) == 1 ? "the package" : \
    $3 ~ /merge_backoff/ ? "the adapter" : $3 ~ /^changelog/ ? "release note" : "hooks"
    files[kind]++; lines[kind] += $1 }
  END { for (kind in files) printf "  %-13s %3d files, %5d lines\n", kind, files[kind], lines[kind] }' | sort >&2
# For patch-check.sh: whose local.patch and which tree belong to it.
echo "$version" >"$out/line"
echo "$out"/*.patch
