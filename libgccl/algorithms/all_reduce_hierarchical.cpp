#include "libgccl/algorithms/all_reduce_hierarchical.hpp"

namespace gccl {

Schedule hierarchical_all_reduce_by(const Inner* inner, const Outer* outer, Call c, View v, Share mine) {
  Region in = slice(input_of(c, v.all.size, v.all.rank), mine);
  const Region out = slice(output_of(c, v.all.size, v.all.rank), mine);
  if (v.node.rank >= v.rails) {
    const Rank keeper = v.node[v.node.rank % v.rails];
    co_yield send(keeper, in);
    co_yield recv(keeper, out);
    co_return;
  }
  for (Count guest = Count(v.node.rank) + v.rails; guest < v.node.size; guest += v.rails) {
    co_yield recv_reduce(v.node[std::int64_t(guest)], in, out);
    in = out;
  }
  Group places = v.node;
  places.size = v.rails;
  co_yield two_level_all_reduce(inner, outer, places, v.rail, in, out);
  for (Count guest = Count(v.node.rank) + v.rails; guest < v.node.size; guest += v.rails)
    co_yield send(v.node[std::int64_t(guest)], out);
}

// With unlike nodes as seen from this rank's own node.
Cost hierarchical_all_reduce_by_cost(const Inner& inner, const Outer& outer, const Call& c, const View& v,
                                     const CostModel& m) {
  const double bytes = m.bytes(double(c.count));
  if (c.count == 0) return 0;
  if (v.all.size == 1) return c.in_place ? 0 : m.copy(bytes);
  const double guests = (v.node.size - 1) / v.rails;
  const Cost hosting = guests * (2 * m.node(bytes) + m.combine(bytes));
  return hosting + two_level_all_reduce_cost(inner, outer, v.rails, v.nodes, bytes, m);
}

}  // namespace gccl
