#!/usr/bin/env bash
# Installs the build into an empty prefix, builds the examples and a user of the static core against it, by CMake package
# and by pkg-config, and runs them. Looks at what the shared library shows.
#   run.sh BUILD_FOLDER SOURCE_FOLDER CC CXX
set -euo pipefail
build=$1 source=$2 cc=$3 cxx=$4
export CMAKE_GENERATOR=Ninja  # what the build has: make need not be there
folder=$(mktemp -d)
# The manifest is that of the user's own installation, for uninstalling.
[ ! -e "$build/install_manifest.txt" ] || cp "$build/install_manifest.txt" "$folder/manifest"
trap 'rm -f "$build/install_manifest.txt"; [ ! -e "$folder/manifest" ] || cp "$folder/manifest" "$build/install_manifest.txt"; rm -rf "$folder"' EXIT
fail() { echo "installed package: $*" >&2; exit 1; }

export GCCL_INSTALL_AS_BUILT=1  # nothing is built while tests run
cmake --install "$build" --prefix "$folder/installed" >/dev/null
mv "$folder/installed" "$folder/usr"  # the package must not remember where it was
libdir=$(dirname "$(find "$folder/usr" -name libgccl.so)")

# After ./quickstart, which builds the simulator alone: what is not built yet, or of an earlier tree, is built before
# anything is copied.
first=$(awk '/build_missing\.cmake|file\(INSTALL|\/cmake_install\.cmake"/ {print; exit}' "$build/cmake_install.cmake")
[[ $first == *build_missing* ]] || fail "cmake --install copies files before it has built what is missing"
find "$folder/usr/bin" "$libdir" -type f \( -perm -u+x -o -name '*.so*' -o -name '*.a' \) >"$folder/built"
[ "$(wc -l <"$folder/built")" -ge 5 ] || fail "nothing is installed"
grep -q -- '--target gccl_installed' "$build/build_missing.cmake" || fail "cmake --install builds nothing"
ninja -C "$build" -t graph gccl_installed | sed -n 's|.*label="\(.*/\)\?\([^"/]*\)".*|\2|p' >"$folder/inputs"
while read -r file; do
  grep -qxF "${file##*/}" "$folder/inputs" || fail "cmake --install does not build ${file##*/} first"
done <"$folder/built"

readelf -d "$libdir/libgccl.so" | grep -q 'SONAME.*\[libgccl\.so\.0\]' || fail "libgccl.so has no SONAME libgccl.so.0"
others=$(nm -D --defined-only "$libdir/libgccl.so" | awk '{print $NF}' | grep -v '^GCCL_' || true)
[ -z "$others" ] || fail "libgccl.so exports more than GCCL_*: $others"
# Every function that gccl.h declares is there.
for name in $(grep -oE '^GCCL_API [^(]*\(' "$folder/usr/include/gccl/gccl.h" | grep -oE 'GCCL_[A-Z][a-z][A-Za-z_]*\(' | tr -d '('); do
  nm -D --defined-only "$libdir/libgccl.so" | grep -q " T $name\$" || fail "libgccl.so lacks $name"
done

# The static library defines nothing that could clash with others, such as a C++ program's own std::to_string.
others=$(nm -g --defined-only "$libdir/libgccl.a" | awk 'NF == 3 && $3 !~ /^GCCL_/ {print $3}')
[ -z "$others" ] || fail "libgccl.a defines more than GCCL_*: $others"

# $1: folder of programs. Each is a job of one rank by itself.
run_all() {
  local program
  for program in "$1"/hello_*; do
    "$program" | grep -qx 'rank 0 of 1: the sum is 1' || fail "$program fails on 1 rank"
    [ "$("$folder/usr/bin/gccl" launch -n 4 -- "$program" | grep -c 'of 4: the sum is 10')" -eq 4 ] || fail "$program fails on 4 ranks"
  done
  "$1/core" | grep -qx '16 steps' || fail "$1/core fails"
}

for project in c_only .; do
  cmake -S "$source/tests/package/$project" -B "$folder/by-cmake" -DCMAKE_PREFIX_PATH="$folder/usr" \
    -DEXAMPLES="$source/examples" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$folder/programs" >/dev/null
  cmake --build "$folder/by-cmake" >/dev/null
  rm -rf "$folder/by-cmake"
done
cmake -S "$source/tests/package/around" -B "$folder/around" -DGCCL_SOURCE="$source" -DEXAMPLES="$source/examples" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DGCCL_TESTS=OFF -DGCCL_BENCH=OFF -DGCCL_MPI=OFF \
  -DGCCL_SIMGRID=OFF >/dev/null
grep -q 'std=[a-z+]*20 .*hello\.cpp' "$folder/around/compile_commands.json" || fail "a project around this one is not C++20"
run_all "$folder/programs"
readelf -d "$folder/programs/hello_static" | grep -q libgccl && fail "hello_static needs libgccl.so"

