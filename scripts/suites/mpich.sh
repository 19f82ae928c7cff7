# Shared by the suites of MPICH's own tests, test/mpi of Debian's source package, compiled for the program's MPI: a suite
# is a list of their folders. Numbers of ranks are those of the folders' lists. Source it from the repository's root.
set -uo pipefail
. scripts/common.sh
. scripts/suites/common.sh

need libopenmpi-dev openmpi-bin dpkg-dev gcc xz-utils
tree=$(source_package mpich) || skip "cannot get MPICH's source package"
tests=$tree/test/mpi
[ -d "$tests/coll" ] || skip "MPICH's source package has no test/mpi/coll"
programs=$SUITES/mpich
mkdir -p "$programs/include" "$LOGS"

# What its configure would find out, as far as these tests ask.
cat >"$programs/include/mpitestconf.h" <<'C'
#define STDC_HEADERS 1
#define HAVE_STDARG_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STDINT_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_STRING_H 1
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_RESOURCE_H 1
#define HAVE_GETRUSAGE 1
#define HAVE_PTHREAD_BARRIER_INIT 1
#define HAVE_MEMORY_H 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_LONG_INT 1
#define HAVE_INT8_T 1
#define HAVE_INT16_T 1
#define HAVE_INT32_T 1
#define HAVE_INT64_T 1
#define HAVE_UINT8_T 1
#define HAVE_UINT16_T 1
#define HAVE_UINT32_T 1
#define HAVE_UINT64_T 1
#define HAVE_FLOAT__COMPLEX 1
#define HAVE_DOUBLE__COMPLEX 1
#define HAVE__BOOL 1
#define HAVE_MPI_WIN_CREATE 1
#define HAVE_MPI_IO 1
#define HAVE_MPI_INIT_THREAD 1
#define MPI_HAVE_FORTRAN_BINDING 0
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX
#define THREAD_PACKAGE_INVALID 0
#define THREAD_PACKAGE_NONE 1
#define THREAD_PACKAGE_POSIX 2
#define MTEST_MPI_VERSION 3
C
[ -e "$tests/include/mpitestconf.h" ] && rm "$tests/include/mpitestconf.h"

cp "$programs/include/mpitestconf.h" "$programs/dtpoolsconf.h"

