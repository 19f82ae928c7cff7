// Direct all-gather: every rank sends its block to each other rank, in the order of turns.hpp. No step depends on an
// earlier one: bandwidth-optimal, and one latency where messages overlap. For few ranks and for crossbars.
#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule direct_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  Displacement out = Displacement::received(c, mine, r, output_of(c, n, r));
  const Turns turns(v);
  for (Rank s = 1; s < turns.steps(); ++s) {
    const auto [to, from] = turns[s];
    if (to != r) co_yield send(to, in);
    if (from != r) co_yield recv(from, out[from]);
  }
  co_yield copy(in, out[r]);
}

Cost direct_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(largest_block(c, v.all.size)));
  return std::max(all_pairs(v, m, block), m.own_copy(c, block));
}

}  // namespace

constexpr Algorithm allgather_direct = {
    .name = "direct",
    .kind = Collective::allgather,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = direct_all_gather,
    .cost = direct_all_gather_cost,
    .at_once = true,
};
constexpr Algorithm allgatherv_direct = allgather_direct.of(Collective::allgatherv);

}  // namespace gccl
