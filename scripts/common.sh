# Shared by quickstart and check: installing what is missing, building. Source it from the repository's root.

# Names of Debian 12 and 13; not tried on Ubuntu 24.04.
PACKAGES=(g++ cmake ninja-build pkg-config nlohmann-json3-dev doctest-dev libfmt-dev libssl-dev libhwloc-dev libpugixml-dev)
# Without the first two there is no simgrid engine, without the third no gccl fit, without the others no MPI: the build says so and
# leaves them out.
OPTIONAL_PACKAGES=(libsimgrid-dev libboost-dev libnlopt-dev libopenmpi-dev openmpi-bin)

# Escape codes are for terminals, not for files and logs.
say() { if [ -t 2 ]; then printf '\033[1m== %s\033[0m\n' "$*" >&2; else printf '== %s\n' "$*" >&2; fi; }

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

# Installs those of the named packages that are missing; needs no network when none is. Returns apt's failure.
install_missing() {
  local missing=() package
  for package in "$@"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]} (install them with your system's package manager)" >&2
    return 1
  fi
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "missing: ${missing[*]} (run as root, or install sudo)" >&2; return 1; }
    root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return 0
  "${root[@]}" apt-get update >/dev/null &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Shows ninja's lines, [12/147] and what is built: on a terminal each in place of the last, elsewhere one in ten seconds.
show_progress() {
  local line shown=-10
  while IFS= read -r line; do
    case $line in \[*/*\]*) ;; *) continue ;; esac
    if [ -t 2 ]; then
      printf '\r\033[K%.*s' "${COLUMNS:-79}" "$line" >&2
    elif [ $((SECONDS - shown)) -ge 10 ]; then
      printf '%s\n' "$line" >&2
      shown=$SECONDS
    fi
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# The option of cmake that says by what compilers are started; also where that is nothing, as a build folder keeps the
# last one.
compiler_launcher() {
  local launcher=${CMAKE_CXX_COMPILER_LAUNCHER-}
  [ -n "$launcher" ] || ! command -v ccache >/dev/null || launcher=ccache
  echo "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"
}

# build PRESET TARGET...: configures and builds into build/PRESET; targets default to everything.
build() {
  local preset=$1 log=build/$1.log
  shift
  mkdir -p build
  say "building ($preset)"
  cmake --preset "$preset" "$(compiler_launcher)" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
  grep -E '^-- No ' "$log" >&2 || true  # parts that are left out
  cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"} 2>&1 | tee -a "$log" | show_progress ||
    { grep -E 'error|FAILED|warning: unused' "$log" | head -40 >&2; tail -20 "$log" >&2; return 1; }
  grep -E 'warning: ' "$log" | sort -u >&2 || true
  rm -f "$log"
}

# run_tests PRESET: a processor is six parts, of which tests/CMakeLists.txt gives each test some: one to those that wait for
# time limits and for ranks that do not come, six to those whose ranks work.
run_tests() { ctest --preset "$1" --no-tests=error --parallel $((6 * $(nproc))); }
