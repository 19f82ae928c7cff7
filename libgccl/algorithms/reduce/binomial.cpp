#include "libgccl/algorithms/reduce/binomial.hpp"

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/reduce/reduce.hpp"
#include "libgccl/cost/binomial_cost.hpp"

namespace gccl {

Schedule binomial_reduce_to(Group g, Rank root, Region in, Region sum) {
  if (g.size == 1) co_yield copy(in, sum);
  const Numbering u = Numbering::from(g, root);
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

bool binomial_reduce_sums(const Group& g, Rank root) {
  const Rank u = Numbering::from(g, root).rank;
  return u % 2 == 0 && u + 1 < g.size;
}

Cost binomial_reduce_to_cost(Rank n, double bytes, const Paths& p) {
  return binomial_up(n, {.vector = bytes}, true, p);
}

Schedule binomial_reduce(Call c, View v, Share mine) {
  return binomial_reduce_to(v.all, c.root, slice(input_of(c, v.all.size, v.all.rank), mine), sums_of(c, v, mine));
}

Count binomial_reduce_scratch(const Call& c, const View& v, Share mine) {
  return v.all.rank != c.root && binomial_reduce_sums(v.all, c.root) ? sums_of(c, v, mine).count : 0;
}

Cost binomial_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  return vector_cost<binomial_reduce_to_cost>(c, v, m);
}

// A rank in the middle sends a chunk's sums from the lane's scratch, which the next chunk's wait for.
Cost binomial_reduce_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const double bytes = m.bytes(double(c.count));
  const Paths p(v, m);
  const Cost cycle = binomial_cycle(v.all.size, bytes, p) / double(s.lanes);
  return std::max(binomial_interval(v.all.size, bytes, std::max(m.receive_overhead_ns, m.combine(bytes)), p), cycle);
}

}  // namespace gccl