# The programs find their library by themselves: no LD_LIBRARY_PATH.
mkdir "$folder/by-pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
unset LD_LIBRARY_PATH
# shellcheck disable=SC2046
{
  "$cc" "$source/examples/hello.c" $(pkg-config --cflags --libs gccl) -o "$folder/by-pkg-config/hello_c"
  "$cxx" $(pkg-config --variable=cxxflags gccl) "$source/examples/hello.cpp" $(pkg-config --cflags --libs gccl) -o "$folder/by-pkg-config/hello_cpp"
  "$cc" "$source/examples/hello.c" $(pkg-config --cflags --libs gccl-static) -o "$folder/by-pkg-config/hello_static"
  "$cxx" $(pkg-config --variable=cxxflags gccl) "$source/examples/hello.cpp" $(pkg-config --cflags --libs gccl-static) -o "$folder/by-pkg-config/hello_cpp_static"
  "$cxx" "$source/tests/package/main.cpp" $(pkg-config --cflags --libs gccl-core) -o "$folder/by-pkg-config/core"
}
run_all "$folder/by-pkg-config"
pkg-config --static --libs gccl | grep -q -- -lhwloc || fail "gccl.pc does not say what a static program needs"

# A program under the thread sanitizer, with the suppressions of docs/api.md.
threads=$folder/by-pkg-config/threads
awk '/^### Under the thread sanitizer/ {on = 1} on && /^```/ {inside = !inside; if (!inside) exit; next} inside' \
  "$source/docs/api.md" >"$folder/suppressions"
[ "$(wc -l <"$folder/suppressions")" -eq 1 ] || fail "docs/api.md has no suppressions for the thread sanitizer"
# shellcheck disable=SC2046
if echo 'int main(void) { return 0; }' | "$cc" -fsanitize=thread -x c - -o "$threads" 2>/dev/null && "$threads" 2>/dev/null; then
  "$cc" -fsanitize=thread "$source/tests/package/threads.c" $(pkg-config --cflags --libs gccl) -pthread -o "$threads"
  TSAN_OPTIONS=suppressions=$folder/suppressions "$folder/usr/bin/gccl" launch -n 2 -- "$threads" ||
    fail "the thread sanitizer finds something in spite of the suppressions"
else
  echo "no thread sanitizer here: without its suppressions"
fi

# The installed program finds the installed scenarios, their clusters, its plug-ins; schemas, man page and completion are there.
cd "$folder"
"$folder/usr/bin/gccl" run barrier-latency --quiet >/dev/null
"$folder/usr/bin/gccl" list topologies | grep -q dgx-h100-superpod-2048
"$folder/usr/bin/gccl" topology dgx-h100-superpod-2048 | grep -q 2048
"$folder/usr/bin/gccl" launch -n 2 -- "$folder/usr/bin/gccl" bench --max-bytes 8 | grep -q 'wrong elements: 0'
if ls "$libdir"/gccl/libgccl_simgrid_engine.so >/dev/null 2>&1; then
  "$folder/usr/bin/gccl" run barrier-latency --engine simgrid --quiet
fi
for file in gccl/schemas/cluster.schema.json man/man1/gccl.1 bash-completion/completions/gccl doc/gccl/README.md; do
  [ -s "$folder/usr/share/$file" ] || fail "share/$file is missing"
done

[ -s "$libdir/libnccl-tuner-gccl.so" ] || fail "the tuner for NCCL is missing"

# Uninstalling leaves nothing behind but folders that others share.
again="$folder/a[b] again ü"  # a name that programs may take for a pattern, or cut where it is no ASCII
DESTDIR="" cmake --install "$build" --prefix "$again" >/dev/null
touch "$again/share/others" "$again/share/gccl/scenarios/mine.json"
mkdir "$again/share/gccl/scenarios/empty"
mkdir "$folder/stays"  # what nobody can remove so
echo "$folder/stays" >"$folder/one"
! cmake -DMANIFEST="$folder/one" -P "$source/cmake/uninstall.cmake" >"$folder/said" 2>&1 || fail "uninstalling succeeds where files stay"
grep -q '1 files cannot be removed, the first is' "$folder/said" || fail "uninstalling does not say what stays: $(cat "$folder/said")"
cmake -DMANIFEST="$build/install_manifest.txt" -P "$source/cmake/uninstall.cmake" >/dev/null 2>&1
left=$(cd "$again" && find . -type f -o -type l | sort | tr '\n' ' ')
[ "$left" = "./share/gccl/scenarios/mine.json ./share/others " ] || fail "uninstalling leaves $left"
for own in share/gccl/topologies include/gccl-0; do
  [ ! -d "$again/$own" ] || fail "uninstalling leaves $own"
done
[ -d "$again/share/gccl/scenarios/empty" ] || fail "uninstalling removes somebody's folder"
echo "installed package works"
