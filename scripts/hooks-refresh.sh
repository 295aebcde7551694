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

# Usage: scripts/hooks-refresh.sh [-force] [-n]
#
# Takes edits made in .work/vitess-$VITESS back into this repository:
#   - of files of Vitess: hooks/<version>/hooks.patch is written anew,
#   - of files of the package or of hooks/.../files: copied back,
#   - new files: into the package, or into hooks/<version>/files.
# A file that was edited in both places since the last "make vitess" is left
# alone and named; -force takes the tree's. -n only says what would be done.
# Files of the repository that are newer, and unedited in the tree, stay.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$repo/scripts/tree.sh"
need git flock
force='' dry=''
for arg in "$@"; do
  case $arg in
    -force | --force) force=1 ;;
    -n) dry=1 ;;
    *) die "unknown argument $arg (-force, -n)" ;;
  esac
done
vitess_version
tree=$work/vitess-$version
patch=$repo/hooks/$version/hooks.patch
# One line of context is enough to apply, and meets fewer of Vitess's changes.
context=1

[[ -d $tree/.git ]] || die "there is no ${tree#"$repo"/} yet: run make vitess"
take_lock "$(basename "$tree")"
open_tree
tree_git rev-parse -q --verify applied >/dev/null || die "${tree#"$repo"/} is not complete: run make vitess"

# blob TREE PATH prints the hash of a file, or nothing.
blob() { tree_git rev-parse -q --verify "$1:$2" || true; }

# home PATH prints where a file of the tree lives in the repository; nothing for
# a file of Vitess, whose changes live in the patch.
home() {
  local path=$1
  if tree_git cat-file -e "base:$path" 2>/dev/null; then
    return
  elif [[ $path == "$pkg_dir/"* ]]; then
    echo "${path#"$pkg_dir"/}"
  elif [[ -f $repo/hooks/common/files/$path && ! -f $repo/hooks/$version/files/$path ]]; then
    echo "hooks/common/files/$path"
  else
    echo "hooks/$version/files/$path"
  fi
}

present=$(present_tree)
applied=$(tree_git rev-parse 'applied^{tree}')
desired=$(desired_tree applied^) ||
  die "the repository's own hooks are broken (above). Mend them first; the tree's edits are safe where they are."
changed "$applied" "$present" >"$scratch/edited"
if [[ ! -s $scratch/edited ]]; then
  say "Nothing was edited in ${tree#"$repo"/} since the last make vitess."
  if [[ $desired != "$applied" ]]; then say "The repository has newer content: make vitess puts it there."; fi
fi

# $wanted becomes what the repository says, plus the edits that can be taken.
wanted=$scratch/wanted.index
with_index "$wanted" read-tree "$desired"
conflicts=0 saved=0
while IFS= read -r path; do
  was=$(blob "$applied" "$path") now=$(blob "$present" "$path") ours=$(blob "$desired" "$path")
  [[ $now != "$ours" ]] || continue
  name=$(home "$path")
  if [[ $ours != "$was" && -z $force ]]; then
    say "CONFLICT $path: edited in the tree and, since the last make vitess, in ${name:-hooks/$version/hooks.patch}. Not taken (-force takes the tree's)."
    conflicts=1
    continue
  fi
  saved=1
  say "${dry:+would take }$([[ -n $now ]] && echo "edited" || echo "removed")  ${name:-$path (in hooks.patch)}"
  if [[ -z $name ]]; then
    if [[ -n $now ]]; then
      mode=$(tree_git ls-tree "$present" "$path" | cut -d' ' -f1)
      with_index "$wanted" update-index --add --cacheinfo "$mode,$now,$path"
    else
      with_index "$wanted" update-index --force-remove "$path"
    fi
  elif [[ -n $dry ]]; then
    continue
  elif [[ -n $now ]]; then
    mkdir -p "$(dirname "$repo/$name")"
    tree_git cat-file blob "$now" >"$scratch/file"
    [[ ! -x $tree/$path ]] || chmod +x "$scratch/file"
    # Copied, then moved: an interrupted run leaves the old file whole.
    cp -p "$scratch/file" "$repo/$name.new"
    mv "$repo/$name.new" "$repo/$name"
  else
    rm -f "$repo/$name"
  fi
done <"$scratch/edited"

# The patch: what is wanted of Vitess's own files. Anything before its first
# file is a remark by its author, and stays.
wanted_tree=$(with_index "$wanted" write-tree)
{
  [[ ! -f $patch ]] || sed '/^diff --git /,$d' "$patch"
  tree_git diff -U$context --abbrev=12 --no-renames --no-ext-diff --no-color --diff-filter=MDT applied^ "$wanted_tree"
} >"$scratch/hooks.patch"
if ! cmp -s "$scratch/hooks.patch" "$patch"; then
  index=$scratch/proof.index
  with_index "$index" read-tree applied^
  with_index "$index" apply --cached "$scratch/hooks.patch" || die "the new hooks.patch would not apply; nothing was written to it"
  say "${dry:+would write }hooks/$version/hooks.patch ($(grep -c '^diff --git ' "$scratch/hooks.patch") files, $(grep -c '^@@ ' "$scratch/hooks.patch") places)"
  if [[ -z $dry ]]; then
    cp "$scratch/hooks.patch" "$patch.new"
    mv "$patch.new" "$patch"
  fi
fi
if ((saved && !conflicts)) && [[ -z $dry ]]; then say "Saved. Now make vitess brings tree and repository to the same state."; fi
exit $conflicts
