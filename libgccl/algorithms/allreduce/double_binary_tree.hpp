// Double binary tree all-reduce: two binary trees carry half of the vector each, up to their roots and down again; a
// rank has children in only one of them, so its port is used fully in both directions. Sanders, Speck, Traeff, Parallel
// Computing 35 (2009), sections 2 and 3; used by NCCL since 2.4. At most 4 floor(log2 n) steps deep; a rank sends one
// vector up (half of it in each tree) and half a vector to each child.
#pragma once

#include "libgccl/algorithms/allreduce/all_reduce.hpp"

namespace gccl {

Schedule double_binary_tree_all_reduce(Group g, Region in, Region out);
Cost double_binary_tree_all_reduce_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
