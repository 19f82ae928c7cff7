// Calls with blocks of different lengths, where their collective has such.
#pragma once

#include "libgccl/schedule/call.hpp"

namespace gccl::test {

inline Count ragged(const void*, Rank from, Rank to) { return (from * 3 + to * 5) % 4; }

inline Call call_of(Collective kind, Count count, Rank root = 0, bool in_place = false) {
  return {.kind = kind, .count = count, .root = root, .in_place = in_place, .counts = ragged};
}

}  // namespace gccl::test
