// Binomial trees over any group, which carry vectors to the root or from it: parts of collectives and of all-reduces.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), sections 4.2 and 4.5. ceil(log2 n) steps each.
#pragma once

#include "libgccl/cost/paths.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// The sum of all members' `in` is left in `sum` of the member at position `root`. Elsewhere `sum` holds partial sums
// where binomial_reduce_sums(), else it is not touched. `in` and `sum` may be the same region.
Schedule binomial_reduce_to(Group g, Rank root, Region in, Region sum);
bool binomial_reduce_sums(const Group& g, Rank root);
Cost binomial_reduce_to_cost(Rank n, double bytes, const Paths& p);

// Leaves `in` of the member at position `root` in `out` of all members. `in` is used at the root only, where it may be
// `out` itself.
Schedule binomial_broadcast_from(Group g, Rank root, Region in, Region out);
Cost binomial_broadcast_from_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
