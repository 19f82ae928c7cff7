# Shared by quickstart and check: installing what is missing, building. Source it from the repository's root.

PACKAGES=(g++ cmake ninja-build pkg-config libsimgrid-dev libboost-dev libopenmpi-dev openmpi-bin nlohmann-json3-dev
          doctest-dev libcli11-dev libfmt-dev libssl-dev libhwloc-dev libpugixml-dev)

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

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

# build PRESET TARGET...: configures and builds into build/PRESET; targets default to everything.
build() {
  local preset=$1
  shift
  say "building ($preset)"
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake --preset "$preset" "${launcher[@]}" >build-"$preset".log 2>&1 || { cat build-"$preset".log >&2; return 1; }
  cmake --build --preset "$preset" ${1:+--target "$@"} >>build-"$preset".log 2>&1 ||
    { grep -E 'error|FAILED|warning: unused' build-"$preset".log | head -40 >&2; tail -20 build-"$preset".log >&2; return 1; }
  rm -f build-"$preset".log
}
