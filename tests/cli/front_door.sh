#!/usr/bin/env bash
# What a newcomer finds: names from anywhere, loading only what is needed, help, completion.
#   front_door.sh GCCL SOURCE_FOLDER
set -euo pipefail
gccl=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }
# says TEXT CODE ARGUMENTS...: exit code, and the text on standard output or error.
says() {
  local text=$1 due=$2 got=0
  shift 2
  "$gccl" "$@" >out 2>&1 || got=$?
  [ $got -eq "$due" ] || { fail "gccl $*: exit code $got, not $due"; head -5 out >&2; }
  grep -qF -- "$text" out || { fail "gccl $*: does not say: $text"; head -5 out >&2; }
}

# The program itself needs no simulator, no MPI and nothing of the runtime: gccl launch runs on bare compute nodes.
needed=$(readelf -d "$gccl" | grep NEEDED)
for library in simgrid mpi ns3 hwloc boost crypto; do
  grep -qi "lib$library" <<<"$needed" && fail "gccl needs lib$library"
done

# A build of ./quickstart has no plug-in "analysis": scenarios are played, and what needs it says how it is built.
mkdir half
cp "$gccl" half/gccl
ln -s "$(dirname "$gccl")/share" half/share
touch half/CMakeCache.txt
whole=$gccl gccl=$PWD/half/gccl
says "gccl 0." 0 -V
says "held" 0 run llm-step
says "Not here yet: cmake --build $PWD/half --target gccl_program" 0
for words in "tune pcie-box" "fit x -o y" "calibrate -o x" "run llm-step decode-tensor-8"; do
  read -ra command <<<"$words"
  says "libgccl_analysis.so" 2 "${command[@]}"
  says "not built by ./quickstart: cmake --build $PWD/half --target gccl_program" 2 "${command[@]}"
done
says "did you mean \"tune\"?" 2 tnue
rm half/CMakeCache.txt
says "install the whole tree again" 2 tune pcie-box
# One that is left of another build spoils its own commands alone.
mkdir -p half/lib/gccl
echo "no library" >half/lib/gccl/libgccl_analysis.so
says "Usage: gccl run" 0 help run
says "Not here yet" 0 help tune
says "libgccl_analysis.so does not load" 2 tune pcie-box
gccl=$whole

says "gccl 0." 0 -V
says "gccl 0." 0 --version
says "Usage: gccl run" 0 help run
says "Examples:" 0 run --help
says "Usage: gccl launch" 0 help launch
says "did you mean \"verify\"?" 2 help vrify
says "WHAT is required: one of algorithms, collectives, engines, topologies, cost-models, scenarios" 2 list
says "--jobs: expected N behind it" 2 run x --jobs
says "--json: given twice" 2 run x --json a --json b
says "expected a number from 1 to 4096" 2 verify --max-ranks 5000

# Output: whole or not at all, and a full disk is reported.
: >empty.json
mkdir folder
says "empty.json: is empty, expected JSON" 2 run empty.json
says "empty.json: is empty, expected JSON" 2 topology empty.json
for words in "topology pcie-box" "verify --quick --collective barrier"; do
  read -ra command <<<"$words"
  says "folder: cannot be written: Is a directory" 2 "${command[@]}" --json folder
  says "cannot be written: No such file or directory" 2 "${command[@]}" --json missing/numbers.json
  # What is no regular file is written to, not replaced.
  mkfifo pipe
  timeout 60 cat pipe >got.json &
  says "" 0 "${command[@]}" --json pipe
  { [ -p pipe ] && wait $! && grep -q '"schema"' got.json; } || fail "gccl $words --json PIPE"
  rm pipe
  got=0
  "$gccl" "${command[@]}" >/dev/full 2>out || got=$?
  { [ $got -eq 2 ] && grep -q "standard output: cannot be written" out; } || fail "gccl $words on a full disk: exit code $got"
done
"$gccl" topology pcie-box --svg - --json numbers.json >drawing.svg || fail "gccl topology --svg - --json FILE"
{ grep -q "</svg>" drawing.svg && grep -q '"name": "pcie-box"' numbers.json; } || fail "a drawing and numbers at once"

