#include "libgccl/algorithms/parts/ring.hpp"

namespace gccl {

Schedule ring_reduce_scatter(Ring g, Region in, Region out) {
  if (g.size == 1) co_yield copy(in, out);
  const Rank n = g.size;
  for (Rank s = 1; s < n; ++s) {
    const Rank give = g.behind(s), take = g.behind(s + 1);
    co_yield send(g.next, (s == 1 ? in : out).part(give, n));
    co_yield recv_reduce(g.before, in.part(take, n), out.part(take, n));
  }
}

Schedule ring_all_gather(Ring g, Region x) {
  const Rank n = g.size;
  for (Rank s = 0; s + 1 < n; ++s) {
    co_yield send(g.next, x.part(g.behind(s), n));
    co_yield recv(g.before, x.part(g.behind(s + 1), n));
  }
}

}  // namespace gccl
