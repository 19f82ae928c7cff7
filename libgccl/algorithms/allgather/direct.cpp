#include "libgccl/algorithms/allgather/direct.hpp"

#include "libgccl/algorithms/parts/displacement.hpp"
#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {

Schedule direct_all_gather(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = slice(input_of(c, n, r), mine);
  Displacement out = Displacement::received(c, mine, r, output_of(c, n, r));
  const Turns turns(v);
  for (Rank s = 1; s < n; ++s) {
    const auto [to, from] = turns[s];
    co_yield send(to, in);
    co_yield recv(from, out[from]);
  }
  co_yield copy(in, out[r]);
}

Cost direct_all_gather_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(largest_block(c, v.all.size)));
  return std::max(all_pairs(v, m, block), m.copy(c.in_place ? 0 : block));
}

}  // namespace gccl