# By name from anywhere.
says "pcie-box" 0 topology pcie-box
says "all cards of all send   alpha    3.765 us" 0 topology polaris  # rounded
says "did you mean \"pcie-box\"?" 2 topology pcie-bx
says "topologies)" 2 topology pcie-bx  # where it looked
"$gccl" run barrier-latency --quiet || fail "gccl run barrier-latency"
cat >first.json <<END
{ "\$schema": "share/gccl/schemas/scenario.schema.json", "schema": "gccl/scenario/1", "name": "first", "cluster": "NAME",
  "ranks": 8, "runs": [ { "collective": "allreduce", "bytes": 64, "algorithms": "ring" } ] }
END
sed 's/NAME/dgx-h100-superpod-2048/' first.json >by_name.json
says "allreduce on dgx-h100-superpod-2048" 0 run by_name.json
# A variable that decides nothing, as it is misspelt, is reported.
for words in "run by_name.json" "run decode-tensor-8" "explain pcie-box --collective allreduce --bytes 8"; do
  read -ra command <<<"$words"
  GCCL_ALGORITM=allreduce=ring says "gccl warning: GCCL_ALGORITM is no variable of GCCL: did you mean GCCL_ALGORITHM?" 0 "${command[@]}"
done
sed 's/NAME/dgx-h100-superpod-2049/' first.json >by_name.json
says "/cluster: there is no file" 2 run by_name.json
says "did you mean \"dgx-h100-superpod-2048\"?" 2 run by_name.json
sed 's/NAME/mine.json/' first.json >by_file.json
cat >mine.json <<END
{ "\$schema": "x", "schema": "gccl/cluster/1", "name": "mine", "parameters": "nvidia-h100",
  "nodes": [ { "count": 1, "cards": 8, "inside": { "kind": "switch", "link": { "bandwidth_GBps": 100, "latency_ns": 500 } } } ] }
END
says "allreduce on mine" 0 run by_file.json
sed -i 's/nvidia-h100/nvidia-h10/' mine.json
says "did you mean \"nvidia-h100\"?" 2 topology mine.json
sed -i 's/"x"/1/; s/nvidia-h10"/nvidia-h100"/' mine.json
says '/$schema: found 1, expected a string' 2 topology mine.json

# A program by itself, without plug-ins and shipped files: what is missing is said.
mkdir bare
cp "$gccl" bare/gccl
gccl=$work/bare/gccl
says "bare/share/gccl/topologies" 2 list topologies
says "there is no libgccl_bench_native.so in $work/bare/lib/gccl" 2 bench
says "there is no libgccl_bench_mpi.so" 2 bench --backend mpi
"$gccl" launch -n 2 -- sh -c 'test $GCCL_SIZE = 2' || fail "gccl launch without plug-ins"
cp -r "$source/topologies" "$source/cost-models" .
sed 's/NAME/pcie-box/' first.json >by_name.json
says "--engine flow does not" 2 run by_name.json --engine simgrid
says "allreduce on pcie-box" 0 run by_name.json
says "model" 0 list engines
! grep -q simgrid out || fail "gccl list engines names an engine whose plug-in is not there"
mkdir -p bare/lib/gccl
echo 'const char* gccl_plugin_version(void) { return "0.0.1"; } void gccl_simgrid(void) { __builtin_trap(); }' >old.c
cc -shared -fPIC -o bare/lib/gccl/libgccl_simgrid_engine.so old.c
says "libgccl_simgrid_engine.so belongs to gccl 0.0.1, this is gccl " 2 run by_name.json --engine simgrid
version=$("$gccl" --version)
sed "s/0\.0\.1/${version#gccl }/" old.c >other.c
cc -shared -fPIC -o bare/lib/gccl/libgccl_simgrid_engine.so other.c
says "libgccl_simgrid_engine.so belongs to another build of $version: build or install the whole tree again" 2 \
  run by_name.json --engine simgrid
says "simgrid" 0 list engines
rm -r bare/lib

