// Sizes as scenarios state them and as collectives count them.
#pragma once

#include <vector>

#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

constexpr std::size_t kSizesMax = 256;

// "bytes": one size, a list of sizes, or {"from", "to", "factor"}: from, from*factor, ... up to `to` (factor 2 when
// absent). At least one and at most kSizesMax; no size twice.
std::vector<Count> read_sizes(const json::Node& node);

// How nccl-tests counts: `bytes` is the vector, or where a count is of one rank's block (counts_blocks) that of `ranks`
// blocks. Both functions use Call::count's unit. Elements are rounded up, so total_bytes(elements(b)) >= b.
Count elements(Collective kind, Count bytes, Rank ranks, unsigned element_bytes);
Count total_bytes(Collective kind, Count count, Rank ranks, unsigned element_bytes);

}  // namespace gccl::sim
