// The all-reduces that serve as a collective and as a part of a hierarchy; each is defined in allreduce/.
#pragma once

#include "libgccl/algorithms/parts/binary_tree.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// Leaves the sum of all members' `in` in every member's `out`; the two may be the same region. Works for any group size
// and any count; `out` holds partial sums on the way, so none needs scratch.
using GroupAllReduce = Schedule (*)(Group, Region in, Region out);

template <GroupAllReduce over>
Schedule all_reduce(Call c, View v, Share mine) {
  return over(v.all, input_of(c, v, mine), output_of(c, v, mine));
}

Schedule ring_all_reduce(Group g, Region in, Region out);
Cost ring_all_reduce_cost(Rank n, double bytes, const Paths& p);
Schedule recursive_doubling_all_reduce(Group g, Region in, Region out);
Cost recursive_doubling_all_reduce_cost(Rank n, double bytes, const Paths& p);
Schedule rabenseifner_all_reduce(Group g, Region in, Region out);
Cost rabenseifner_all_reduce_cost(Rank n, double bytes, const Paths& p);
Schedule binomial_tree_all_reduce(Group g, Region in, Region out);
Cost binomial_tree_all_reduce_cost(Rank n, double bytes, const Paths& p);
Schedule double_binary_tree_all_reduce(Group g, Region in, Region out);
// Its halves in one tree: up to the root, with the sums in `out`, and down again.
Schedule tree_up(Group g, TreePlace place, Region in, Region out);
Schedule tree_down(Group g, TreePlace place, Region out);
Cost double_binary_tree_all_reduce_cost(Rank n, double bytes, const Paths& p);
Schedule swing_all_reduce(Group g, Region in, Region out);
Cost swing_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
