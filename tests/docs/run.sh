#!/usr/bin/env bash
# Types every command block (```sh) of README.md, CONTRIBUTING.md, docs/*.md and examples/README.md, page by page, in a
# copy of the repository whose build folder is this one, with a home of its own. A block below an HTML comment
# "<!-- not run: WHY -->" is listed instead; each line of a ```text block below "<!-- printed -->" is one that the
# page's commands print. Also: every `gccl VERB` anywhere in the text is a verb that there is, with options that it has,
# every `build/release/PROGRAM` and `scripts/PROGRAM` is one, and every link leads somewhere.
#   run.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
[ ! -e "$build/install_manifest.txt" ] || cp "$build/install_manifest.txt" "$work/manifest"
trap 'rm -f "$build/install_manifest.txt"; [ ! -e "$work/manifest" ] || cp "$work/manifest" "$build/install_manifest.txt"; rm -rf "$work"' EXIT
mkdir -p "$work/repository/build" "$work/home"
(cd "$source" && tar --exclude=./build* --exclude=./.git -cf - .) | tar -C "$work/repository" -xf -
ln -s "$build" "$work/repository/build/release"
cd "$work/repository"
pages=(README.md CONTRIBUTING.md docs/*.md examples/README.md)

# blocks PAGE: writes N.sh for each block that is run and N.why for each that is not, in the page's order.
blocks() {
  awk -v out="$work/blocks" '
    /^<!-- not run: .* -->$/ { why = $0; sub(/^<!-- not run: /, "", why); sub(/ -->$/, "", why); next }
    /^```sh$/ { inside = 1; n++; file = sprintf("%s/%03d.%s", out, n, why == "" ? "sh" : "why"); printf "" > file
                if (why != "") print "# " why > file; why = ""; next }
    /^```/ { if (inside) close(file); inside = 0; why = ""; next }
    inside { print > file }
    !inside && NF { why = "" }' "$1"
}

ran=0 left=0 printed=0 failed=0
for page in "${pages[@]}"; do
  rm -rf "$work/blocks" && mkdir "$work/blocks"
  blocks "$page"
  script=$work/page.sh
  echo "set -e" >"$script"
  for block in "$work"/blocks/*; do
    [ -e "$block" ] || continue
    if [ "${block##*.}" = why ]; then
      left=$((left + 1))
      echo "not run: $page: $(sed -n 2p "$block") ($(sed -n '1s/^# //p' "$block"))"
      continue
    fi
    ran=$((ran + 1))
    # The shell stays: later blocks see what earlier ones exported.
    { printf 'echo "%s" >&2\n' "--- $page, block $(basename "$block" .sh)"; cat "$block"; } >>"$script"
  done
  if ! env -i HOME="$work/home" PATH=/usr/local/bin:/usr/bin:/bin TERM=dumb TMPDIR="${TMPDIR:-/tmp}" LANG=C.UTF-8 \
       OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
       timeout 300 bash "$script" >"$work/log" 2>&1 </dev/null; then
    failed=$((failed + 1))
    echo "FAILED: $page: the last block below does not work when typed" >&2
    tail -25 "$work/log" >&2
  fi
  while IFS= read -r line; do
    printed=$((printed + 1))
    grep -qxF -- "$line" "$work/log" || { echo "FAILED: $page: no command prints \"$line\"" >&2; failed=$((failed + 1)); }
  done < <(awk '/^<!-- printed -->$/ { marked = 1; next } /^```text$/ && marked { inside = 1; next }
                /^```/ { inside = marked = 0 } inside && NF' "$page")
done

verbs=$("$build/gccl" --help | awk '/^Commands/ {on = 1; next} /^$/ {on = 0} on {print $1}')
while read -r verb; do
  grep -qx -- "$verb" <<<"$verbs" || { echo "FAILED: the text names gccl $verb, which does not exist" >&2; failed=$((failed + 1)); }
done < <(grep -ohE '`(build/release/)?gccl [a-z][a-z-]*' "${pages[@]}" | awk '{print $2}' | sort -u)
while read -r _ verb rest; do
  grep -qx -- "$verb" <<<"$verbs" || continue
  known=$("$build/gccl" help "$verb")
  for option in $(grep -oE -- '(^|[ [])--?[a-z][a-z-]*' <<<"${rest%% -- *}" | tr -d ' ['); do
    grep -qE -- "(^|[ ,])$option([ ,]|$)" <<<"$known" || { echo "FAILED: the text gives gccl $verb $option, which it does not take" >&2; failed=$((failed + 1)); }
  done
done < <(grep -ohE '`[^`]+`' "${pages[@]}" | tr -d '`' | sed 's/gccl /\n&/g' | grep -E '^gccl [a-z]')
for program in $(grep -ohE '`(build/release|scripts|bench)/[a-z0-9_/-]+[ `]' "${pages[@]}" | tr -d ' `' | sort -u); do
  case $program in  # of the target benchmarks, which is built on demand
    build/release/bench/bench_*) program=bench/${program##*/bench_}.cpp ;;
  esac
  [ -e "$work/repository/$program" ] || { echo "FAILED: the text names $program, which does not exist" >&2; failed=$((failed + 1)); }
