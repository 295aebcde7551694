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

# Makes .work/vitess-$VITESS: Vitess with this repository's package and hooks
# in it, ready to build. STOCK=1 makes .work/vitess-$VITESS-stock, without them.
# The last line of its output is the tree's absolute path.
#
# Running it again changes only files that differ. Edits made in the tree by
# hand and not yet saved with "make hooks-save" go to .work/saved-<time>.patch.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$repo/scripts/tree.sh"
need git go flock
vitess_version
tree=$work/vitess-$version${STOCK:+-stock}

# create: the module's content, writable, as a git repository with one commit.
create() {
  local new=$tree.new answer module
  say "Making a working copy of Vitess $version in ${tree#"$repo"/} (downloads about 20 MB if need be; under a minute) ..."
  rm -rf "$new"
  mkdir -p "$new"
  # Outside this module, whose go.mod may want a newer go than that line has.
  if ! answer=$(cd / && host_go mod download -json "vitess.io/vitess@$version"); then
    printf '%s\n' "$answer" >&2
    die "Vitess $version cannot be had from the Go module proxy (go env GOPROXY), see above"
  fi
  module=$(sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p' <<<"$answer")
  [[ -d $module ]] || die "go mod download named no folder for Vitess $version"
  cp -R "$module/." "$new"
  chmod -R u+w,a+rX "$new"
  git -C "$new" init -q -b work
  git -C "$new" config user.name 'Vitess tree'
  git -C "$new" config user.email vitess-tree@localhost
  # -f: the module holds files that its own .gitignore names.
  git -C "$new" add -A -f
  git -C "$new" commit -q -m "Vitess $version, as it comes"
  git -C "$new" tag base
  # Moved only when complete: what has this name can be relied upon.
  mv "$new" "$tree"
}

# save_edits DESIRED PRESENT: what the update would lose goes into a patch.
save_edits() {
  local desired=$1 present=$2 applied other lost=$scratch/lost patch
  applied=$(tree_git rev-parse -q --verify 'applied^{tree}') || applied=$(tree_git rev-parse 'base^{tree}')
  changed "$applied" "$present" >"$lost"
  # A file that is as it shall become loses nothing, nor does one that an
  # interrupted run has written already.
  for other in "$desired" "$(tree_git rev-parse -q --verify pending || true)"; do
    [[ -n $other ]] || continue
    changed "$other" "$present" | comm -12 "$lost" - >"$lost.new"
    mv "$lost.new" "$lost"
  done
  [[ -s $lost ]] || return 0
  patch=$work/saved-$(date +%Y%m%d-%H%M%S).patch
  xargs -d '\n' git -C "$tree" diff --binary "$applied" "$present" -- <"$lost" >"$patch"
  say "warning: these files in ${tree#"$repo"/} were edited by hand, and not saved by 'make hooks-save':"
  sed 's/^/  /' "$lost" >&2
  say "They now become what this repository says. The edits are in ${patch#"$repo"/}."
}

update() {
  local base_local desired present
  base_local=$(local_commit)
  if [[ -n ${STOCK:-} ]]; then
    desired=$(tree_git rev-parse "$base_local^{tree}")
  else
    desired=$(desired_tree "$base_local")
  fi
  present=$(present_tree)
  if [[ $present == "$desired" ]]; then
    # Also after a run that was interrupted between content and index.
    cp "$scratch/present.index" "$tree/.git/index"
  else
    save_edits "$desired" "$present"
    tree_git update-ref refs/tags/pending "$desired"
    # Only what differs is written, so that modification times stay.
    cp "$scratch/present.index" "$tree/.git/index"
    tree_git read-tree -m -u "$present" "$desired"
    say "Changed in ${tree#"$repo"/}:"
    changed "$present" "$desired" | awk 'NR <= 20 { print "  " $0 } END { if (NR > 20) print "  and " NR - 20 " more" }' >&2
  fi
  tree_git update-ref refs/tags/local "$base_local"
  if [[ $(tree_git rev-parse -q --verify 'applied^{tree}') != "$desired" ||
    $(tree_git rev-parse -q --verify 'applied^') != "$base_local" ]]; then
    tree_git update-ref refs/tags/applied \
      "$(tree_git commit-tree -p "$base_local" -m "As this repository wants it" "$desired")"
  fi
  # So that "git diff" in the tree shows the edits made since.
  tree_git symbolic-ref HEAD refs/heads/work
  tree_git update-ref refs/heads/work applied
}

take_lock "$(basename "$tree")"
if [[ ! -e $tree ]]; then
  create
elif ! tree_git rev-parse -q --verify base >/dev/null 2>&1; then
  aside=$work/saved-tree-$(date +%Y%m%d-%H%M%S)
  say "warning: ${tree#"$repo"/} was not made by this script or lost its .git; moved to ${aside#"$repo"/}"
  mv "$tree" "$aside"
  create
fi
open_tree
update
echo "$tree"
