#include "libgccl/cluster/link_loads.hpp"

namespace gccl {

RingLoads::Way way_round(const Messages& m, std::size_t first, std::size_t hops) {
  RingLoads::Way way{.hops = double(hops), .around = {}, .in_run = {}};
  std::vector<Hop> all;
  Hop slowest;
  double fastest_ns = INFINITY;
  for (std::size_t i = 0; i < hops; ++i) {
    const Hop& h = all.emplace_back(m.at(first + i, true));
    way.around = {way.around.alpha_ns + h.alpha_ns, way.around.beta_ns_per_byte + h.beta_ns_per_byte};
    slowest = {std::max(slowest.alpha_ns, h.alpha_ns), std::max(slowest.beta_ns_per_byte, h.beta_ns_per_byte)};
    fastest_ns = std::min(fastest_ns, h.beta_ns_per_byte);
  }
  way.slowest_ns = slowest.beta_ns_per_byte;
  constexpr double kAlike = 0.99;
  const bool by_bytes = fastest_ns < kAlike * slowest.beta_ns_per_byte;
  const auto slow = [&](const Hop& h) {
    return by_bytes ? h.beta_ns_per_byte >= kAlike * slowest.beta_ns_per_byte : h.alpha_ns >= kAlike * slowest.alpha_ns;
  };
  // Twice round: the run may go on where the order begins.
  double run = 0;
  Hop sum;
  for (std::size_t i = 0; i < 2 * hops; ++i) {
    const Hop& h = all[i % hops];
    if (slow(h)) {
      run = 0, sum = {};
      continue;
    }
    ++run;
    sum = {sum.alpha_ns + h.alpha_ns, sum.beta_ns_per_byte + h.beta_ns_per_byte};
    if (run > way.run && run < way.hops) way.run = run, way.in_run = {sum.alpha_ns / run, sum.beta_ns_per_byte / run};
  }
  return way;
}

LinkLoads::Next next_of(const Part& cluster, const Groups& groups) {
  const Messages next = shifted(cluster, groups, 1);
  LinkLoads::Next t{.ring = ring_of(next), .slowest = next.slowest()};
  std::size_t first = 0;
  for (const auto& g : groups) {
    if (g.size() < 2) continue;
    const RingLoads::Way way = way_round(next, first, g.size());
    if (g.size() == largest(groups) && way.around.alpha_ns > t.ring.way.around.alpha_ns) t.ring.way = way;
    first += g.size();
  }
  return t;
}

}  // namespace gccl
