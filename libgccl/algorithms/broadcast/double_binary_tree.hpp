// Double binary tree broadcast: the root hands half of the vector to each of two binary trees of the other ranks; a
// rank has children in only one of them. Sanders, Speck, Traeff, Parallel Computing 35 (2009), section 3. At most 2 (1
// + floor(log2 (n-1))) steps deep; the root sends one vector, other ranks half a vector to each child.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule double_binary_tree_broadcast(Call c, View v, Share mine);
Cost double_binary_tree_broadcast_cost(const Call& c, const View& v, const CostModel& m);
Cost double_binary_tree_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s);

}  // namespace gccl
