#include "libgccl/algorithms/parts/binomial.hpp"

#include "libgccl/cost/binomial_cost.hpp"

namespace gccl {

Schedule binomial_reduce_to(Numbering u, Region in, Region sum) {
  if (u.size == 1) co_yield copy(in, sum);
  Region have = in;  // the last position may be a leaf although it is even
  for (Count distance = 1; distance < u.size; distance *= 2) {
    if (u.rank & distance) {
      co_yield send(u[Rank(u.rank - distance)], have);
      co_return;
    }
    if (u.rank + distance >= u.size) continue;
    co_yield recv_reduce(u[Rank(u.rank + distance)], have, sum);
    have = sum;
  }
}

bool binomial_reduce_sums(const Numbering& u) { return u.rank % 2 == 0 && u.rank + 1 < u.size; }

Cost binomial_reduce_to_cost(Rank n, double bytes, const Paths& p) {
  return binomial_up(n, {.vector = bytes}, true, p);
}

Schedule binomial_broadcast_from(Numbering u, Region in, Region out) {
  const Region have = u.rank == 0 ? in : out;
  const Count above = u.rank == 0 ? std::bit_ceil(Count(u.size)) : Count(u.rank & -u.rank);
  if (u.rank > 0) co_yield recv(u[u.rank & (u.rank - 1)], out);
  for (Count distance = above / 2; distance > 0; distance /= 2)
    if (u.rank + distance < u.size) co_yield send(u[Rank(u.rank + distance)], have);
  if (u.rank == 0) co_yield copy(in, out);
}

Cost binomial_broadcast_from_cost(Rank n, double bytes, const Paths& p) {
  return binomial_down(n, {.vector = bytes}, p);
}

}  // namespace gccl
