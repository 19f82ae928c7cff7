#!/usr/bin/env bash
# readme_sample.sh GCCL SOURCE_FOLDER: scenarios/allreduce-2048.json holds on the model engine, and README has what it
# prints. README leaves out columns of tables, lines ("..."), and where in the scenario an expectation stands.
set -euo pipefail
gccl=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source"
"$gccl" run scenarios/allreduce-2048.json --engine model --jobs 2 >"$folder/printed" || { cat "$folder/printed"; exit 1; }
awk '/^```text$/ && !seen { inside = 1; next } /^```$/ && inside { inside = 0; seen = 1 } inside' README.md >"$folder/sample"

# Each cell of a table is one line: heading, size, column, cell. Columns are two blanks apart.
cells='
  /^  bytes / { columns = split($0, column, "  +"); for (i = 2; i <= columns; ++i) sub(/^ /, "", column[i]); table = 1; next }
  table && /^  / {
    fields = split($0, field, "  +")
    for (i = 3; i <= fields; ++i) {
      cell = heading ": " field[2] ", " column[i] ": " field[i]
      if (FILENAME == printed) has[cell]; else { ++count; if (!(cell in has)) { print "README has " cell; bad = 1 } }
    }
    next
  }
  { table = 0 }
  /, [0-9]+ ranks, / { heading = $0 }
  !NF || $0 == "..." { next }
  FILENAME == printed { sub(/  \[\/.*\]$/, ""); line[$0]; next }
  { ++count; if (!($0 in line)) { print "README has " $0; bad = 1 } }
  END { if (count < 30) { print "only " count + 0 " cells and lines of a sample found in README"; bad = 1 } exit bad }'
awk -v printed="$folder/printed" "$cells" "$folder/printed" "$folder/sample"
