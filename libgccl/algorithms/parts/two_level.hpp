// An all-reduce of two levels, put together from parts that know nothing of each other: reduce-scatter in the inner
// group, all-reduce of each member's part over its outer group, all-gather in the inner group.
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

// How the inner group divides a vector and puts it together again: afterwards the member at position i has part i of
// `out` reduced. `in` and `out` may be the same region.
struct Inner {
  Schedule (*reduce_scatter)(Group, Region in, Region out);
  Schedule (*all_gather)(Group, Region x);
  GroupCost cost;  // of both
};
struct Outer {
  GroupAllReduce all_reduce;
  GroupCost cost;
};

extern const Inner kInnerRing, kInnerRecursiveHalving, kInnerPairwise;
extern const Outer kOuterRing, kOuterRecursiveDoubling, kOuterRabenseifner, kOuterBinomialTree, kOuterDoubleBinaryTree,
    kOuterSwing;

// All-reduce over inner x outer ranks. Each member of the inner group is in an outer group of its own, at the same
// position as the others are in theirs. `in` and `out` may be the same region.
Schedule two_level_all_reduce(const Inner* inner_by, const Outer* outer_by, Group inner, Group outer, Region in,
                              Region out);
Cost two_level_all_reduce_cost(const Inner& inner_by, const Outer& outer_by, Rank inner, Rank outer, double bytes,
                               const CostModel& m);

}  // namespace gccl
