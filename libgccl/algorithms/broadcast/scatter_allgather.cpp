// Van de Geijn's broadcast for long vectors: a binomial scatter of n parts, then a ring all-gather, which stops before
// the root: that has everything. Other ranks than the root send at most 3/2 of the vector.
#include "libgccl/algorithms/parts/numbering.hpp"
#include "libgccl/algorithms/table.hpp"
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
    scatter += std::max(p.model().overhead_ns,
                        p.binomial(parts, Tree::down).beta_ns_per_byte * double(std::min(parts, n - parts)) * part);
  // The first parts travel while the scatter's messages leave, and where both take one way these take twice as long.
  const Cost meanwhile =
      p.ring_in_way() ? std::min(scatter, (n - 1) * part * p.binomial(n / 2, Tree::down).beta_ns_per_byte) : 0;
  return scatter + meanwhile + p.ring(n - 1, part, 0);
}

Schedule scatter_allgather_broadcast(Call c, View v, Share mine) {
  const Numbering u = Numbering::from(v, c.root);
  const Region in = input_of(c, v, mine);
  const Region out = output_of(c, v, mine);
  co_yield scatter_parts(u, u.rank == 0 ? in : out);
  co_yield ring_of_parts(u, u.rank == 0 ? in : out);
  if (u.rank == 0) co_yield copy(in, out);
}

}  // namespace

constexpr Algorithm broadcast_scatter_allgather = {
    .name = "scatter_allgather",
    .kind = Collective::broadcast,
    .source = "Barnett et al., \"Interprocessor collective communication library\", SHPCC 1994",
    .steps = "ceil(log2 n) + n-1",
    .bytes = "2 (n-1)/n V",
    .make = scatter_allgather_broadcast,
    .cost = broadcast_cost<broadcast_scatter_allgather_over>,
};

}  // namespace gccl
