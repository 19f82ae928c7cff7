// PAT all-gather: parallel aggregated trees. Every block goes down a binomial tree rooted at its rank, the same tree
// for all ranks up to a shift, far distances first: so little crosses the far links and most of the data moves between
// near ranks. Messages of a level are aggregated as far as a bounded buffer allows.
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", arXiv 2506.20252 (2025).
// Any number of ranks. ceil(log2 n) levels, n-1 blocks sent per rank. A level of distance d carries ceil((n-d) / 2d)
// blocks: one message per kPatElements elements, or one per block where a block is larger than half of that. Scratch:
// at most 2 kPatElements elements, and never more than 2 ceil(n/2) blocks; none for large blocks.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

constexpr Count kPatElements = 65536;

Schedule pat_all_gather(Call c, View v, Share mine);
Count pat_all_gather_scratch(const Call& c, const View& v, Share mine);
Cost pat_all_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
