# Shared by the suites' scripts. Source it from the repository's root, after scripts/common.sh, with SUITE set to the
# suite's name.

SUITES=$PWD/build/suites
GCCL=$PWD/${GCCL_BUILD:-build/release}/gccl
RANKS=${GCCL_SUITES_RANKS:-1 2 3 4}
RESULTS=$SUITES/results/${SUITE:-none}
LOGS=$SUITES/logs/${SUITE:-none}
# As root in a container, with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

skip() {  # WHY: ends the suite
  echo "$*" >"$RESULTS.skipped"
  exit 0
}

need() {  # PACKAGE...: from Debian, or the suite is skipped
  command -v apt-get >/dev/null || skip "no apt-get for $*"
  install_missing "$@" || skip "cannot install $*"
}

# source_package NAME: downloads and unpacks Debian's source package; prints its folder. The system's lists of sources
# stay as they are: a private list has the same entries for source packages.
source_package() {
  local name=$1 folder=$SUITES/source/$1 apt=$SUITES/apt
  if [ ! -e "$folder/done" ]; then
    rm -rf "$folder" && mkdir -p "$folder" "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
    cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' >"$apt/parts/source.sources"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$apt/parts/source.list"
    local options=(-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists"
                   -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update >"$folder/log" 2>&1
    (cd "$folder" && apt-get "${options[@]}" source --download-only "$name" >>log 2>&1 &&
       mkdir tree && tar -xf ./*.orig.tar.* -C tree --strip-components=1 && touch done) || return 1
  fi
  echo "$folder/tree"
}

# python PACKAGE...: the interpreter of a virtual environment of the suites that has these from PyPI.
python_with() {
  local venv=$SUITES/venv
  if [ ! -x "$venv/bin/python" ]; then
    install_missing python3 python3-venv && python3 -m venv "$venv" >/dev/null || return 1
  fi
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >>"$SUITES/logs/pip" 2>&1 || return 1
  echo "$venv/bin/python"
}

# run_case CASE RANKS SECONDS PROGRAM [ARGUMENTS...]: once as it is and once with the drop-in. A run passes when it exits
# with 0 and judge, which a suite may define anew, accepts its output. Skipped where the name does not match.
judge() { true; }  # OUTPUT CASE MODE
run_case() {
  local name=$1 ranks=$2 seconds=$3 mode file code verdict=()
  shift 3
  [[ $name =~ ${GCCL_SUITES_ONLY:-.} ]] || return 0
  mkdir -p "$LOGS"
  for mode in plain gccl; do
    file=$LOGS/$name.$ranks.$mode
    local wrapper=()
    [ $mode = gccl ] && wrapper=("$GCCL" pmpi)
    timeout -k 5 "$seconds" mpirun --oversubscribe --bind-to none -n "$ranks" "${wrapper[@]}" "$@" >"$file" 2>"$file.err" </dev/null
    code=$?
    if [ $code -eq 0 ] && judge "$file" "$name" $mode; then verdict+=(pass); else verdict+=("fail:$code"); fi
  done
  printf '%s\t%d\t%s\t%s\n' "$name" "$ranks" "${verdict[@]}" >>"$RESULTS.tsv"
}

# same_output SED: a judge that also demands that both runs print the same, after `sed -E SED` has taken the times out.
same_output() {  # SED OUTPUT MODE
  [ "$3" = plain ] || cmp -s <(sed -E "$1" "${2%.gccl}.plain") <(sed -E "$1" "$2")
}