flags=(-w -O1 -DOMPI_OMIT_MPI1_COMPAT_DECLS=0 -I"$programs/include" -I"$tests/include" -I"$tests/dtpools/include" -I"$tests/util")
support=()
for unit in util/{mtest,mtest_common,mtest_thread,dtypes} dtpools/src/dtpools{,_attr,_custom,_desc,_init_verify,_misc}; do
  object=$programs/${unit##*/}.o
  [ -e "$object" ] || mpicc "${flags[@]}" -DUSE_STRICT_MPI=1 -c "$tests/$unit.c" -o "$object" 2>>"$LOGS/compile" ||
    skip "MPICH's test support does not compile for this MPI ($LOGS/compile)"
  support+=("$object")
done

# What the makefile of a folder says of a program: PROGRAM_SOURCES, or what the preprocessor gets of PROGRAM_CPPFLAGS.
from_makefile() {  # FOLDER PROGRAM WHAT
  sed -nE "s/^$2_$3 *= *//p" "$tests/$1/Makefile.am" | tr ' ' '\n' | grep -vE '^(\$|$)'
}

compile() {  # FOLDER PROGRAM DEFINITION...: prints the file. I-forms are the same sources with another definition.
  local folder=$1 program=$2 out=$programs/$1/$2 source sources=() define=("${@:3}") i
  mapfile -t sources < <(from_makefile "$folder" "$program" SOURCES)
  mapfile -t -O ${#define[@]} define < <(from_makefile "$folder" "$program" CPPFLAGS)
  sources=("${sources[@]/#/$tests/$folder/}")
  if [ ${#sources[@]} -gt 0 ]; then
    :
  elif [ -e "$tests/$folder/$program.c" ]; then
    sources=("$tests/$folder/$program.c")
  elif [[ $program == i* ]]; then
    sources=("$tests/$folder/${program#i}.c") define+=(-DUSE_MTEST_NBC=1)
  elif [[ $program == nb_* ]]; then
    sources=("$tests/$folder/${program#nb_}.c") define+=(-DUSE_MTEST_NBC=1)
  fi
  mkdir -p "$(dirname "$out")"
  for i in "${!sources[@]}"; do
    source=${sources[i]}
    [ -e "$source" ] || return 1
    # MPICH's types are ints; its later releases have this right.
    if grep -qE '^ *int \*(send|recv)types' "$source"; then
      sed -E 's/^( *)int \*(send|recv)types/\1MPI_Datatype *\2types/' "$source" >"$out.c"
      sources[i]=$out.c
    fi
  done
  [ -x "$out" ] || mpicc "${flags[@]}" -I"$tests/$folder" "${define[@]}" "${sources[@]}" "${support[@]}" -o "$out" -lm -lpthread \
    2>>"$LOGS/compile" || return 1
  echo "$out"
}

judge() { grep -q 'No Errors' "$1"; }

# Of Open MPI 4.1.4, without the drop-in.
hangs='comm/comm_idup_(nb|isend)|init/timeout|errors/comm/(too_many_i?comms[23]?|intercomm_abort)'
hangs+='|spawn/taskmanager|threads/spawn/th_taskmanager|threads/comm/idup_(deadlock|comm_gen)'
hangs+='|pt2pt/(p?scancel|cancelrecv)|rma/(rma_contig -iter=10000|large_acc_flush_local)'

# Runs each line of a folder's list, at most SECONDS or what it asks for. In the folder of the programs: they start each
# other, and write files. Those that must fail pass with an exit code other than 0.
run_list() {  # FOLDER SECONDS [alone]: then each program once with one rank, too
  local folder=$1 list=$tests/$1/testlist line program ranks rest word arguments seconds strict job file name ran=' '
  [ -e "$list" ] || list=$list.in
  mkdir -p "$programs/$folder"
  while read -r line; do
    read -r program ranks rest <<<"$(sed -E 's/^@(comm_overlap|namepub_tests)@//' <<<"$line")"
    [[ $program =~ ^[a-z] && $ranks =~ ^[0-9]+$ ]] || continue
    [ "$ranks" -le "${GCCL_SUITES_MAX_RANKS:-16}" ] || continue
    arguments=() seconds=$2 strict=(-DUSE_STRICT_MPI=1) job=("${JOB[@]}" "${options[@]}")
    # shellcheck disable=SC2016
    for word in $rest; do
      case $word in
        arg=*) arguments+=("${word#arg=}") ;;
        timeLimit=*) [ "${word#timeLimit=}" -le "$seconds" ] || seconds=${word#timeLimit=} ;;
        strict=[Ff]*) strict=() ;;
        resultTest=*) job=(bash -c '! "$@" || exit 99; echo "No Errors"' fails "${JOB[@]}" "${options[@]}") ;;
      esac
    done
    if [[ "$folder/$program${arguments[*]:+ ${arguments[*]}}" =~ ^($hangs)$ ]]; then
      hanging=$((hanging + 1))
      continue
    fi
    name=${folder/\//_}_$program${arguments[*]//[^a-z0-9]/_}
    name=${name// /}
    [[ $ran != *" $name $ranks "* ]] || continue  # MPICH's variables are all that differs
    ran+="$name $ranks "
    file=$(compile "$folder" "$program" "${strict[@]}") || { left_out=$((left_out + 1)); continue; }
    (cd "$programs/$folder" && JOB=("${job[@]}") && run_case "$name" "$ranks" "$seconds" "$file" "${arguments[@]}")
    { [ "${3:-}" = alone ] && [[ $ran != *" $name 1 "* ]]; } || continue
    ran+="$name 1 "
    (cd "$programs/$folder" && run_case "$name" 1 "$seconds" "$file" "${arguments[@]}")
  done <"$list"
}

options=()  # of mpirun, beyond those of all suites
left_out=0 hanging=0
finish() {
  [ $left_out -eq 0 ] || echo "$left_out lines of MPICH's lists, which do not compile for this MPI" >>"$RESULTS.skipped"
  [ $hanging -eq 0 ] || echo "$hanging lines of MPICH's lists, which hang in Open MPI" >>"$RESULTS.skipped"
}
