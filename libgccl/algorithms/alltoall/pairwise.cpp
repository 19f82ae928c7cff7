// Pairwise all-to-all and all-to-all-v: in each step every rank sends to one other rank and receives from one, never
// two from the same (turns.hpp). Every block is sent once, straight to its place: bandwidth-optimal, any n. No rank is
// asked for another rank's counts. Scratch: the share's whole input, in place only, where it is saved before it is
// overwritten.
#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

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
  for (Rank s = 1; s < turns.steps(); ++s) {
    const auto [to, from] = turns[s];
    if (to != r) co_yield send(to, source[to]);
    if (from != r) co_yield recv(from, target[from]);
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
  // What comes to, or from, the rank with most of it.
  const Cost t = std::max(all_pairs(v, m, block), busiest_rank_cost(c, v, m, false));
  return c.in_place ? m.copy(n > 1 ? n * block : 0) + t : std::max(t, m.copy(block));
}

}  // namespace

constexpr Algorithm alltoall_pairwise = {
    .name = "pairwise",
    .kind = Collective::alltoall,
    .source = "Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), on all-to-all of long messages",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = pairwise_all_to_all,
    .scratch = pairwise_all_to_all_scratch,
    .cost = pairwise_all_to_all_cost,
    .at_once = true,
};
constexpr Algorithm alltoallv_pairwise = alltoall_pairwise.of(Collective::alltoallv);

}  // namespace gccl
