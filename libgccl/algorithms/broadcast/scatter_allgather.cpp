#include "libgccl/algorithms/broadcast/scatter_allgather.hpp"

#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/cost/paths.hpp"

namespace gccl {
namespace {

// Number i gets parts i .. i + (its lowest bit) - 1, from the root's `have`.
Schedule scatter_parts(Numbering g, Region have) {
  const Count n = g.size, i = g.rank, size = i == 0 ? std::bit_ceil(n) : i & (~i + 1);
  if (i > 0) co_yield recv(g[Rank(i - size)], have.parts(i, std::min(size, n - i), n));
  for (Count distance = size / 2; distance > 0; distance /= 2)
    if (i + distance < n)
      co_yield send(g[Rank(i + distance)], have.parts(i + distance, std::min(distance, n - i - distance), n));
}

Schedule ring_of_parts(Numbering g, Region have) {
  const Count n = g.size, i = g.rank;
  for (Count s = 0; s + 1 < n; ++s) {
    if (i + 1 < n) co_yield send(g[Rank(i + 1)], have.part((i + n - s) % n, n));
    if (i > 0) co_yield recv(g[Rank(i - 1)], have.part((i + n - s - 1) % n, n));
  }
}

// The root's parts enter the ring one by one once it has started the scatter's messages, and travel n-1 hops; what
// others got in the scatter is on its way before that.
Cost broadcast_scatter_allgather_over(Rank n, double bytes, const Paths& p) {
  const double part = bytes / n;
  Cost scatter = 0;
  for (Count parts = 1; parts < n; parts *= 2)
    scatter +=
        std::max(p.model().overhead_ns, p.binomial(parts).beta_ns_per_byte * double(std::min(parts, n - parts)) * part);
  return scatter + p.ring(n - 1, part, 0);
}

}  // namespace

Schedule scatter_allgather_broadcast(Call c, View v, Share mine) {
  const Numbering u = Numbering::from(v.all, c.root);
  const Region in = slice(input_of(c, v.all.size, v.all.rank), mine);
  const Region out = slice(output_of(c, v.all.size, v.all.rank), mine);
  co_yield scatter_parts(u, u.rank == 0 ? in : out);
  co_yield ring_of_parts(u, u.rank == 0 ? in : out);
  if (u.rank == 0) co_yield copy(in, out);
}

Cost scatter_allgather_broadcast_cost(const Call& c, const View& v, const CostModel& m) {
  return broadcast_cost<broadcast_scatter_allgather_over>(c, v, m);
}

}  // namespace gccl
