#!/bin/sh
# `gccl bench` as a user meets it. Usage: bench.sh MPIEXEC GCCL
mpiexec=$1 gccl=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
  echo "FAILED: $*" >&2
  head -n 20 "$work/out" "$work/err" >&2
  failed=1
}

# run EXIT_CODE RANKS ARGUMENTS...: checks the exit code.
run() {
  due=$1 ranks=$2
  shift 2
  "$mpiexec" --oversubscribe -n "$ranks" "$gccl" bench "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ $got -eq "$due" ] || fail "bench $*: exit $got, not $due"
}

# wrong TEXT ARGUMENTS...: exit code 2, and rank 0 alone says why, in one line.
wrong() {
  text=$1
  shift
  run 2 3 "$@"
  [ "$(grep -c '^gccl' "$work/err")" -eq 1 ] || fail "bench $*: not one line"
  grep -qF -- "$text" "$work/err" || fail "bench $*: does not say: $text"
  grep -qi 'MPI_ABORT' "$work/out" "$work/err" && fail "bench $*: aborted"
}

run 0 3 --collective all --algorithm all --min-bytes 0 --max-bytes 4KiB --factor 64 --iterations 2 --warmup 1 --dtype bf16 --op avg
grep -q '^# wrong elements: 0$' "$work/out" || fail "no verdict"
[ "$(grep -c '^# [a-z_]*$' "$work/out")" -eq 13 ] || fail "not all collectives"
# Chunks and channels by their earlier names.
run 0 4 --collective reduce,scatter --root 2 --algorithm auto,all --dtype int8 --op prod --shares 3 --lanes 2 --max-bytes 100 --ranks-per-node 2
run 0 1 --max-bytes 64 --json -
grep -q '"schema": "gccl/bench/1"' "$work/out" || fail "no JSON"
head -c 1 "$work/out" | grep -q '{' || fail "something before the JSON"
run 0 2 --algorithm 'ring,hierarchical(ring,swing)' --max-bytes 8 --in-place --json "$work/rows.json"
[ "$(grep -c '"in_place": true' "$work/rows.json")" -eq 2 ] || fail "rows missing from the file"

# Each row has the chunks, channels and window that it was measured with: auto's are the planner's.
run 0 2 --backend native --algorithm auto,ring --min-bytes 8MiB --max-bytes 8MiB --iterations 1 --warmup 0 --in-place --window 5 --json -
[ "$(grep -A12 '"auto": true' "$work/out" | grep -c '"chunks": 4\|"window": 16')" -eq 2 ] || fail "auto's row lacks its plan"
[ "$(grep -A12 '"auto": false' "$work/out" | grep -c '"chunks": 1,\|"window": 5')" -eq 2 ] || fail "ring's row lacks what was asked for"
run 0 2 --backend native --algorithm ring --max-bytes 8 --chunks 7 --channels 6 --json -
{ [ "$(grep -c '"channels": 6' "$work/out")" -eq 1 ] && [ "$(grep -c '"channels": 4' "$work/out")" -eq 2 ]; } || fail "a row has channels that no communicator has"

# No size is beyond the largest, which buffers are for.
run 0 2 --min-bytes 0 --max-bytes 8 --factor 1024 --out-of-place --json -
[ "$(grep '"bytes": ' "$work/out" | tr -d ' ,')" = '"bytes":0' ] || fail "a size of more than --max-bytes"
# How many ranks are on each node.
run 0 4 --ranks-per-node 3 --max-bytes 8 --out-of-place --json -
tr -d ' \n' <"$work/out" | grep -q '"nodes":2,"ranks_per_node":\[3,1\]' || fail "no ranks of each node"

wrong 'unknown collective "allredcue"; did you mean "allreduce"?' --collective allredcue
wrong 'unknown algorithm for allreduce "rign"; did you mean "ring"?' --algorithm rign
wrong 'unknown dtype "f33"' --dtype f33
wrong 'unknown op "sun"; did you mean "sum"?' --op sun
wrong 'unknown option "--dtyp"; did you mean "--dtype"?' --dtyp f32
wrong 'unknown argument "allreduce"' allreduce
wrong '--root 3: expected a rank below 3' --root 3
wrong '--min-bytes: "lots" is no size' --min-bytes lots
wrong '--min-bytes 2KiB is more than --max-bytes 1KiB' --min-bytes 2KiB --max-bytes 1KiB
wrong '--window' --window 1
wrong '--channels 4: every channel needs a chunk, but --chunks is 1' --algorithm ring --channels 4
wrong 'have no effect on auto' --chunks 2
wrong 'cannot be written' --json /nonexistent/rows.json
# The address sanitizer ends a program that asks for so much.
[ -n "${GCCL_TEST_SANITIZED:-}" ] || wrong 'not enough memory' --max-bytes 1000TiB

# A launcher of whose ranks MPI knows nothing.
"$gccl" launch -n 2 -- "$gccl" bench --backend mpi --max-bytes 8 >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "ranks of gccl launch were measured one by one"
grep -qF 'GCCL has started 2 ranks, of which MPI knows nothing: expected mpirun' "$work/err" || fail "not said why"
PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2 "$gccl" bench --max-bytes 8 >"$work/out" 2>"$work/err"
grep -qF 'PMI has started 2 ranks' "$work/err" || fail "the launcher is not named"
# As srun --mpi=pmi2 does, of which Open MPI knows nothing.
PMI_RANK=0 PMI_SIZE=1 SLURM_PROCID=0 SLURM_NTASKS=1 "$gccl" bench --max-bytes 8 >"$work/out" 2>&1
grep -qF '# gccl bench: shm,tcp, 1 rank' "$work/out" || fail "a rank of srun is measured over MPI"
SLURM_NTASKS=2 "$gccl" bench --backend mpi --max-bytes 8 >"$work/out" 2>&1 || fail "one process of an allocation is none"
exit $failed
