#!/usr/bin/env bash
# layers.sh SOURCE_FOLDER BUILD_FOLDER LIBRARY: no room includes one above it, nor, where each file is compiled alone (preset
# clang), refers to what one above it defines; communicators name no transport, and the shared library holds nothing of the
# simulator. And one place reads the environment.
# A room is a folder of libgccl/, sim/ or sim/scenario/, or another folder at the top; a new one needs a place in this list.
set -euo pipefail
cd "$1"
build=$2 library=$3
rooms="libgccl/include libgccl/base libgccl/schedule libgccl/cost libgccl/algorithms libgccl/select libgccl/verify
  libgccl/elements libgccl/json libgccl/cluster libgccl/net libgccl/bootstrap libgccl/fault libgccl/transports
  libgccl/communicator libgccl/topology libgccl/api sim/fault sim/engine sim/model sim/flow sim/protocol sim/simgrid
  sim/scenario/description sim/scenario/judge sim/scenario/read sim/scenario/plan sim/scenario/run
  sim/scenario/result sim/scenario
  sim/report sim/measured sim/tuning sim/llm sim/availability cli pmpi nccl_tuner bench"

# awk functions: a file's room, and how high rooms are.
places='
  function room(path, part, parts) {
    parts = split(path, part, "/")
    if (part[1] == "sim" && part[2] == "scenario" && parts == 4) return part[1] "/" part[2] "/" part[3]
    return part[1] == "libgccl" || part[1] == "sim" ? part[1] "/" part[2] : part[1]
  }
  BEGIN { n = split(rooms, list); for (i = 1; i <= n; ++i) height[list[i]] = i }'

grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]*/' --include='*.cpp' --include='*.hpp' --include='*.h' \
  libgccl sim cli pmpi nccl_tuner bench | awk -v rooms="$rooms" "$places"'
  {
    file = $0; sub(/:.*/, "", file)
    line = $0; sub(/^[^:]*:/, "", line); sub(/:.*/, "", line)
    included = $0; sub(/^[^"]*"/, "", included); sub(/".*/, "", included)
    if (included ~ /^gccl\//) included = "libgccl/include/" included
    from = room(file); to = room(included); ++count
    if (!(from in height)) { print file ": the room " from " has no place among the layers"; bad = 1 }
    else if (!(to in height)) { print file ":" line ": includes \"" included "\", of no known room"; bad = 1 }
    else if (height[to] > height[from]) { print file ":" line ": " from " includes \"" included "\" of " to ", which is above it"; bad = 1 }
  }
  END { if (count < 500) { print "only " count + 0 " includes found"; bad = 1 } exit bad }'

# Objects of single files are at CMakeFiles/TARGET.dir/ROOM/...; inline functions (weak) are nobody's.
objects=$(cd "$build" && find . -path '*/CMakeFiles/*.dir/*.cpp.o' -not -path '*/Unity/*' -not -path './tests/*')
if grep -q '/libgccl/schedule/' <<<"$objects"; then
  (cd "$build" && xargs nm -A <<<"$objects") | awk -v rooms="$rooms" "$places"'
    {
      file = $1; sub(/:.*/, "", file); sub(/.*\.dir\//, "", file); from = room(file)
      if (!(from in height)) next
      kind = $(NF - 1); name = $NF
      if (kind ~ /^[TDBR]$/) { if (!(name in least) || height[from] < height[least[name]]) least[name] = from }
      else if (kind == "U") { ++count; used[name, from] = file }
    }
    END {
      for (pair in used) {
        split(pair, part, SUBSEP)
        to = least[part[1]]
        if (to != "" && height[to] > height[part[2]]) { print used[pair] ": refers to " part[1] " of " to ", which is above it"; bad = 1 }
      }
      if (count < 5000) { print "only " count + 0 " references found"; bad = 1 }
      exit bad
    }'
else
  echo "files are compiled together: references between rooms are looked at in the preset clang"
fi

# Communicators know transports by their interface alone (libgccl/transports/transport.hpp).
if grep -rniwE 'shm|tcp|mpi' libgccl/communicator; then
  echo "libgccl/communicator names a transport"
  exit 1
fi

# The environment is read in one place, so that tests can give another one. Libraries that must not hold the inside of
# libgccl ask by themselves: a transport that is a plug-in, the MPI drop-in, the plug-in for NCCL.
readers="libgccl/base/environment.cpp
libgccl/transports/mpi/mpi_port.cpp
nccl_tuner/plugin.cpp
pmpi/engine/connecting.cpp
pmpi/intercept/init_finalize.cpp"
if grep -rlwE 'getenv|secure_getenv' --include='*.cpp' --include='*.hpp' libgccl sim cli pmpi nccl_tuner bench |
     grep -vxF "$readers"; then
  echo "calls getenv(): libgccl/base/environment.hpp is for that"
  exit 1
fi

symbols=$(nm -C --defined-only "$library")
grep -qF 'gccl::Communicator::' <<<"$symbols" || { echo "$library: no symbols of its own found"; exit 1; }
upward=$(grep -F 'gccl::sim::' <<<"$symbols" | head -5 || true)
[ -z "$upward" ] || { printf '%s holds symbols of the simulator:\n%s\n' "$library" "$upward"; exit 1; }
echo "layers hold"
