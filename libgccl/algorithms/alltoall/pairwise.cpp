#include "libgccl/algorithms/alltoall/pairwise.hpp"

#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {

Schedule pairwise_all_to_all(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, n, r);
  Displacement source = Displacement::sent(c, mine, r, in);
  Displacement target = Displacement::received(c, mine, r, output_of(c, n, r));
  if (c.in_place && n > 1) {
    Displacement saved = Displacement::saved(c, mine, r, {Buffer::scratch, 0, 0});
    for (Rank p = 0; p < n; ++p) co_yield copy(source[p], saved[p]);
    source = saved;
  }
  const Turns turns(v);
  for (Rank s = 1; s < n; ++s) {
    const auto [to, from] = turns[s];
    co_yield send(to, source[to]);
    co_yield recv(from, target[from]);
  }
  if (!c.in_place) co_yield copy(source[r], target[r]);
}

Count pairwise_all_to_all_scratch(const Call& c, const View& v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  if (!c.in_place || n == 1) return 0;
  if (c.kind == Collective::alltoall) return n * block_count(c, mine, r, r);
  Count total = 0;
  for (Rank p = 0; p < n; ++p) total += block_count(c, mine, r, p);
  return total;
}

Cost pairwise_all_to_all_cost(const Call& c, const View& v, const CostModel& m) {
  const double n = v.all.size, block = m.bytes(mean_block(c, v.all.size));
  const Cost t = all_pairs(v, m, block);
  return c.in_place ? m.copy(n > 1 ? n * block : 0) + t : std::max(t, m.copy(block));
}

double mean_block(const Call& c, Rank ranks) {
  if (c.kind != Collective::alltoallv || c.places) return double(c.count);
  double total = 0;
  for (Rank r = 0; r < ranks; ++r) total += double(c.between(r, Rank((2 * Count(r) + 1) % ranks)));
  return total / ranks;
}

}  // namespace gccl
