// Direct broadcast: the root sends the vector to each other rank, those of its node first. One latency where messages
// overlap, but the root's port carries n-1 vectors.
//
// Staged: out of scratch, into which the root copies each chunk, the next while the ranks read the one before. Where
// ranks read each other's memory, scratch can be mapped by all of them, and the program's vector only read through the
// system, which lets readers of the same pages wait for each other.
#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule direct_broadcast(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region out = output_of(c, v, mine);
  if (r != c.root) {
    co_yield recv(c.root, out);
    co_return;
  }
  const Region in = input_of(c, v, mine);
  const RootOrder order(v, c.root);
  for (Rank i = 1; i < n; ++i) co_yield send(order[i], in);
  co_yield copy(in, out);
}

Cost direct_broadcast_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  return c.count == 0 ? 0 : std::max(fan_out(v, m, bytes), m.own_copy(c, bytes));
}

// Two places, for a channel's chunks in turns.
Count longest_chunk(const Call& c, Share mine) { return (c.count + mine.of - 1) / mine.of; }
Count staging(const Call& c, const View& v, Share mine) {
  return v.all.rank == c.root ? std::min<Count>(mine.of, 2) * longest_chunk(c, mine) : 0;
}

Schedule staged_broadcast(Call c, View v, Share mine) {
  const Rank n = v.all.size;
  if (v.all.rank != c.root) {
    co_yield recv(c.root, output_of(c, v, mine));
    co_return;
  }
  const Region in = input_of(c, v, mine);
  const Region staged{Buffer::scratch, mine.index / v.channels % 2 * longest_chunk(c, mine), in.count};
  if (n > 1) co_yield copy(in, staged);
  const RootOrder order(v, c.root);
  for (Rank i = 1; i < n; ++i) co_yield send(order[i], staged);
  co_yield copy(in, output_of(c, v, mine));
}

Cost staged_broadcast_cost(const Call& c, const View& v, const CostModel& m) {
  return direct_broadcast_cost(c, v, m) + (v.all.size > 1 ? m.copy(m.bytes(double(c.count))) : 0);
}

}  // namespace

constexpr Algorithm broadcast_direct = {
    .name = "direct",
    .kind = Collective::broadcast,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "(n-1) V",
    .make = direct_broadcast,
    .cost = direct_broadcast_cost,
};

constexpr Algorithm broadcast_direct_staged = {
    .name = "direct_staged",
    .kind = Collective::broadcast,
    .source = "Graham, Shipman, EuroPVM/MPI (2008), on collectives through shared memory",
    .steps = "n-1",
    .bytes = "(n-1) V",
    .make = staged_broadcast,
    .scratch = staging,
    .stages = true,
    .cost = staged_broadcast_cost,
    .variant = true,
};

}  // namespace gccl
