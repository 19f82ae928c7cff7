# Shared by the suites' scripts. Source it from the repository's root, after scripts/common.sh, with SUITE set to the
# suite's name.

SUITES=$PWD/build/suites
GCCL=$PWD/${GCCL_BUILD:-build/release}/gccl
RANKS=${GCCL_SUITES_RANKS:-1 2 3 4}
RESULTS=$SUITES/results/${SUITE:-none}
LOGS=$SUITES/logs/${SUITE:-none}
# GCCL would warn of them in the programs.
[ -z "${SUITE:-}" ] || export -n "${!GCCL_SUITES_@}" GCCL_BUILD
# As root in a container, with more ranks than cores.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

skip() {  # WHY: ends the suite
  echo "$*" >>"$RESULTS.skipped"
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

# python_with PACKAGE...: the interpreter of a virtual environment of the suites that has these from PyPI.
python_with() {
  local venv=$SUITES/venv
  if [ ! -x "$venv/bin/python" ]; then
    install_missing python3 python3-venv && python3 -m venv "$venv" >/dev/null || return 1
  fi
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >>"$SUITES/logs/pip" 2>&1 || return 1
  echo "$venv/bin/python"
}

# python_source PACKAGE: unpacks the source, as PyPI has it, of the version that python_with installed; prints its folder.
python_source() {
  local python=$SUITES/venv/bin/python version
  version=$("$python" -c 'import importlib.metadata as m, sys; print(m.version(sys.argv[1]))' "$1") || return 1
  if [ ! -e "$SUITES/source/$1-$version/done" ]; then
    mkdir -p "$SUITES/source"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$1" "$1==$version" \
      -d "$SUITES/source" >>"$SUITES/logs/pip" 2>&1 || return 1
    tar -xf "$SUITES/source/$1-$version.tar.gz" -C "$SUITES/source" && touch "$SUITES/source/$1-$version/done" || return 1
  fi
  echo "$SUITES/source/$1-$version"
}

# How a job is started, and what puts the drop-in in front: for Open MPI and the build that is tested.
JOB=(mpirun --oversubscribe --bind-to none)
WITH_DROP_IN=("$GCCL" pmpi)

# run_case CASE RANKS SECONDS PROGRAM [ARGUMENTS...]: once as it is and once with the drop-in, each at most SECONDS (times
# GCCL_SUITES_TIME_FACTOR). A run passes when it exits with 0 and judge, which a suite may define anew, accepts its
# output. Skipped where the name does not match. Prints one row, and keeps it for the table.
judge() { true; }  # OUTPUT CASE MODE
run_case() {
  local name=$1 ranks=$2 seconds=$(($3 * ${GCCL_SUITES_TIME_FACTOR:-1})) mode file code from verdict took row
  shift 3
  [[ $name =~ ${GCCL_SUITES_ONLY:-.} ]] || return 0
  mkdir -p "$LOGS"
  row=$(printf '%s\t%d' "$name" "$ranks")
  for mode in plain gccl; do
    file=$LOGS/$name.$ranks.$mode
    local wrapper=()
    [ $mode = gccl ] && wrapper=("${WITH_DROP_IN[@]}")
    from=${EPOCHREALTIME//[.,]/}
    timeout -k 5 "$seconds" "${JOB[@]}" -n "$ranks" "${wrapper[@]}" "$@" >"$file" 2>"$file.err" </dev/null
    code=$?
    took=$((${EPOCHREALTIME//[.,]/} - from))
    if [ $((took / 1000000)) -ge "$seconds" ]; then
      verdict="hangs $seconds s"
    elif [ $code -ne 0 ]; then
      verdict="exit $code"
    elif judge "$file" "$name" $mode; then
      verdict=pass
    else
      verdict="wrong output"
    fi
    row+=$(printf '\t%s\t%d.%d' "$verdict" $((took / 1000000)) $((took / 100000 % 10)))
  done
  printf '%s\n' "$row" >>"$RESULTS.tsv"
  IFS=$'\t' read -r name ranks mode from verdict took <<<"$row"
  printf '%-12s %-44s %3d  %-13s %6s s  %-13s %6s s\n' "$SUITE" "$name" "$ranks" "$mode" "$from" "$verdict" "$took"
}

# summary FOLDER EXPECTED SUITE...: the table over FOLDER/SUITE.tsv, what differs, and what fails in both. A case that
# fails without the drop-in and hangs with it differs too. Returns 1 when a case differs that EXPECTED does not list, or
# where a suite has neither results nor a reason.
differs='function differs(a, b) { return (a == "pass") != (b == "pass") || (a !~ /^hangs/ && b ~ /^hangs/) }'
summary() {
  local folder=$1 expected=$2 status=0 suite
  shift 2
  printf '\n%-12s %5s %6s %6s %8s %8s %9s %9s\n' suite ranks cases plain drop-in differ "plain s" "drop-in s"
  for suite in "$@"; do
    if [ -s "$folder/$suite.tsv" ]; then
      awk -F'\t' -v suite="$suite" "$differs"'
        { cases[$2]++; plain[$2] += $3 == "pass"; gccl[$2] += $5 == "pass"; s[$2] += $4; t[$2] += $6 }
        differs($3, $5) { differ[$2]++ }
        END { for (r in cases) printf "%-12s %5d %6d %6d %8d %8d %9.1f %9.1f\n",
                                      suite, r, cases[r], plain[r], gccl[r], differ[r], s[r], t[r] }' \
        "$folder/$suite.tsv" | sort -k1,1 -k2,2n
    elif [ ! -s "$folder/$suite.skipped" ] && [ -z "${GCCL_SUITES_ONLY:-}" ]; then
      echo "$suite: no case ran"
      status=1
    fi
    [ -s "$folder/$suite.skipped" ] && sed "s/^/$suite: skipped: /" "$folder/$suite.skipped"
  done
  for suite in "$@"; do
    [ -s "$folder/$suite.tsv" ] || continue
    awk -F'\t' -v suite="$suite" "$differs"'
      FILENAME == ARGV[1] { if ($0 !~ /^(#|$)/ && $1 == suite) { name[++n] = $2; ranks[n] = $3; why[n] = $4 } next }
      {
        if ($3 != "pass" && $5 != "pass" && !differs($3, $5)) {
          printf "%s: %s on %d ranks fails in both: plain %s, drop-in %s\n", suite, $1, $2, $3, $5
        } else if (differs($3, $5)) {
          reason = ""
          for (i = 1; i <= n; ++i)
            if ($1 ~ "^(" name[i] ")$" && (ranks[i] == "*" || ranks[i] == $2)) reason = why[i]
          if (reason == "") bad = 1
          printf "%s: %s on %d ranks DIFFERS: plain %s, drop-in %s%s\n", suite, $1, $2, $3, $5,
                 reason == "" ? "" : " (known: " reason ")"
        }
      }
      END { exit bad }' "$expected" "$folder/$suite.tsv" || status=1
  done
  return $status
}

# same_output SED: a judge that also demands that both runs print the same, after `sed -E SED` has taken the times out.
same_output() {  # SED OUTPUT MODE
  [ "$3" = plain ] || cmp -s <(sed -E "$1" "${2%.gccl}.plain") <(sed -E "$1" "$2")
}
