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

# Usage: scripts/apt-sources.sh OUTDIR SUITE [ETC_APT]
#
# Writes apt source lists for SUITE into OUTDIR, one file for each entry of the
# host's own lists that is a distribution's main archive. SUITE "-" keeps the
# host's suite. Mirrors, keys and options stay as the host has them: only the
# host knows which mirror it may reach. Entries for security, updates,
# backports and source packages are left out, since SUITE has none of these.
# Several files, because an entry may be a third party's that merely looks
# like the distribution: the caller tries one after another.
set -euo pipefail

out=$1 suite=$2 etc=${3:-/etc/apt}
mkdir -p "$out"

# A suite such as "bookworm" or "noble", not "bookworm-security" and no path.
plain='^[a-z]+$'

# deb822 format: stanzas between empty lines; a value may go on in lines that
# start with a space (a key inside Signed-By, say).
shopt -s nullglob
files=("$etc"/sources.list.d/*.sources)
if ((${#files[@]})); then
  awk -v out="$out" -v suite="$suite" -v plain="$plain" '
    function flush(   i, n, parts, s, found, kept) {
      n = split(suites, parts, /[ \t]+/)
      for (i = 1; i <= n; i++) if (parts[i] ~ plain) { found = 1; kept = kept " " parts[i] }
      if (found && types ~ /(^| )deb( |$)/ && comps ~ /(^| )main( |$)/ && enabled !~ /^(no|false|0)/) {
        s = sprintf("%s/deb822-%02d.sources", out, ++count)
        printf "%sTypes: deb\nSuites:%s\n", body, (suite == "-" ? kept : " " suite) > s
        close(s)
      }
      body = suites = types = comps = enabled = ""; field = ""
    }
    function value(line) { sub(/^[^:]*:[ \t]*/, "", line); sub(/^[ \t]+/, "", line); return line }
    FNR == 1 { flush() }
    /^[ \t]*$/ { flush(); next }
    /^#/ { next }
    !/^[ \t]/ { field = tolower($0); sub(/[ \t]*:.*/, "", field) }
    field == "suites" { suites = suites " " value($0); next }
    field == "types" { types = types " " value($0); next }
    field == "components" { comps = comps " " value($0) }
    field == "enabled" { enabled = tolower(value($0)) }
    { body = body $0 "\n" }
    END { flush() }
  ' "${files[@]}"
fi

# One line an entry: deb [options] URI SUITE COMPONENT...
files=("$etc"/sources.list "$etc"/sources.list.d/*.list)
for file in "${files[@]}"; do
  if [[ -r $file ]]; then cat "$file"; echo; fi
done | awk -v out="$out" -v suite="$suite" -v plain="$plain" '
  $1 != "deb" { next }
  {
    sub(/#.*/, "")
    i = 2
    if ($2 ~ /^\[/) { while (i < NF && $i !~ /\]$/) i++; i++ }
    s = i + 1; main = 0
    for (c = s + 1; c <= NF; c++) if ($c == "main") main = 1
    if ($s !~ plain || !main) next
    if (suite != "-") $s = suite
    f = sprintf("%s/line-%02d.list", out, ++count)
    print > f
    close(f)
  }'
