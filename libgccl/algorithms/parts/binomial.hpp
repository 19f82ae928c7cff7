// Binomial trees that carry vectors to the first number or from it: parts of collectives and of all-reduces.
// Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), sections 4.2 and 4.5. ceil(log2 n) steps each.
#pragma once

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/schedule/schedule.hpp"

namespace gccl {

// The sum of all ranks' `in` is left in `sum` of number 0. Elsewhere `sum` holds partial sums where
// binomial_reduce_sums(), else it is not touched. `in` and `sum` may be the same region.
Schedule binomial_reduce_to(Numbering u, Region in, Region sum);
bool binomial_reduce_sums(const Numbering& u);
Cost binomial_reduce_to_cost(Rank n, double bytes, const Paths& p);

// Leaves `in` of number 0 in `out` of all ranks. `in` is used there only, where it may be `out` itself.
Schedule binomial_broadcast_from(Numbering u, Region in, Region out);
Cost binomial_broadcast_from_cost(Rank n, double bytes, const Paths& p);

}  // namespace gccl
