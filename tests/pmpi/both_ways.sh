#!/usr/bin/env bash
# both_ways.sh MPIEXEC DROP_IN PROGRAM: the program sees the same without and with the drop-in, on 1 to 4 ranks.
set -u
mpiexec=$1 drop_in=$2 program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
for ranks in 1 2 3 4; do
  timeout 100 "$mpiexec" --oversubscribe -n $ranks "$program" >"$folder/plain" 2>"$folder/plain.err"
  plain=$?
  timeout 100 "$mpiexec" --oversubscribe -n $ranks -x LD_PRELOAD="$drop_in" "$program" stats >"$folder/gccl" 2>"$folder/gccl.err"
  gccl=$?
  # Lines of ranks mix.
  if [ $plain -ne 0 ] || [ $gccl -ne 0 ] || [ ! -s "$folder/plain" ] ||
    ! diff <(sort -s -n -t: -k1,1 "$folder/plain") <(sort -s -n -t: -k1,1 "$folder/gccl"); then
    echo "$ranks ranks: exit codes $plain without and $gccl with the drop-in; < without, > with"
    cat "$folder/plain.err" "$folder/gccl.err"
    failed=1
  fi
done
exit $failed
