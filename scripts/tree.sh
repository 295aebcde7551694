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

# The three states of a Vitess tree under .work, for vitess.sh (repository to
# tree) and hooks-refresh.sh (tree to repository). To be sourced after lib.sh.
# shellcheck shell=bash
#
# All states are git trees in the repository that the tree itself is:
#   base     the module as it comes, a commit
#   local    base + hooks/<version>/local.patch, a commit
#   desired  local + what this repository holds now, a tree
#   applied  what vitess.sh last put there, a commit on top of local
#   present  what lies in the folder now, edits by hand included, a tree
# $tree is the folder, $version the version; open_tree must have been called.

# The user's own git configuration (line ends, signing, hooks, excludes) must
# not change what is built, and the tree may belong to another user.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=gc.auto GIT_CONFIG_VALUE_1=0
export GIT_CONFIG_KEY_2=core.autocrlf GIT_CONFIG_VALUE_2=false

tree_git() { git -C "$tree" "$@"; }

# open_tree makes a scratch folder, and mends what an interrupted run left.
open_tree() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  # We hold the tree's lock, so this one's owner is dead.
  rm -f "$tree/.git/index.lock"
}

# with_index FILE ARGS...: git in the tree, with an index of its own.
with_index() {
  local index=$1
  shift
  GIT_INDEX_FILE=$index tree_git "$@"
}

# apply_patch INDEX PATCH: to an index; an error names the files.
apply_patch() {
  local index=$1 patch=$2 errors=$scratch/apply.err files
  [[ -s $patch ]] || return 0
  if ! with_index "$index" apply --cached --whitespace=nowarn "$patch" 2>"$errors"; then
    cat "$errors" >&2
    files=$(sed -n -e 's/^error: patch failed: \(.*\):[0-9]*$/\1/p' \
      -e 's/^error: \(.*\): \(does not exist in index\|already exists in index\|patch does not apply\)$/\1/p' "$errors" |
      sort -u | paste -sd' ')
    die "${patch#"$repo"/} does not apply to Vitess $version: ${files:-see above}"
  fi
}

# put_file INDEX PATH FILE: FILE's content at PATH, into an index.
put_file() {
  local mode=100644 hash
  [[ ! -x $3 ]] || mode=100755
  hash=$(tree_git hash-object -w --no-filters "$3")
  with_index "$1" update-index --add --cacheinfo "$mode,$hash,$2"
}

# local_commit prints the commit that is base + local.patch.
local_commit() {
  local index=$scratch/local.index made old
  with_index "$index" read-tree base
  apply_patch "$index" "$repo/hooks/$version/local.patch"
  made=$(with_index "$index" write-tree)
  # The same commit as before if nothing changed, so that HEAD's parent stays.
  if old=$(tree_git rev-parse -q --verify "local^{tree}") && [[ $old == "$made" ]]; then
    tree_git rev-parse local
  else
    tree_git commit-tree -p base -m "Vitess $version, made to run on this machine's MySQL" "$made"
  fi
}

# package_files prints what belongs to the package, relative to the repository.
package_files() {
  (cd "$repo" && find . -maxdepth 1 -name '*.go' -type f ! -name '.*' -printf '%P\n' &&
    { [[ ! -d testdata ]] || find testdata -type f; }) | sort
}

# hook_files prints lines "path<TAB>file" of files to add to the tree. The
# version's own files come after those of all versions, and so replace them.
hook_files() {
  local dir
  for dir in common "$version"; do
    dir=$repo/hooks/$dir/files
    [[ ! -d $dir ]] || find "$dir" -type f ! -name '.*' -printf "%P\t%p\n" | sort
  done
}

# desired_tree COMMIT prints the tree that this repository wants on top of it.
desired_tree() {
  local index=$scratch/desired.index path file
  with_index "$index" read-tree "$1"
  if [[ -f $repo/hooks/$version/hooks.patch ]]; then
    apply_patch "$index" "$repo/hooks/$version/hooks.patch"
  else
    say "warning: hooks/$version/hooks.patch does not exist; the tree will not call the package."
  fi
  while IFS=$'\t' read -r path file; do
    ! tree_git cat-file -e "base:$path" 2>/dev/null ||
      die "${file#"$repo"/} exists in Vitess $version: changes of it belong in hooks/$version/hooks.patch"
    put_file "$index" "$path" "$file"
  done < <(hook_files)
  while read -r file; do
    put_file "$index" "$pkg_dir/$file" "$repo/$file"
  done < <(package_files)
  with_index "$index" write-tree
}

# present_tree prints the tree that lies in the folder.
present_tree() {
  local index=$scratch/present.index
  # A copy of the real index spares reading files that have not changed.
  if [[ -f $tree/.git/index ]]; then cp "$tree/.git/index" "$index"; fi
  with_index "$index" add -A
  with_index "$index" write-tree
}

# changed A B prints the names of the files in which two trees differ.
changed() { tree_git diff-tree -r --no-renames --name-only "$1" "$2" | sort; }
