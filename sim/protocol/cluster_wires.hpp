// How long what ranks send each other takes over the links of a cluster, some of which are down or slow.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "sim/engine/link_names.hpp"
#include "sim/fault/faults.hpp"

namespace gccl::sim {

// Frames are booked on each link of their route in the order of sending: a frame enters a link when it is free, and
// holds it for bytes/bandwidth. So ranks that share a link share its bandwidth, frame by frame. Of faults that begin or
// end meanwhile it knows those ends that were said when they began.
class ClusterWires {
 public:
  static constexpr Nanos kForGood = INT64_MAX;

  explicit ClusterWires(const Cluster& cluster);

  // From one card to another, of a frame that is sent now. At least 1 ns.
  Nanos passage(Card from, Card to, std::size_t bytes, Nanos now);
  // A link of the route is down.
  bool down(Card from, Card to);
  // The ranks, of those on these cards, of which some way to or from another one is down.
  std::vector<Rank> cut_off(std::span<const Card> cards);

  // Begins and ends what a fault does to links; nothing for other kinds. One that ends is the same object
  // as when it began. `until`: when one that begins will end.
  void apply(const Fault& fault, bool begins, Nanos until = kForGood);
  // The links that the fault names.
  std::vector<LinkId> links_of(const Fault& fault) const;

 private:
  struct Degraded {
    const Fault* by;
    double left;  // of the bandwidth
    Nanos extra;  // of latency
    Nanos until;
  };
  struct State {
    Nanos free = 0;
    double bandwidth = 0;  // bytes/ns, without faults
    Nanos latency = 0, extra = 0;
    unsigned down = 0;
    std::vector<Degraded> degraded;  // by each fault that acts

    Nanos carried(Nanos start, double bytes) const;  // when the link has
  };
  const std::vector<LinkId>& route(Card from, Card to);

  const Cluster& cluster_;
  LinkNames names_;
  std::vector<State> links_;
  std::map<std::pair<Card, Card>, std::vector<LinkId>> routes_;
};

}  // namespace gccl::sim
