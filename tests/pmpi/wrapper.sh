#!/usr/bin/env bash
# wrapper.sh MPIEXEC GCCL PROGRAM OTHER LIBGCCL TOOL: `gccl pmpi` puts the drop-in in force, or fails where it could not be.
# OTHER is linked to something that calls itself another MPI library; LIBGCCL is libgccl.so; TOOL answers MPI_Init.
set -u
mpiexec=$1 gccl=$2 program=$3 other=$4 libgccl=$5 tool=$6 with_tool=$7 beside_tool=$8
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
expect() {  # CODE TEXT COMMAND...
  local code text wanted=$1 part=$2
  shift 2
  text=$(timeout 120 "$@" 2>&1 </dev/null)
  code=$?
  said=$text
  if [ $code -ne "$wanted" ] || ! grep -qF -- "$part" <<<"$text"; then
    printf '%s\n  exit code %d, expected %d and "%s"\n%s\n' "$*" $code "$wanted" "$part" "$text"
    failed=1
  fi
}

# In force: the program, a script that starts it, a folder with a blank in its name, arguments and exit code as they are.
job=("$mpiexec" --oversubscribe -n 2)
expect 0 "collective calls answered by GCCL" "${job[@]}" "$gccl" pmpi --stats "$program" fork
expect 0 "collective calls answered by GCCL" "${job[@]}" "$gccl" pmpi --stats -- "$program" fork
mkdir "$folder/a b"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" >"$folder/a b/script"
chmod +x "$folder/a b/script"
expect 0 "collective calls answered by GCCL" "${job[@]}" "$gccl" pmpi --stats "$folder/a b/script" fork
expect 6 'how? "a  b"' "${job[@]}" "$gccl" pmpi "$program" "a  b"

