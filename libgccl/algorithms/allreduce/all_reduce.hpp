// The common shape of all-reduce algorithms, so that each serves as a collective and as a part of a hierarchy.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {

// Leaves the sum of all members' `in` in every member's `out`; the two may be the same region. Works for any group size
// and any count; `out` holds partial sums on the way, so none needs scratch.
using GroupAllReduce = Schedule (*)(Group, Region in, Region out);

template <GroupAllReduce over>
Schedule all_reduce(Call c, View v, Share mine) {
  return over(v.all, slice(input_of(c, v.all.size, v.all.rank), mine),
              slice(output_of(c, v.all.size, v.all.rank), mine));
}

}  // namespace gccl
