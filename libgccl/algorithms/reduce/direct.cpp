#include "libgccl/algorithms/reduce/direct.hpp"

#include "libgccl/cost/paths.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {

Schedule direct_reduce(Call c, View v, Share mine) {
  const Rank n = v.all.size, r = v.all.rank;
  const Region in = slice(input_of(c, n, r), mine);
  if (r != c.root) {
    co_yield send(c.root, in);
    co_return;
  }
  const Region out = slice(output_of(c, n, r), mine);
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
  return apart ? slice(input_of(c, v.all.size, v.all.rank), mine).count : 0;
}

// The vectors arrive one behind the other and are combined in that order.
Cost direct_reduce_cost(const Call& c, const View& v, const CostModel& m) {
  const double bytes = m.bytes(double(c.count)), combine = m.combine(bytes);
  if (c.count == 0) return 0;
  if (v.all.size == 1) return c.in_place ? 0 : m.copy(bytes);
  // Long vectors share the root's port in turns and end together: none is combined while others arrive.
  if (bytes > kTurnsAbove) return fan_in(v, m, bytes) + (v.all.size - 1) * combine;
  const Hop& first = CostModel::per_node(v) > 1 ? m.node : m.net;  // the root's neighbours' are there first
  return combine + std::max(fan_in(v, m, bytes), first(bytes) + (v.all.size - 2) * combine);
}

}  // namespace gccl
