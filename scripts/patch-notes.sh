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

# Puts the release note, upstream/release-notes.md, into the summary of the release
# that is to come. Its first line is an anchor and a title. To be sourced by patch.sh.
# shellcheck shell=bash

# set_notes RELEASE sets $notes, the summary, and $next, its release: of a line
# that is released the next patch release; of a snapshot the release itself.
set_notes() {
  local major minor patch
  IFS=. read -r major minor patch <<<"${1%%-*}"
  [[ $1 == *-SNAPSHOT ]] || patch=$((patch + 1))
  next=$major.$minor.$patch
  notes=changelog/$major.$minor/$next/summary.md
}

# write_notes prints the new content of the summary.
write_notes() {
  local anchor title body
  IFS=$'\t' read -r anchor title < <(sed -n '1s/: /\t/p' "$repo/upstream/release-notes.md")
  body=$(sed '1,2d' "$repo/upstream/release-notes.md")
  if ! tree_git cat-file -e "base:$notes" 2>/dev/null; then
    printf '# Release of Vitess v%s\n\n## Summary\n\n### %s\n\n%s\n' "$next" "$title" "$body"
  elif tree_git show "base:$notes" | grep -q '^- \*\*\[Minor Changes\]'; then
    tree_git show "base:$notes" | insert_note "$anchor" "$title" "$body"
  else
    # The summary of a patch release has no table of contents.
    tree_git show "base:$notes"
    printf '\n### %s\n\n%s\n' "$title" "$body"
  fi
}

# insert_note ANCHOR TITLE BODY adds a note to a summary with a table of contents,
# as the first of VReplication's minor changes.
insert_note() {
  NOTE_ANCHOR=$1 NOTE_TITLE=$2 NOTE_BODY=$3 awk '
    BEGIN {
      entry = "        - [" ENVIRON["NOTE_TITLE"] "](#" ENVIRON["NOTE_ANCHOR"] ")"
      note = "\n#### <a id=\"" ENVIRON["NOTE_ANCHOR"] "\"/>" ENVIRON["NOTE_TITLE"] "</a>\n\n" ENVIRON["NOTE_BODY"]
      contents = "    - **[VReplication](#minor-changes-vreplication)**"
      heading = "### <a id=\"minor-changes-vreplication\"/>VReplication</a>"
    }
    { lines[NR] = $0; if ($0 == contents) listed = NR; if ($0 == heading) headed = NR
      if ($0 ~ /^- \*\*\[Minor Changes\]/) minor = NR
      if ($0 ~ /^## <a id="minor-changes"\/>/) minor_heading = NR }
    END {
      for (i = 1; i <= NR; i++) {
        print lines[i]
        if (i == listed || i == minor && !listed) print (listed ? "" : contents "\n") entry
        if (i == headed || i == minor_heading && !headed) print (headed ? "" : "\n" heading "\n") note
      }
    }'
}
