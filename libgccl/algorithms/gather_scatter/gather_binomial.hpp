// Binomial gather: subtrees collect their blocks and pass them on as one message.
// Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005); Chan et al., Concurrency and Computation 19 (2007), on minimum
// spanning trees. Positions count from the root, cyclically. ceil(log2 n) steps at the root; the rank at
// position u sends its subtree's min(lowest bit of u, n - u) blocks. The root receives at the blocks' places: a subtree
// that passes rank n-1 comes as two messages, slices come one by one.
// Scratch: the subtree's blocks on ranks between the root and the leaves.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule binomial_gather(Call c, View v, Share mine);
Count binomial_gather_scratch(const Call& c, const View& v, Share mine);
Cost binomial_gather_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
