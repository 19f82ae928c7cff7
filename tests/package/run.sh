#!/usr/bin/env bash
# Installs the build into an empty prefix and builds a consumer against it, by CMake package and by pkg-config.
#   run.sh BUILD_FOLDER SOURCE_FOLDER CXX
set -euo pipefail
build=$1 source=$2 cxx=$3
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix/usr" >/dev/null
cmake -S "$source/tests/package" -B "$prefix/consumer" -DCMAKE_PREFIX_PATH="$prefix/usr" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
cmake --build "$prefix/consumer" >/dev/null
"$prefix/consumer/consumer"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix/usr" -name gccl.pc)")
# shellcheck disable=SC2046
"$cxx" "$source/tests/package/main.cpp" $(pkg-config --define-variable=prefix="$prefix/usr" --cflags --libs gccl-core) -o "$prefix/by-pkg-config"
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$prefix/by-pkg-config"
# The installed program finds the installed scenarios and their clusters.
cd "$prefix"
"$prefix/usr/bin/gccl" run barrier-latency --quiet >/dev/null
"$prefix/usr/bin/gccl" list topologies | grep -q dgx-h100-superpod-2048
echo "installed package works"
