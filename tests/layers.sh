#!/usr/bin/env bash
# layers.sh SOURCE_FOLDER BUILD_FOLDER LIBRARY: no room includes one above it, nor refers to what one above it defines;
# communicators name no transport, and the shared library holds nothing of the simulator. And one place reads the
# environment, and no name is two types in one namespace.
# A room is a folder of libgccl/, sim/ or sim/scenario/, or another folder at the top; a new one needs a place in this list.
set -euo pipefail
cd "$1"
build=$2 library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms="libgccl/include libgccl/base libgccl/schedule libgccl/cost libgccl/algorithms libgccl/select libgccl/verify
  libgccl/net libgccl/fault libgccl/elements libgccl/json libgccl/cluster libgccl/bootstrap libgccl/transports
  libgccl/communicator libgccl/topology libgccl/api sim/fault sim/engine sim/model sim/flow sim/protocol sim/simgrid
  sim/scenario/description sim/scenario/judge sim/scenario/read sim/scenario/plan sim/scenario/run
  sim/scenario/result sim/scenario
  sim/report sim/availability sim/measured sim/tuning sim/llm cli pmpi nccl_tuner bench"

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

# The same of symbols. An object holds a room, or several where files are compiled as one: it may refer to what rooms up to
# its highest define, and what an object defines is its lowest room's. Where each file is compiled alone (preset clang) that
# is each room's own. Inline functions (weak) are nobody's. Objects of targets that are no more may lie about: the build says
# which are its own.
objects=$(cd "$build" &&
  if [ -e build.ninja ]; then ninja -t targets all | sed -n 's|^\(.*\.o\): .*|\1|p'; else find . -name '*.o' -printf '%P\n'; fi |
    grep -E '(^|/)CMakeFiles/.*\.dir/' | grep -vE '^(tests|bench)/')
while read -r object; do
  source=$build/${object%.o}
  case $object in
    */Unity/*) sed -n "s|^#include \"$PWD/\(.*\)\"|$object \1|p" "$source" ;;
    *) echo "$object ${object#*.dir/}" ;;
  esac
done <<<"$objects" >"$work/files"
{ cat "$work/files"; echo; cd "$build" && xargs nm -A <<<"$objects"; } | awk -v rooms="$rooms" "$places"'
  !NF { symbols = 1; next }
  !symbols {
    at = height[room($2)]
    if (!at) next
    if (!($1 in low) || at < low[$1]) low[$1] = at
    if (at > high[$1]) high[$1] = at
    next
  }
  {
    object = $1; sub(/:.*/, "", object)
    if (!(object in low) || $NF ~ /^MPI_/) next  # the drop-in defines what MPI defines
    kind = $(NF - 1); name = $NF
    if (kind ~ /^[TDBR]$/) { if (!(name in least) || low[object] < least[name]) least[name] = low[object] }
    else if (kind == "U") { ++count; used[name, object] }
  }
  END {
    for (pair in used) {
      split(pair, part, SUBSEP)
      if (part[1] in least && least[part[1]] > high[part[2]]) {
        print part[2] ", up to " list[high[part[2]]] ": refers to " part[1] " of " list[least[part[1]]] ", which is above it"
        bad = 1
      }
    }
    if (count < 1000) { print "only " count + 0 " references found"; bad = 1 }
    exit bad
  }'

# No name is two types in one namespace: a program that holds both has but one of each function that compilers write for
# them. The layout is .clang-format's: what stands in a namespace begins its line.
find libgccl sim cli pmpi nccl_tuner bench \( -name '*.hpp' -o -name '*.cpp' \) -print0 | sort -z | xargs -0 awk '
  FNR == 1 { depth = 0 }
  /^(inline )?namespace ([A-Za-z_:]+ )?\{$/ { name[++depth] = $(NF - 1) == "namespace" ? "" : $(NF - 1) "::" }
  /^}  \/\/ namespace/ { --depth }
  /^(class|struct|union|enum|enum class) [A-Za-z_]+( final)?( : [^;]*)?( \{.*)?$/ {
    type = ""
    for (i = 1; i <= depth && name[i] != ""; ++i) type = type name[i]
    if (i <= depth) next  # without a name a namespace is that file alone
    type = type ($1 $2 == "enumclass" ? $3 : $2); ++count
    if (type in file) { print type ": two types, of " file[type] " and of " FILENAME; bad = 1 }
    file[type] = FILENAME
  }
  END { if (count < 500) { print "only " count + 0 " types found"; bad = 1 } exit bad }'

# Communicators know transports by their interface alone (libgccl/transports/transport.hpp).
if grep -rniwE 'shm|tcp|mpi' libgccl/communicator; then
  echo "libgccl/communicator names a transport"
  exit 1
fi

# The environment is read in one place, so that tests can give another one. Libraries that must not hold the inside of
# libgccl ask by themselves: a transport that is a plug-in, the MPI drop-in, the plug-in for NCCL.
readers="libgccl/base/environment.cpp
libgccl/transports/mpi/mpi_connect.cpp
nccl_tuner/plugin.cpp
pmpi/engine/connecting.cpp
pmpi/intercept/init_finalize.cpp"
if grep -rlwE 'getenv|secure_getenv' --include='*.cpp' --include='*.hpp' libgccl sim cli pmpi nccl_tuner bench |
     grep -vxF "$readers"; then
  echo "calls getenv(): libgccl/base/environment.hpp is for that"
  exit 1
fi

symbols=$(nm -C --defined-only "$library")
grep -qF 'gccl::CommunicatorCore::' <<<"$symbols" || { echo "$library: no symbols of its own found"; exit 1; }
upward=$(grep -F 'gccl::sim::' <<<"$symbols" | head -5 || true)
[ -z "$upward" ] || { printf '%s holds symbols of the simulator:\n%s\n' "$library" "$upward"; exit 1; }
echo "layers hold"
