// Binomial scatter: a subtree's blocks go down as one message and are divided on the way.
// Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), on broadcast (van de Geijn's scatter). Positions count
// from the root, cyclically. ceil(log2 n) steps; the root sends n-1 blocks, the rank at position u one block less than
// its subtree of min(lowest bit of u, n - u). A subtree that passes rank n-1 leaves the root as two messages, slices
// one by one. Scratch: the subtree's blocks on ranks between the root and the leaves.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl {

Schedule binomial_scatter(Call c, View v, Share mine);
Count binomial_scatter_scratch(const Call& c, const View& v, Share mine);
Cost binomial_scatter_cost(const Call& c, const View& v, const CostModel& m);

}  // namespace gccl
