// An all-reduce of two levels, put together from parts that know nothing of each other: reduce-scatter in the inner
// group, all-reduce of each member's part over its outer group, all-gather in the inner group.
#pragma once

#include "libgccl/algorithms/parts/all_reduce.hpp"
#include "libgccl/algorithms/parts/pairwise.hpp"
#include "libgccl/algorithms/parts/ring.hpp"

namespace gccl {

// How the inner group divides a vector and puts it together again: afterwards the member at position i has part i of
// `out` reduced. `in` and `out` may be the same region.
struct Inner {
  std::string_view name;
  std::string_view steps, bytes;  // of both, for g members and a vector V: see Algorithm; "at most" where `bound`
  bool bound;
  Schedule (*reduce_scatter)(Group, Region in, Region out);
  Schedule (*all_gather)(Group, Region x);
  GroupCost cost;  // of both
};
struct Outer {
  std::string_view name;
  std::string_view steps, bytes;  // for k members and a vector V/g
  bool bound;
  GroupAllReduce all_reduce;
  GroupCost cost;
};

Schedule halving_over(Group g, Region in, Region out);
Schedule doubling_over(Group g, Region x);
Cost halving_over_cost(Rank n, double bytes, const Paths& p);
Schedule pairwise_over(Group g, Region in, Region out);
Schedule pairwise_gather_over(Group g, Region x);

inline constexpr Inner kInnerRing{
    .name = "ring",
    .steps = "2 (g-1)",
    .bytes = "2 (g-1)/g V",
    .bound = false,
    .reduce_scatter = ring_reduce_scatter,
    .all_gather = ring_all_gather,
    .cost = ring_all_reduce_cost,
};
inline constexpr Inner kInnerRecursiveHalving{
    .name = "recursive_halving",
    .steps = "4 ceil(log2 g)",
    .bytes = "2 (g-1)/g V",
    .bound = true,
    .reduce_scatter = halving_over,
    .all_gather = doubling_over,
    .cost = halving_over_cost,
};
inline constexpr Inner kInnerPairwise{
    .name = "pairwise",
    .steps = "2 (g-1)",
    .bytes = "2 (g-1)/g V",
    .bound = false,
    .reduce_scatter = pairwise_over,
    .all_gather = pairwise_gather_over,
    .cost = pairwise_cost,
};

inline constexpr Outer kOuterRing{
    .name = "ring",
    .steps = "2 (k-1)",
    .bytes = "2 (k-1)/k V/g",
    .bound = false,
    .all_reduce = ring_all_reduce,
    .cost = ring_all_reduce_cost,
};
inline constexpr Outer kOuterRecursiveDoubling{
    .name = "recursive_doubling",
    .steps = "floor(log2 k) + 2",
    .bytes = "(floor(log2 k) + 1) V/g",
    .bound = true,
    .all_reduce = recursive_doubling_all_reduce,
    .cost = recursive_doubling_all_reduce_cost,
};
inline constexpr Outer kOuterRabenseifner{
    .name = "rabenseifner",
    .steps = "4 ceil(log2 k)",
    .bytes = "2 (k-1)/k V/g",
    .bound = true,
    .all_reduce = rabenseifner_all_reduce,
    .cost = rabenseifner_all_reduce_cost,
};
inline constexpr Outer kOuterBinomialTree{
    .name = "binomial_tree",
    .steps = "2 ceil(log2 k)",
    .bytes = "ceil(log2 k) V/g",
    .bound = false,
    .all_reduce = binomial_tree_all_reduce,
    .cost = binomial_tree_all_reduce_cost,
};
inline constexpr Outer kOuterDoubleBinaryTree{
    .name = "double_binary_tree",
    .steps = "5 floor(log2 k) + 2",
    .bytes = "2 V/g",
    .bound = true,
    .all_reduce = double_binary_tree_all_reduce,
    .cost = double_binary_tree_all_reduce_cost,
};
inline constexpr Outer kOuterSwing{
    .name = "swing",
    .steps = "2 floor(log2 k) + 2",
    .bytes = "3 V/g",
    .bound = true,
    .all_reduce = swing_all_reduce,
    .cost = swing_all_reduce_cost,
};

// All-reduce over inner x outer ranks. Each member of the inner group is in an outer group of its own, at the same
// position as the others are in theirs. `in` and `out` may be the same region.
Schedule two_level_all_reduce(const Inner* inner_by, const Outer* outer_by, Group inner, Group outer, Region in,
                              Region out);
Cost two_level_all_reduce_cost(const Inner& inner_by, const Outer& outer_by, Rank inner, Rank outer, double bytes,
                               const CostModel& m);

}  // namespace gccl
