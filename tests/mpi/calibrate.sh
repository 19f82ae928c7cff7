#!/bin/sh
# `gccl calibrate` over MPI, and from there to rules for Open MPI. Usage: calibrate.sh MPIEXEC GCCL
mpiexec=$1 gccl=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

fail() {
  echo "FAILED: $*" >&2
  head -n 40 out err >&2
  failed=1
}
# ends EXIT_CODE COMMAND...
ends() {
  due=$1
  shift
  "$@" >out 2>err
  got=$?
  [ $got -eq "$due" ] || fail "$*: exit $got, not $due"
}
# measures COMMAND...: longer, as it then asks for, where other work made its times tell nothing.
measures() {
  for seconds in 0.6 2 6 20; do
    "$@" --seconds $seconds >out 2>err
    got=$?
    grep -qF 'measure longer (--seconds)' err || break
  done
  [ "$got" -eq 0 ] || fail "$*: exit $got"
}
has() { grep -qF -- "$2" "$1" || fail "$1 has no: $2"; }

measures "$mpiexec" --oversubscribe -n 2 "$gccl" calibrate --backend mpi -o set.json --cluster-out cluster.json \
  --json all.json --max-bytes 1MiB
for text in 'inside a node, ping-pong by MPI between ranks 0 and 1' 'mpi/node/alpha_ns' 'GCCL_PARAMETERS=set.json'; do
  has out "$text"
done
grep -qE 'shared-memory|tcp' out && fail "another transport is spoken of"
has set.json '"backends": "mpi"'
grep -q '"net' set.json && fail "on one node something is said of messages between nodes"
has all.json '"transport": "mpi"'

# Two nodes of two ranks.
# shellcheck disable=SC2016
measures "$mpiexec" --oversubscribe -n 4 sh -c 'GCCL_HOST=h$((OMPI_COMM_WORLD_RANK / 2)) GCCL_BACKENDS=mpi exec "$0" "$@"' \
  "$gccl" calibrate -o nodes.json --cluster-out nodes-cluster.json --max-bytes 256KiB --factor 8
for text in 'between nodes, ping-pong by MPI' 'mpi/net/alpha_ns' 'mpi/net_all/alpha_ns'; do has out "$text"; done
ends 0 "$gccl" topology nodes-cluster.json

# What it is for: plans of GCCL over MPI, and rules for an MPI library.
ends 0 env GCCL_PARAMETERS=set.json "$mpiexec" --oversubscribe -n 2 "$gccl" bench --max-bytes 64 --iterations 2
ends 0 "$gccl" tune cluster.json --quiet --collectives allreduce --bytes 8,1KiB --ranks 2 --export-openmpi rules.txt
grep -qE '^[0-9]' rules.txt || fail "no rules"

ends 2 "$mpiexec" -n 1 "$gccl" calibrate --backend mpi -o set.json
has err 'two at least are needed to measure messages: mpirun -n 2 gccl calibrate --backend mpi -o PARAMS.json'
ends 2 "$gccl" launch -n 2 -- "$gccl" calibrate --backend mpi -o set.json
has err 'GCCL has started 2 ranks, of which MPI knows nothing: expected mpirun, or --backend shm,tcp'
exit $failed
