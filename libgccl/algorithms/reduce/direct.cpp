// Direct reduce: every rank sends its vector to the root, which sums them in the order of ranks 0, 1, ..., n-1. One
// latency where messages overlap, but the root's port carries n-1 vectors and the root combines all of them. Scratch:
// one vector at a root above rank 1, in place only.
#include "libgccl/algorithms/table.hpp"
#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

Schedule direct_reduce(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = input_of(c, v, mine);
  if (r != c.root) {
    co_yield send(c.root, in);
    co_return;
  }
  const Region out = output_of(c, v, mine);
  if (n == 1) co_yield copy(in, out);
  if (r == 1) co_yield recv_reduce(0, in, out);  // two summands commute
  if (r > 1) {
    const Region lower = c.in_place ? Region{Buffer::scratch, 0, in.count} : out;  // the sum of the ranks below
    co_yield recv(0, lower);
    for (Rank p = 1; p < r; ++p) co_yield recv_reduce(p, lower);
    co_yield reduce(c.in_place ? lower : in, out);
  }
  for (Rank p = r + 1; p < n; ++p) co_yield recv_reduce(p, p == 1 ? in : out, out);
}

Count direct_reduce_scratch(const Call& c, const View& v, Share mine) {
  const bool apart = c.in_place && v.all.rank == c.root && v.all.rank > 1;
  return apart ? input_of(c, v, mine).count : 0;
}

// The vectors arrive one behind the other and are combined in that order.
Cost direct_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count)), combine = m.combine(bytes);
  if (c.count == 0) return 0;
  if (v.all.size == 1) return m.own_copy(c, bytes);
  // Long vectors share the root's port in turns and end together: none is combined while others arrive.
  if (bytes > kTurnsAbove) return fan_in(v, m, bytes) + (v.all.size - 1) * combine;
  const Hop& first = v.fullest > 1 ? m.node : m.net;  // the root's neighbours' are there first
  return combine + std::max(fan_in(v, m, bytes), first(bytes) + (v.all.size - 2) * combine);
}

}  // namespace

constexpr Algorithm reduce_direct = {
    .name = "direct",
    .kind = Collective::reduce,
    .source = "Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 19 (2007), on simple algorithms",
    .steps = "n-1",
    .bytes = "V",
    .make = direct_reduce,
    .scratch = direct_reduce_scratch,
    .cost = direct_reduce_cost,
};

}  // namespace gccl
