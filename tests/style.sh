#!/usr/bin/env bash
# style.sh SOURCE_FOLDER: no file has a word for which there is a better one, text ends by column 120, the layout of C
# and C++ is .clang-format's, and shellcheck has nothing to say of the scripts. Without clang-format 14 or shellcheck
# (other versions lay out otherwise) it checks words and text alone and skips the rest: 77.
set -euo pipefail
cd "$1"

# A word, as a regular expression that begins with a letter in lower case, and what to write. Found in text in any case,
# and as a part of names: kPatience, under_way, GCCL_PATIENCE.
words=(
  "patience|a time limit, or backoff"
  "moods?|noise, or other load"
  "offspring|communicators that were split or created"
  "untold|unreported, or many"
  "told|reported, returned, notified or distinguished"
  "under[ _-]?[Ww]ay|pending, or in flight"
  "whoever|a subject: the rank that, the thread that"
  "of one's own|user-defined, private or its own"
  "crowded|oversubscribed"
  "len(t|ds?|ding)|zero-copy, or rendezvous"
  "what [^.:;]{0,90} (is|are|was|were) what|the rule, by subject and verb"
  "(compared|faster|slower|longer|shorter) (is|are) what|the rule, by subject and verb"
)
pattern_of() { echo "(?<![A-Za-z])(?i:$1)(?![a-z])|(?<=[a-z])${1^}(?![a-z])"; }
all=""
for row in "${words[@]}"; do all+=${all:+|}$(pattern_of "${row%|*}"); done
status=0
grep -qP 'a(?=b)' <<<ab 2>/dev/null || { echo "no grep -P"; exit 77; }
# What is the project's own: as git has it, or without git its folders.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  files=(git grep -nIP "$all" -- . ':!tests/style.sh')
else
  files=(grep -rnIP --exclude=style.sh "$all" -- libgccl sim cli pmpi nccl_tuner bench tests examples scripts docs cmake
         cost-models topologies scenarios workloads README.md CONTRIBUTING.md CMakeLists.txt check quickstart)
fi
hits=$("${files[@]}") || status=$?
[ $status -le 1 ] || { echo "the words could not be searched"; exit 1; }
if [ -n "$hits" ]; then
  for row in "${words[@]}"; do
    { grep -P "$(pattern_of "${row%|*}")" <<<"$hits" || true; } | sed "s~\$~  -- write: ${row##*|}~"
  done
  exit 1
fi

# Text of pages ends by column 120: all but tables, quoted blocks and words that are longer.
pages=(README.md CONTRIBUTING.md docs/*.md examples/README.md)
LC_ALL=C awk '
  FNR == 1 { quoted = 0 }
  /^ *```/ { quoted = !quoted }
  quoted || /^(\||<!--)/ { next }
  { line = $0; gsub(/[\200-\277]/, "", line); ++count }  # of a character in UTF-8 the first byte is left
  length(line) > 120 && line ~ / [^ ]+ [^ ]/ { print FILENAME ":" FNR ": ends in column " length(line); bad = 1 }
  END { if (count < 1000) { print "only " count + 0 " lines of text found"; bad = 1 } exit bad }' "${pages[@]}"

for tool in clang-format-14 shellcheck; do
  command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done

mapfile -t sources < <(find libgccl sim cli pmpi nccl_tuner tests bench examples scripts -name build -prune -o \
                         \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' \) -print)
[ ${#sources[@]} -gt 400 ] || { echo "only ${#sources[@]} sources found"; exit 1; }
mapfile -t scripts < <(grep -lIrE '^#!.*[/ ](ba)?sh$' check quickstart .ci scripts tests bench examples --exclude-dir=build)
[ ${#scripts[@]} -ge 12 ] || { echo "only ${#scripts[@]} scripts found"; exit 1; }

failed=0
clang-format-14 --dry-run --Werror "${sources[@]}" || failed=1
shellcheck "${scripts[@]}" || failed=1
[ $failed -eq 0 ] || echo "clang-format-14 -i FILE puts a file right"
exit $failed
