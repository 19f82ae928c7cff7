#include "libgccl/algorithms/broadcast/binomial.hpp"

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/cost/binomial_cost.hpp"

namespace gccl {

Schedule binomial_broadcast_from(Group g, Rank root, Region in, Region out) {
  const Numbering u = Numbering::from(g, root);
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

Schedule binomial_broadcast(Call c, View v, Share mine) {
  return binomial_broadcast_from(v.all, c.root, slice(input_of(c, v.all.size, v.all.rank), mine),
                                 slice(output_of(c, v.all.size, v.all.rank), mine));
}

Cost binomial_broadcast_cost(const Call& c, const View& v, const CostModel& m) {
  return broadcast_cost<binomial_broadcast_from_cost>(c, v, m);
}

Cost binomial_broadcast_interval(const Call& c, const View& v, const CostModel& m, const Slicing&) {
  return binomial_interval(v.all.size, m.bytes(double(c.count)), m.overhead_ns, Paths(v, m));
}

}  // namespace gccl
