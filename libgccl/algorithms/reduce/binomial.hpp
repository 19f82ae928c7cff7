// Binomial tree reduce: the rank at position u sends its sum to the position u without its lowest bit.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.5. ceil(log2 n) steps; every rank but the root sends one
// vector. Scratch: one vector on ranks between the root and the leaves.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {

// The sum of all members' `in` is left in `sum` of the member at position `root`. Elsewhere `sum` holds partial sums
// where binomial_reduce_sums(), else it is not touched. `in` and `sum` may be the same region.
Schedule binomial_reduce_to(Group g, Rank root, Region in, Region sum);
bool binomial_reduce_sums(const Group& g, Rank root);
Cost binomial_reduce_to_cost(Rank n, double bytes, const Paths& p);

Schedule binomial_reduce(Call c, View v, Share mine);
Count binomial_reduce_scratch(const Call& c, const View& v, Share mine);
Cost binomial_reduce_cost(const Call& c, const View& v, const CostModel& m);
Cost binomial_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s);

}  // namespace gccl
