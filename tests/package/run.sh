#!/usr/bin/env bash
# Installs the build into an empty prefix, builds the examples and a user of the static core against it, by CMake package
# and by pkg-config, and runs them. Looks at what the shared library shows.
#   run.sh BUILD_FOLDER SOURCE_FOLDER CC CXX
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "installed package: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$folder/installed" >/dev/null
mv "$folder/installed" "$folder/usr"  # the package must not remember where it was
libdir=$(dirname "$(find "$folder/usr" -name libgccl.so)")

readelf -d "$libdir/libgccl.so" | grep -q 'SONAME.*\[libgccl\.so\.0\]' || fail "libgccl.so has no SONAME libgccl.so.0"
others=$(nm -D --defined-only "$libdir/libgccl.so" | awk '{print $NF}' | grep -v '^GCCL_' || true)
[ -z "$others" ] || fail "libgccl.so exports more than GCCL_*: $others"
# Every function that gccl.h declares is there.
for name in $(grep -oE '^GCCL_API [^(]*\(' "$folder/usr/include/gccl/gccl.h" | grep -oE 'GCCL_[A-Z][a-z][A-Za-z_]*\(' | tr -d '('); do
  nm -D --defined-only "$libdir/libgccl.so" | grep -q " T $name\$" || fail "libgccl.so lacks $name"
done

# $1: folder of programs. Each is a job of one rank by itself.
run_all() {
  for program in "$1"/hello_c "$1"/hello_cpp; do
    "$program" | grep -qx 'rank 0 of 1: the sum is 1' || fail "$program fails on 1 rank"
    [ "$("$folder/usr/bin/gccl" launch -n 4 -- "$program" | grep -c 'of 4: the sum is 10')" -eq 4 ] || fail "$program fails on 4 ranks"
  done
  "$1/core" | grep -qx '16 steps' || fail "$1/core fails"
}

cmake -S "$source/tests/package" -B "$folder/by-cmake" -DCMAKE_PREFIX_PATH="$folder/usr" -DEXAMPLES="$source/examples" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
cmake --build "$folder/by-cmake" >/dev/null
run_all "$folder/by-cmake"

mkdir "$folder/by-pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
# shellcheck disable=SC2046
{
  "$cc" "$source/examples/hello.c" $(pkg-config --cflags --libs gccl) -o "$folder/by-pkg-config/hello_c"
  "$cxx" -std=c++20 "$source/examples/hello.cpp" $(pkg-config --cflags --libs gccl) -o "$folder/by-pkg-config/hello_cpp"
  "$cxx" "$source/tests/package/main.cpp" $(pkg-config --cflags --libs gccl-core) -o "$folder/by-pkg-config/core"
}
run_all "$folder/by-pkg-config"

# The installed program finds the installed scenarios and their clusters.
cd "$folder"
"$folder/usr/bin/gccl" run barrier-latency --quiet >/dev/null
"$folder/usr/bin/gccl" list topologies | grep -q dgx-h100-superpod-2048
echo "installed package works"
