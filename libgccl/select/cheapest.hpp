// The run-time selector: which algorithm the closed forms call the fastest.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

// The row of `table` for call.kind with the lowest closed form, among those that can serve the call, have a closed form
// and are no variants; on a tie the earlier row. Null when there is none. `view` is rank 0's: closed forms describe the
// whole call, and whether an algorithm fits is the same on every rank. Microseconds; allocates nothing.
const Algorithm* cheapest(const Call& call, const View& view, const CostModel& model,
                          std::span<const Algorithm> table = algorithms());

}  // namespace gccl
