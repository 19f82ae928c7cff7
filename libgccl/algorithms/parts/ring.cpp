#include "libgccl/algorithms/parts/ring.hpp"

namespace gccl {

Schedule ring_reduce_scatter(Group g, Region in, Region out) {
  if (g.size == 1) co_yield copy(in, out);
  const Rank n = g.size, next = g[std::int64_t(g.rank) + 1], before = g[std::int64_t(g.rank) - 1];
  for (Rank s = 1; s < n; ++s) {
    const Count give = Count(g.wrap(std::int64_t(g.rank) - s)), take = Count(g.wrap(std::int64_t(g.rank) - s - 1));
    co_yield send(next, (s == 1 ? in : out).part(give, n));
    co_yield recv_reduce(before, in.part(take, n), out.part(take, n));
  }
}

Schedule ring_all_gather(Group g, Region x) {
  const Rank n = g.size, next = g[std::int64_t(g.rank) + 1], before = g[std::int64_t(g.rank) - 1];
  for (Rank s = 0; s + 1 < n; ++s) {
    co_yield send(next, x.part(Count(g.wrap(std::int64_t(g.rank) - s)), n));
    co_yield recv(before, x.part(Count(g.wrap(std::int64_t(g.rank) - s - 1)), n));
  }
}

}  // namespace gccl