# Completion and the man page are made from the option tables.
"$gccl" completion bash >gccl.bash
complete_words() {  # the words on the line, the last one being typed
  env -i PATH="$work/bare:$PATH" bash -c '. ./gccl.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gccl; echo "${COMPREPLY[*]}"' - "$@"
}
[ "$(complete_words gccl to)" = topology ] || fail "bash completes no command"
[ "$(complete_words gccl help to)" = topology ] || fail "bash completes no command to be helped with"
[ "$(complete_words gccl run --eng)" = --engine ] || fail "bash completes no option"
[ "$(complete_words gccl run --engine sim)" = simgrid ] || fail "bash completes no value"
[ "$(complete_words gccl topology polar)" = polaris ] || fail "bash completes no shipped name"
cp -r "$source/scenarios" .
[ "$(complete_words gccl run faults/rejoin-t)" = faults/rejoin-twice ] || fail "bash completes no name behind a slash"
# shellcheck disable=SC2016  # a name that would be a command
hostile='$(touch${IFS}ran)' quote="don't"
cp scenarios/straggler.json "scenarios/$hostile.json"
cp scenarios/straggler.json "scenarios/$quote.json"
complete_words gccl run '' >offered
for name in "$hostile" "$quote" straggler; do
  grep -qF -- "$(bash -c 'printf %q "$1"' - "$name")" offered || fail "bash does not offer $name"
done
[ ! -e ran ] || fail "bash completion carries out what a file is called"
rm "scenarios/$hostile.json" "scenarios/$quote.json"
[ -z "$(complete_words gccl run av)" ] || fail "bash offers gccl run what it does not play"
"$1" completion bash >gccl.bash  # with the options of its plug-ins
[ "$(complete_words gccl availability av)" = "availability/llama3-405b availability/meta-rsc" ] || fail "bash completes no study"
for shell in zsh fish; do
  "$gccl" completion $shell >gccl.$shell
  grep -q -- engine gccl.$shell || fail "$shell completion knows no --engine"
  ! command -v $shell >/dev/null || $shell -n gccl.$shell || fail "$shell completion has wrong syntax"
done
"$gccl" completion man >gccl.1
for word in .TH "GCCL LAUNCH" '\\-\\-engine'; do grep -q -- "$word" gccl.1 || fail "the man page lacks $word"; done
grep -q -- ' --chunks ' gccl.bash || fail "bash completion knows no --chunks"
! grep -qE -- '-(shares|lanes)' gccl.bash gccl.zsh gccl.fish gccl.1 || fail "an earlier name of an option is shown"
if command -v man >/dev/null; then [ -z "$(LC_ALL=C.UTF-8 man -l --warnings gccl.1 2>&1 >/dev/null)" ] || fail "man warns"; fi

# bench/compare reads its own results again, and says what is wrong with others.
if command -v python3 >/dev/null; then
  compared() { "$source/bench/compare" --from "$1" >out 2>&1; }
  printf '%s\n' peer,collective,ranks,bytes,time_us gccl,allreduce,2,8,1.5 mpich,allreduce,2,8,3 >rows.csv
  compared rows.csv || fail "bench/compare --from rows.csv: exit code $?"
  grep -q 'allreduce 2 ranks 8 *1.50 *2.00' out || fail "bench/compare --from rows.csv shows no ratio"
  echo gccl,allreduce,2,8,1.5,7 | cat rows.csv - >long.csv
  echo gccl,allreduce,2,8 | cat rows.csv - >short.csv
  echo '{"schema":"gccl/comparison/1","of":"gccl/result/1"}' >other.json
  for rows in 5 '[1]'; do echo "{\"schema\":\"gccl/bench-comparison/1\",\"rows\":$rows}" >"rows-$rows.json"; done
  for wrong in "long.csv: row 2: found 6 fields, expected 5" 'short.csv: row 2: "time_us" is missing; expected peer' \
    'other.json: "schema": "gccl/bench-comparison/1" was expected' 'rows-5.json: "rows": found 5, expected a list' \
    'rows-[1].json: row 0: found 1, expected an object with peer'; do
    got=0
    compared "${wrong%%:*}" || got=$?
    [ "$got $(wc -l <out)" = "2 1" ] || fail "bench/compare --from ${wrong%%:*}: exit code $got, not 2 and one line"
    grep -qF -- "$wrong" out || fail "bench/compare does not say: $wrong"
  done
fi
exit $failed