done
# A blank line within a table makes text of the rows behind it: each first row has its line of dashes below.
while read -r row; do
  echo "FAILED: no line of dashes below the first row of a table: $row" >&2
  failed=$((failed + 1))
done < <(awk 'FNR == 1 { before = ""; first = "" }
              first != "" { if ($0 !~ /^\|[-:| ]+\|$/) print first; first = "" }
              /^\|/ && before !~ /^\|/ { first = FILENAME ":" FNR ": " $0 }
              { before = $0 }' "${pages[@]}")
# links: PAGE TARGET of each link to a file or a heading of the repository.
links() {
  awk '/^ *```/ { quoted = !quoted } !quoted { print FILENAME " " $0 }' "${pages[@]}" |
    grep -oE '^[^ ]+|\]\(([a-z.][A-Za-z0-9_./-]*)?(#[a-z0-9_-]+)?\)' |
    awk '!/^\]/ { page = $0; next } { sub(/^\]\(/, ""); sub(/\)$/, ""); print page, $0 }' | sort -u
}
# headings PAGE: as a link to each has it after its #.
headings() { sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'; }
followed=0
while read -r page target; do
  file=$page
  [ "${target%%#*}" = "" ] || file=$(dirname "$page")/${target%%#*}
  followed=$((followed + 1))
  if [ ! -e "$work/repository/$file" ] || { [[ $target == *#* ]] && ! headings "$file" | grep -qx -- "${target#*#}"; }; then
    echo "FAILED: $page has a link to $target, which does not exist" >&2
    failed=$((failed + 1))
  fi
done < <(links)
[ $followed -ge 100 ] || { echo "FAILED: found only $followed links" >&2; failed=$((failed + 1)); }
# The sample of GCCL_LOG=2 has the settings that a job without other variables prints.
settings=$(GCCL_LOG=2 "$build/gccl" launch -n 2 -- "$build/gccl" bench --max-bytes 8 2>&1 |
  sed -n 's/^gccl info: settings: \(.*\), more ranks than processors.*/\1/p')
grep -qF -- "gccl info: settings: ${settings:-none}, more ranks" docs/start.md ||
  { echo "FAILED: docs/start.md has other settings in its sample than the program prints: $settings" >&2; failed=$((failed + 1)); }
echo "$ran blocks typed, $left not run, $printed lines printed as the text has them, $failed failures"
[ $ran -ge 8 ] || { echo "FAILED: found only $ran blocks" >&2; exit 1; }
[ $printed -ge 9 ] || { echo "FAILED: found only $printed lines of what commands print" >&2; exit 1; }
[ $failed -eq 0 ]
