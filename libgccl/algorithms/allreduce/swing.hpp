// Swing all-reduce: a reduce-scatter and an all-gather whose partners swing to and fro, +1, -1, +3, -5, +11, ... ranks
// away, so that messages stay short-range on rings and tori.
// De Sensi, Bonato, Saam, Hoefler, "Swing: short-cutting rings for higher bandwidth allreduce", NSDI 2024, section 3.
// 2 log2 n steps, 2 (n-1)/n of the vector sent per rank. Other n are folded (folded.hpp).
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

// Whom `rank` meets in that step. Requires n = a power of two.
Rank swing_partner(Rank n, Rank rank, unsigned step);

Schedule swing_all_reduce(Group g, Region in, Region out);
Cost swing_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