# With a tool behind it, which rank 0 says once.
for preload in "$tool" "${tool##*/}"; do
  expect 0 "warning: $tool answers MPI's functions, too" "${job[@]}" \
    -x LD_PRELOAD="$preload" -x LD_LIBRARY_PATH="$(dirname "$tool")" "$gccl" pmpi "$program" fork
  [ "$(grep -c "answers MPI's functions" <<<"$said")" = 1 ] || { printf '%s: expected one warning\n%s\n' "$preload" "$said"; failed=1; }
done
# A tool in the program itself comes before whatever is loaded; one that the program is linked with comes behind.
expect 2 "answers MPI_Init itself" "${job[@]}" "$gccl" pmpi "$with_tool" fork
expect 0 "warning: $tool answers MPI's functions, too" "${job[@]}" "$gccl" pmpi "$beside_tool" fork
# MPI itself there is no tool.
mpi=$(ldd "$program" | awk '$1 ~ /^libmpi(ch)?[.]so/ {print $3}')
for preload in "$mpi" "${mpi##*/}"; do
  expect 0 "collective calls answered by GCCL" "${job[@]}" -x LD_PRELOAD="$preload" "$gccl" pmpi --stats "$program" fork
  grep -q "answers MPI's functions" <<<"$said" && { printf '%s: expected no warning\n%s\n' "$preload" "$said"; failed=1; }
done

# A backend that there is not: where it was looked for.
expect 0 "no libgccl_backend_missing.so in $(dirname "$libgccl")/lib/gccl; " \
  env GCCL_BACKENDS=missing "${job[@]}" "$gccl" pmpi "$program" fork

# Not in force.
expect 2 "linked statically" bash -c '
  { printf "\177ELF\2\1\1"; head -c 57 /dev/zero; } >"$1/static" && chmod +x "$1/static" && "$2" pmpi "$1/static"' \
  bash "$folder" "$gccl"
# To the user that has started it, it changes nothing: the loader loads the drop-in.
cp "$program" "$folder/setuid" && chmod u+s "$folder/setuid"
expect 0 "collective calls answered by GCCL" "${job[@]}" "$gccl" pmpi --stats "$folder/setuid" fork
if [ "$(id -u)" -eq 0 ]; then
  chown 65534 "$folder/setuid" && chmod u+s "$folder/setuid"
  expect 2 "changes its user or group" "$gccl" pmpi "$folder/setuid"
fi
# Its capabilities are nothing to root, to whom the loader loads the drop-in. Nor to another user where it has none in
# the end, unless their effective bit is set.
cp "$program" "$folder/capable"
if [ "$(id -u)" -eq 0 ] && setcap cap_net_raw+p "$folder/capable" 2>/dev/null; then
  expect 0 "collective calls answered by GCCL" "${job[@]}" "$gccl" pmpi --stats "$folder/capable" fork
  chmod 755 "$folder"
  mkdir -m 777 "$folder/another"  # MPI's files
  another=(env OMPI_MCA_orte_tmpdir_base="$folder/another" setpriv --reuid 65534 --regid 65534 --clear-groups)
  bound=("${another[@]}" setpriv --no-new-privs)  # by another: the first has root's capabilities yet
  of_its_own="has capabilities of its own"
  in_force="collective calls answered by GCCL"
  if "${another[@]}" test -x "$gccl" 2>/dev/null; then
    expect 2 "$of_its_own" "${another[@]}" "$gccl" pmpi --stats "$folder/capable" fork
    expect 0 "$in_force" "${bound[@]}" "$gccl" pmpi --stats "$folder/capable" fork
    setcap cap_net_raw+i "$folder/capable"
    expect 0 "$in_force" "${another[@]}" "$gccl" pmpi --stats "$folder/capable" fork
    expect 2 "$of_its_own" "${another[@]}" --inh-caps=+net_raw "$gccl" pmpi --stats "$folder/capable" fork
    setcap cap_net_raw+ei "$folder/capable"
    expect 2 "$of_its_own" "${bound[@]}" "$gccl" pmpi --stats "$folder/capable" fork
  fi
fi
echo "no library" >"$folder/libgccl_pmpi.so"
expect 2 "does not load it" "$gccl" pmpi --library "$folder/libgccl_pmpi.so" "$program"
mkfifo "$folder/pipe"
expect 2 "no regular file" timeout 20 "$gccl" pmpi --library "$folder/pipe" "$program"
expect 2 "No such file" "$gccl" pmpi --library "$folder/none.so" "$program"
# Libraries that the loader loads and that answer no call of MPI.
libm=$(ldd "$gccl" | awk '$1 == "libm.so.6" {print $3}')
for library in "${libm:-no libm}" "$libgccl"; do
  expect 2 "is no drop-in for MPI: it does not export GCCL_PMPI_stats" "${job[@]}" "$gccl" pmpi --stats --library "$library" "$program" fork
done
expect 2 "uses libmpich.so.12" "$gccl" pmpi "$other"
# Behind a script, where only the drop-in sees it.
expect 2 "in one process: it uses another MPI library" "$gccl" pmpi sh -c "$other; exit \$?"
mkdir "$folder/bin" && cp "$gccl" "$folder/bin/gccl"
expect 2 "no libgccl_pmpi.so in" "$folder/bin/gccl" pmpi "$program"
# Started by another MPI's launcher, each process is a job of its own. Not so where that launcher started one only.
alone=(env -u OMPI_COMM_WORLD_SIZE -u PMIX_RANK)
expect 2 "started as one of 2 (PMI_SIZE), and is alone" "${alone[@]}" PMI_SIZE=2 PMI_RANK=1 "$gccl" pmpi "$program" fork
expect 0 "collective calls answered by GCCL" "${alone[@]}" PMI_SIZE=1 PMI_RANK=0 "$gccl" pmpi --stats "$program" fork
expect 0 "collective calls answered by GCCL" env PMI_SIZE=2 "${job[@]}" "$gccl" pmpi --stats "$program" fork
# On a rank of a job: the job fails.
expect 2 "does not load it" "${job[@]}" "$gccl" pmpi --library "$folder/libgccl_pmpi.so" "$program" fork

# Wrong usage.
expect 2 "expected a program" "$gccl" pmpi
expect 2 "No such file" "$gccl" pmpi "$folder/none"
expect 2 "in PATH" "$gccl" pmpi no-such-program-anywhere
expect 2 'did you mean "--stats"' "$gccl" pmpi --stat "$program"
expect 2 "expected FILE" "$gccl" pmpi --library
expect 0 "mpirun -n 4 gccl pmpi" "$gccl" pmpi --help
exit $failed
