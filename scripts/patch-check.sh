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

# Usage: scripts/patch-check.sh [-quick]
#
# Proves that what scripts/patch.sh writes is fit for a pull request, in a pristine
# tree of the version VITESS, .work/patch/tree-<version>, or a clone of VITESS_DIR:
# it applies with git am, builds, is formatted, passes Vitess's own linters and its
# test of the flags' texts, changes nothing of the wire or of _vt, and passes the
# package's tests and, without -quick, all tests of package vreplication on a real
# MySQL (about twelve minutes). For those alone hooks/<version>/local.patch is
# applied on top.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$repo/scripts/checks.sh"
need git go
quick=
case ${1:-} in
  '') ;;
  -quick) quick=1 ;;
  *) die "unknown argument $1 (-quick)" ;;
esac
unset STOCK RUN

say "Writing the patch ..."
patch=$("$repo/scripts/patch.sh" | tail -n 1)
label=$(basename "$(dirname "$patch")")
tree=$work/patch/tree-$label
package=go/vt/vttablet/tabletmanager/vreplication
line=$(<"$(dirname "$patch")/line")
# The Go that the line needs.
VITESS=$line vitess_version

# pristine makes $tree: the version or the checkout as it comes, a commit.
pristine() {
  local from=$work/vitess-$line commit=base
  if [[ -n ${VITESS_DIR:-} ]]; then from=$(cd "$VITESS_DIR" && pwd -P) commit=HEAD; fi
  # Kept where it can be, since the compiler knows files by their times.
  if [[ ! -d $tree/.git ]] || ! git -C "$tree" reset -q --hard pristine 2>/dev/null || ! git -C "$tree" clean -qfd; then
    rm -rf "$tree"
    mkdir -p "$tree"
    git -C "$tree" init -q
  fi
  if [[ $(git -C "$from" rev-parse --show-toplevel 2>/dev/null) == "$from" ]]; then
    git -C "$tree" fetch -q --depth 1 "file://$from" "$commit"
    git -C "$tree" checkout -q --detach FETCH_HEAD
  else
    cp -R "$from/." "$tree"
    git -C "$tree" add -A -f
    as_committer git -C "$tree" commit -q -m "Vitess, as it lies there"
  fi
  git -C "$tree" tag -f pristine >/dev/null
}

as_committer() { GIT_COMMITTER_NAME=check GIT_COMMITTER_EMAIL=check@localhost "$@"; }

# The user's own configuration must not help, or hinder.
export GIT_CONFIG_GLOBAL=$work/patch/gitconfig GIT_CONFIG_NOSYSTEM=1
printf '[safe]\n\tdirectory = *\n[core]\n\tautocrlf = false\n[gc]\n\tauto = 0\n' >"$GIT_CONFIG_GLOBAL"

changed_files() { git -C "$tree" diff --no-renames --name-only --diff-filter="${1:-ACMRT}" pristine; }

# signed_off: the DCO wants the author's own name.
signed_off() {
  local author
  author=$(git -C "$tree" log -1 --format='%an <%ae>')
  [[ $(git -C "$tree" log -1 --format='%(trailers:key=Signed-off-by,valueonly)') == "$author" ]] || echo "not signed off by $author"
}

# wire prints what of the protocols and of the sidecar database has changed.
wire() { changed_files | grep -E '^proto/|^go/vt/proto/|^go/vt/sidecardb/|\.proto$|^go/vt/vtctl/|^go/cmd/vtctldclient/|^web/' || true; }

requirements() { changed_files | grep -E '(^|/)go\.(mod|sum)$' || true; }

# lint runs Vitess's own linters with its own settings on what has changed. Their
# version is the one that its CI runs; up to v22 that is too old for this Go.
lint() {
  local version major linter
  version=$(sed -n -e '/golangci-lint-action/,/version:/s/.* version: \(v.*\)/\1/p' -e 's/.*golangci-lint@\(v[0-9.]*\)$/\1/p' "$tree/.github/workflows/static_checks_etc.yml" | head -n 1)
  [[ $version == v2.[0-8].* || -z $version ]] && version=v2.9.0
  if [[ $version != v2.* ]]; then
    say "  skipped golangci-lint: the settings of this line are for $version, which this Go cannot build"
    return
  fi
  linter=$(install_tool github.com/golangci/golangci-lint/v2/cmd/golangci-lint "$version")
  mapfile -t packages < <(changed_files | grep '\.go$' | xargs -n 1 dirname | sort -u | sed 's/^/.\//')
  check "golangci-lint $version, as Vitess sets it up" quiet in_dir "$tree" "$linter" run --new-from-rev=pristine --timeout 15m "${packages[@]}"
}

# build_program NAME, into the folder where the test of the flags looks.
build_program() { (cd "$tree" && go build -o "$programs/$1" "./go/cmd/$1"); }

flags() { PATH="$programs:$PATH" go -C "$tree" test ./go/flags/endtoend -run '^TestHelpOutput$/^(vttablet|vtcombo)$' -count=1; }

take_lock "patch-$label"
say "Making a pristine tree of $label ..."
pristine
say "Checking $(basename "$patch") there: five minutes if Vitess is compiled$([[ -n $quick ]] || echo ", and twelve for the tests on MySQL") ..."
check "git am, without a warning about white space" as_committer git -C "$tree" am -q --whitespace=error-all "$patch"
((status == 0)) || exit 1
check "signed off by its author" signed_off
check "no change of proto, of _vt, of vtctl or of VTAdmin" wire
mapfile -t go_files < <(changed_files | grep '\.go$')
check "license header (${#go_files[@]} files)" in_dir "$tree" grep -L 'Copyright .* The Vitess Authors' "${go_files[@]}"
gofumpt=$(install_tool mvdan.cc/gofumpt "$gofumpt_version")
goimports=$(install_tool golang.org/x/tools/cmd/goimports "$goimports_version")
check gofumpt in_dir "$tree" "$gofumpt" -l "${go_files[@]}"
check "goimports -local vitess.io/vitess" in_dir "$tree" "$goimports" -local vitess.io/vitess -l "${go_files[@]}"
check "no new dependency" requirements
programs=$work/patch/bin-$label
mkdir -p "$programs"
check "vttablet builds" build_program vttablet
check "vtcombo builds" build_program vtcombo
check "go vet" in_dir "$tree" go vet ./go/vt/vttablet/common/... "./$package/..."
check "the flags' texts are as Vitess's test wants them" quiet flags
lint
check "the package's tests" quiet in_dir "$tree" go test "./$package/mergebackoff/..." ./go/vt/vttablet/common/...
if [[ -z $quick ]]; then
  git -C "$tree" apply "$repo/hooks/$line/local.patch"
  # On the screen as it goes, since it takes a while.
  if VITESS=$line "$repo/scripts/intree.sh" -tree "$tree" >&2; then
    say "  ok      all tests of vreplication on a real MySQL"
    ((++passed))
  else
    check "all tests of vreplication on a real MySQL" false
  fi
fi
write_summary patch
((status == 0)) || die "the patch is not fit: ${#failed[@]} of $((passed + ${#failed[@]})) checks failed"
say "All $passed checks passed."
echo "$patch"
