#!/usr/bin/env bash
# endings.sh MPIEXEC DROP_IN PROGRAM: programs that skip MPI_Finalize, fork, start others, or use GCCL themselves end
# with their own exit code. Where the calls of the ranks differ each of them says so, also one whose own calls are complete.
set -u
mpiexec=$1 drop_in=$2 program=$3
failed=0
expect() {  # CODE HOW
  local text code
  text=$(timeout 120 "$mpiexec" --oversubscribe -n 2 -x LD_PRELOAD="$drop_in" "$program" "$2" 2>&1)
  code=$?
  if [ $code -ne "$1" ] || grep -qE 'terminate called|signal|gccl_pmpi:' <<<"$text"; then
    printf '%s: exit code %d, expected %d\n%s\n' "$2" $code "$1" "$text"
    failed=1
  fi
}
expect 3 exit
expect 3 return
expect 3 "exit while a call is in flight"
expect 0 fork
if timeout 30 "$mpiexec" --oversubscribe -n 2 "$program" spawn >/dev/null 2>&1; then
  expect 0 spawn
else  # as 5.0 where no network but the loopback is up
  echo "spawn: not tried: MPI alone does not carry it out here"
fi
expect 0 "computes meanwhile"
GCCL_BACKENDS=mpi expect 0 "computes meanwhile"
expect 0 "uses GCCL, and ends it first"
expect 0 "uses GCCL, and ends it last"
expect 0 "a scan that the other ranks do not call"  # as plain Open MPI ends it
# As plain MPI ends them: with the dead rank's exit code, not with that of the others' MPI_ERRORS_ARE_FATAL.
for meanwhile in "call a barrier" "wait for a barrier"; do
  text=$(timeout 120 "$mpiexec" --oversubscribe -n 3 -x LD_PRELOAD="$drop_in" "$program" \
    "a rank dies while the others $meanwhile" 2>&1)
  code=$?
  if [ $code -ne 3 ] || ! grep -q 'gccl_pmpi: rank . of 3, MPI_I\?[Bb]arrier: a peer is lost: ' <<<"$text" ||
    grep -q MPI_ERR <<<"$text"; then
    printf 'a rank dies while the others %s: exit code %d, expected 3, and no error of MPI\n%s\n' "$meanwhile" $code "$text"
    failed=1
  fi
done
# Descriptors are short on one rank, and plenty on the other.
many_communicators() {  # BACKENDS
  # shellcheck disable=SC2016
  text=$(GCCL_PMPI_STATS=1 timeout 120 "$mpiexec" --oversubscribe -n 2 -x LD_PRELOAD="$drop_in" -x GCCL_BACKENDS="$1" \
    bash -c 'ulimit -n $((240 - OMPI_COMM_WORLD_RANK * 170)); exec "$0" "many communicators"' "$program" 2>&1)
  code=$?
}
# In memory they need none.
many_communicators shm
if [ $code -ne 0 ] || ! grep -qE "MPI_Alltoall +60 GCCL" <<<"$text" || grep -q "MPI: " <<<"$text"; then
  printf 'many communicators: exit code %d, expected 0 and all 60 calls answered by GCCL\n%s\n' $code "$text"
  failed=1
fi
# The rank that finds it says so once, and MPI answers on what communicators there are beyond that.
many_communicators tcp
if [ $code -ne 0 ] || [ "$(grep -c "gccl_pmpi: rank . of 2, " <<<"$text")" != 1 ] ||
  ! grep -q "gccl_pmpi: rank 1 of 2, connecting: this communicator may need 1 more file descriptor, " <<<"$text" ||
  ! grep -qE "MPI_Alltoall +[0-9]+ GCCL" <<<"$text" ||
  ! grep -qE "MPI_Alltoall +[0-9]+ MPI: ranks not connected" <<<"$text"; then
  printf 'many communicators: exit code %d, expected 0, one line of rank 1, and calls answered by both\n%s\n' $code "$text"
  failed=1
fi
# Over tcp MPI answers; in memory GCCL needs none.
for backends in tcp shm; do
  # shellcheck disable=SC2016
  text=$(GCCL_PMPI_STATS=1 timeout 120 "$mpiexec" --oversubscribe -n 2 -x LD_PRELOAD="$drop_in" \
    -x GCCL_BACKENDS=$backends bash -c 'ulimit -n 300; exec "$0" "no descriptor is free"' "$program" 2>&1)
  code=$?
  [ $backends = shm ] && answered='GCCL' || answered='MPI: ranks not connected'
  if [ $code -ne 0 ] || ! grep -qE "MPI_Allreduce +1 $answered" <<<"$text"; then
    printf 'no descriptor is free, %s: exit code %d, expected 0, and the sum by %s\n%s\n' $backends $code "$answered" "$text"
    failed=1
  fi
done
differ() {  # HOW; its status says whether all is well
  local text code rank good=0
  # A folder of its own: Open MPI takes away the one that jobs share where one ends while another makes its own in it.
  local -x OMPI_MCA_orte_tmpdir_base=${OMPI_MCA_orte_tmpdir_base:-/tmp}/$BASHPID
  text=$(nice -n 19 timeout 300 "$mpiexec" --oversubscribe -n 3 -x LD_PRELOAD="$drop_in" "$program" "$1" 2>&1)
  code=$?
  for rank in 0 1 2; do
    if [ $code -ne 0 ] || [ "$(grep -c "gccl_pmpi: rank $rank of 3, .*: the ranks' calls differ: " <<<"$text")" != 1 ]; then
      printf '%s: exit code %d, expected 0 and one line of rank %d\n%s\n' "$1" $code $rank "$text"
      good=1
    fi
  done
  return $good
}
# Of two ranks one has no drop-in, and is in MPI_Finalize. The other waits for ever, and is ended once it has said so:
# mpiexec, too, which one time in six stays for ever once it has ended its ranks.
partly() {
  local text='' line output job
  # Not as two programs: the mpiexec of Open MPI 5.0.7 crashes at a colon.
  # shellcheck disable=SC2016
  exec {output}< <(exec nice -n 19 timeout -k 5 300 "$mpiexec" --oversubscribe -n 2 \
    bash -c '[ "$OMPI_COMM_WORLD_RANK" = 1 ] || LD_PRELOAD=$1 exec "$0" exit
      exec "$0" "a scan that the other ranks do not call"' "$program" "$drop_in" 2>&1)
  job=$!
  while IFS= read -r line <&"$output"; do
    text+=$line$'\n'
    if [[ $line == *"gccl_pmpi: rank 0 of 2: MPI_Init has waited 10 seconds for the other ranks"* ]]; then
      kill $job
      cat <&"$output" >/dev/null  # until its processes are gone
      return 0
    fi
  done
  printf 'one rank without the drop-in: expected that the other says so\n%s\n' "$text"
  return 1
}
# All at once: each waits ten seconds for a rank that is in MPI_Finalize. As MPI waits, so with processors that others
# need: these get what is left.
pids=()
partly & pids+=($!)
for then in "and finalizes" "and frees"; do
  differ "two roots, one rank sends $then" & pids+=($!)
  differ "two roots, one rank waits $then" & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
