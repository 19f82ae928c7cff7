#include "libgccl/algorithms/parts/ring.hpp"

namespace gccl {

Schedule ring_reduce_scatter(Ring g, Region in, Region out) {
  const Rank n = g.size;
  Step step = copy(in, out);
  if (n == 1) co_yield step;
  for (Rank s = 1; s < n; ++s) {
    const Rank give = g.behind(s), take = g.behind(s + 1);
    step = send(g.next, (s == 1 ? in : out).part(give, n));
    co_yield step;
    step = recv_reduce(g.before, in.part(take, n), out.part(take, n));
    co_yield step;
  }
}

Schedule ring_all_gather(Ring g, Region x) {
  const Rank n = g.size;
  Step step;
  for (Rank s = 0; s + 1 < n; ++s) {
    step = send(g.next, x.part(g.behind(s), n));
    co_yield step;
    step = recv(g.before, x.part(g.behind(s + 1), n));
    co_yield step;
  }
}

}  // namespace gccl
