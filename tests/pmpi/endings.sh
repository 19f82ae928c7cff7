#!/usr/bin/env bash
# endings.sh MPIEXEC DROP_IN PROGRAM: programs that skip MPI_Finalize, fork, or start others end with their own
# exit code.
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
expect 0 spawn
expect 0 "a scan that the other ranks do not call"  # as plain Open MPI ends it
exit $failed
