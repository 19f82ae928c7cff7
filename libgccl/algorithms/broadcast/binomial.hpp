// Binomial tree broadcast: the rank at position u gets the vector from the position u without its lowest bit.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4.2. ceil(log2 n) steps; a rank sends one vector to each
// child, the root ceil(log2 n) of them.
#pragma once

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {

// Leaves `in` of the member at position `root` in `out` of all members. `in` is used at the root only, where it may be
// `out` itself.
Schedule binomial_broadcast_from(Group g, Rank root, Region in, Region out);
Cost binomial_broadcast_from_cost(Rank n, double bytes, const Paths& p);

Schedule binomial_broadcast(Call c, View v, Share mine);
Cost binomial_broadcast_cost(const Call& c, const View& v, const CostModel& m);
Cost binomial_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s);

}  // namespace gccl
