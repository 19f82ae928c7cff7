#!/usr/bin/env bash
# layers.sh SOURCE_FOLDER LIBRARY: no room includes one above it, communicators name no transport, and the shared library
# holds nothing of the simulator.
# A room is a folder of libgccl/ or sim/, or another folder at the top; a new one needs a place in this list.
set -euo pipefail
cd "$1"
rooms="libgccl/include libgccl/base libgccl/schedule libgccl/cost libgccl/algorithms libgccl/select libgccl/verify
  libgccl/elements libgccl/json libgccl/cluster libgccl/net libgccl/bootstrap libgccl/fault libgccl/transports
  libgccl/communicator libgccl/topology libgccl/api sim/fault sim/engine sim/model sim/flow sim/protocol sim/simgrid
  sim/scenario sim/report sim/measured sim/tuning sim/llm sim/availability cli pmpi nccl_tuner bench"

grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]*/' --include='*.cpp' --include='*.hpp' --include='*.h' \
  libgccl sim cli pmpi nccl_tuner bench | awk -v rooms="$rooms" '
  function room(path, part) {
    split(path, part, "/")
    return part[1] == "libgccl" || part[1] == "sim" ? part[1] "/" part[2] : part[1]
  }
  BEGIN { n = split(rooms, list); for (i = 1; i <= n; ++i) height[list[i]] = i }
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

# Communicators know transports by their interface alone (libgccl/transports/transport.hpp).
if grep -rniwE 'shm|tcp|mpi' libgccl/communicator; then
  echo "libgccl/communicator names a transport"
  exit 1
fi

symbols=$(nm -C --defined-only "$2")
grep -qF 'gccl::Communicator::' <<<"$symbols" || { echo "$2: no symbols of its own found"; exit 1; }
upward=$(grep -F 'gccl::sim::' <<<"$symbols" | head -5 || true)
[ -z "$upward" ] || { printf '%s holds symbols of the simulator:\n%s\n' "$2" "$upward"; exit 1; }
echo "layers hold"
