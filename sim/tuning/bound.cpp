#include "sim/tuning/bound.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace gccl::sim {

double least_ns(const Cluster& cluster, const std::vector<Card>& cards, const Algorithm& algorithm, const Call& call,
                const Layout& layout, unsigned element_bytes, const Protocol& protocol) {
  const Rank n = layout.ranks();
  // What these ranks send and receive on each link, and what the longest occupied one is busy for. Every sample's
  // messages travel in the one call, so their loads add up; a message between two samples is counted once, as sent.
  const std::set<Rank> samples{0, std::min<Rank>(1, n - 1), n / 2, n - 1};
  std::unordered_map<LinkId, double> load;
  std::vector<LinkId> route;
  double longest = 0;
  const auto carry = [&](Rank from, Rank to, Count count) {
    if (algorithm.channels) return;  // other channels have other orders, and so other links
    const double bytes = double(count) * element_bytes /
                         protocol.way(cluster.node_of(cards[from]) == cluster.node_of(cards[to])).efficiency;
    cluster.route(cards[from], cards[to], route);
    for (const LinkId l : route) longest = std::max(longest, (load[l] += bytes) / cluster.links()[l].bandwidth_GBps);
  };
  for (const Rank r : samples) {
    const CardCosts& costs = cluster.costs(cards[r]);
    double sending = 0, receiving = 0, combining = 0;
    Schedule schedule = algorithm.make(call, layout.view(r), Share{});
    while (const Step* step = schedule.next()) {
      if (step->to_group()) return double(protocol.operation_ns);
      if (step->idle()) continue;
      if (step->op == Op::send) {
        sending += double(costs.overhead_ns);
        carry(r, step->peer, step->from.count);
      } else if (step->receives()) {
        receiving += double(costs.receive_overhead_ns);
        if (!samples.contains(step->peer)) carry(step->peer, r, step->to.count);
        if (step->op == Op::recv_reduce && costs.combine_GBps > 0)
          combining += double(step->to.count) * element_bytes / costs.combine_GBps;
      }
    }
    longest = std::max({longest, sending, receiving, combining});
  }
  return protocol.operation_ns + longest;
}

}  // namespace gccl::sim
