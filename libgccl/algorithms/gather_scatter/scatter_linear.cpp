// Linear scatter: the root sends every rank its block.
#include <cmath>

#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule linear_scatter(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region out = output_of(c, v, mine);
  if (r != c.root) {
    co_yield recv(c.root, out);
    co_return;
  }
  const Blocks in = input_blocks(c, v, mine);
  for (Rank s = 1; s < n; ++s) {
    const Rank to = v.all[v.all.ahead(s)];
    co_yield send(to, in[to]);
  }
  co_yield copy(in[r], out);
}

Cost linear_scatter_cost(const Call& c, const View& v, const CostModel& m) {
  const double block = m.bytes(double(c.count));
  return std::max(fan_out(v, m, block), m.own_copy(c, block));
}

// How much less of the time in which the busiest link waits for other ones' messages each further chunk of a channel
// leaves, where many channels come to be with different ranks. By the flow engine's times of 32 ranks of
// dgx-h100-superpod-2048 and 144 of gb200-nvl72-576, 16 MiB a rank in 4 to 32 channels.
constexpr double kApart = 1.2;
constexpr Count kChannelsInStep = 4;  // so few stay with the same rank

// A channel's next chunk leaves when the one before has left for all ranks, as far as the window reaches beyond them.
Cost linear_scatter_interval(const Call& c, const View& v, const CostModel& m, const Slicing& s) {
  const Cost one = linear_scatter_cost(c, v, m);
  if (s.shares <= 1 || v.all.size <= 1) return one;
  const double block = m.bytes(double(c.count)), each = std::ceil(double(s.shares) / double(s.lanes));
  double in_step = each > 1 ? std::max(0.0, 1 - double(s.window) / (v.all.size - 1)) : 1;
  if (s.lanes > kChannelsInStep) in_step /= 1 + kApart * (each - 1);
  const Cost end = fan_out(with_channels(v, s.lanes), m, block, double(s.shares), in_step);
  return std::max((end - one) / double(s.shares - 1), m.own_copy(c, block));
}

}  // namespace

constexpr Algorithm scatter_linear = {
    .name = "linear",
    .kind = Collective::scatter,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "(n-1) b",
    .make = linear_scatter,
    .cost = linear_scatter_cost,
    .at_once = true,
    .interval = linear_scatter_interval,
};

}  // namespace gccl
