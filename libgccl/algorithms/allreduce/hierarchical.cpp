#include "libgccl/algorithms/allreduce/hierarchical.hpp"

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
  // Guests' vectors come and go at once, but are added one after the other.
  const double guests = (CostModel::per_node(v) - 1) / v.rails;
  const Hop in = m.inside.known() ? m.inside.fan_in : m.node;
  const double port = m.inside.known() ? m.inside.fan_in_ns_per_byte : m.node.beta_ns_per_byte;
  const double gap = std::max({bytes * port, m.combine(bytes), m.receive_overhead_ns});
  const Cost hosting = guests == 0 ? 0
                                   : in(bytes) + (guests - 1) * gap + m.combine(bytes) + in(bytes) +
                                         (guests - 1) * std::max(bytes * port, m.overhead_ns);
  return hosting + two_level_all_reduce_cost(inner, outer, v.rails, v.nodes, bytes, m);
}

}  // namespace gccl
