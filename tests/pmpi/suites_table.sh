#!/usr/bin/env bash
# suites_table.sh SOURCE GCCL MPIEXEC: what scripts/suites makes of cases that pass, fail, hang and differ. The programs
# are shell commands, which see the drop-in in LD_PRELOAD.
set -u
source=$1 gccl=$2
PATH=$(dirname "$3"):$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
SUITE=selftest GCCL_BUILD=. GCCL_SUITES_ONLY='' GCCL_SUITES_TIME_FACTOR=1
ln -s "$gccl" gccl
. "$source/scripts/common.sh"
. "$source/scripts/suites/common.sh"
GCCL=$gccl
mkdir -p "$SUITES/results"
failed=0
expect() {  # TEXT WHAT
  grep -qE -- "$1" out && return
  printf '%s: expected "%s" in\n' "$2" "$1"
  cat out
  failed=1
}
judge() { [ "$2" != judged ] || grep -q good "$1"; }
with='[[ ${LD_PRELOAD:-} == *gccl_pmpi* ]]'
{
  run_case passes 2 60 true
  run_case fails 2 60 bash -c 'exit 3'
  run_case judged 1 60 bash -c "$with && echo bad || echo good"
  run_case differs 2 60 bash -c "! $with || exit 7"
  run_case hangs 1 8 bash -c "! $with || sleep 300"
  run_case fails_or_hangs 1 8 bash -c "! $with || sleep 300; exit 3"
} >rows
cat rows
cp rows out
expect '^selftest +passes +2  pass +[0-9.]+ s  pass +[0-9.]+ s$' "a row"
expect 'judged +1  pass .* wrong output' "a judge's no"
expect 'differs +2  pass .* exit 7' "an exit code"
expect 'hangs +1  pass .* hangs 8 s' "a time limit"

: >expected
summary "$SUITES/results" expected selftest >out && { echo "differences ended with 0"; failed=1; }
expect '^selftest +1 +3 +2 +0 +3 ' "a line of the table"
expect '^selftest +2 +3 +2 +1 +1 ' "a line of the table"
expect 'differs on 2 ranks DIFFERS: plain pass, drop-in exit 7$' "a difference"
expect 'fails on 2 ranks fails in both: plain exit 3, drop-in exit 3$' "a failure of MPI's"
expect 'fails_or_hangs on 1 ranks DIFFERS: plain exit 3, drop-in hangs 8 s$' "a hang where MPI fails"
printf 'selftest\t(judged|differs)\t*\tbecause\nselftest\t(fails_or_)?hangs\t1\tof this\nother\tfails\t*\tno\n' >expected
summary "$SUITES/results" expected selftest >out || { echo "known differences ended with $?"; failed=1; }
expect 'differs on 2 ranks DIFFERS.*\(known: because\)' "a known difference"
printf 'selftest\t(judged|differs)\t*\tbecause\nselftest\thangs\t2\tnot here\n' >expected
summary "$SUITES/results" expected selftest >out && { echo "a difference on other ranks ended with 0"; failed=1; }
echo "no package" >"$SUITES/results/absent.skipped"
summary "$SUITES/results" expected absent >out || { echo "a skipped suite ended with $?"; failed=1; }
expect '^absent: skipped: no package' "a skipped suite"
unset GCCL_SUITES_ONLY
summary "$SUITES/results" expected nothing >out && { echo "a suite without a case ended with 0"; failed=1; }
exit $failed
