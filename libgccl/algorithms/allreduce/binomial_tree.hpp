// Binomial tree all-reduce: a reduce to the first member, then a broadcast from it.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), sections 4.2 and 4.5. 2 ceil(log2 n) steps; a rank sends one vector up
// and one to each child, the first ceil(log2 n) of them: n-1 messages in each half, the fewest.
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

Schedule binomial_tree_all_reduce(Group g, Region in, Region out);
Cost binomial_tree_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
