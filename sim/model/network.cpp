#include "sim/model/network.hpp"

namespace gccl::sim {

ModelNetwork::ModelNetwork(const Cluster& cluster)
    : links_(cluster),
      ways_(cluster.cards(),
            [this, &cluster](Card from, Card to, Ways::Found* found) {
              cluster.route(from, to, found->links);
              for (std::uint32_t& l : found->links) l = links_.place(l);
            }),
      receivers_(cluster.cards()),
      long_(links_, ways_, calendar_) {}

void ModelNetwork::measure(Way& way) const {
  way.latency = 0;
  way.narrowest = way.links().front();
  for (const std::uint32_t place : way.links()) {
    way.latency += links_.latency_ns(place);
    if (links_.bandwidth_GBps(place) < links_.bandwidth_GBps(way.narrowest)) way.narrowest = place;
  }
}

void ModelNetwork::book_over(const LinkSet& set, const Message& m) {
  if (m.bytes > LongMessages::kAbove || (!long_.idle() && long_.queues(m.lane, links_.place(set.narrowest))))
    return long_.send(m);
  StagedPassage way(m.at);
  for (const LinkSet::Leg& leg : set.legs) {
    const std::uint32_t place = links_.place(leg.link);
    way.enter(leg.stage);
    way.pass(links_.book(place, way.head(), m.bytes, calendar_.now()), links_.latency_ns(place));
  }
  arrive(m, way.end());
}

std::vector<std::uint64_t> BookedLinks::bytes() const {
  std::vector<std::uint64_t> bytes(places_.size());
  for (LinkId l = 0; l < places_.size(); ++l)
    if (places_[l]) bytes[l] = links_[places_[l] - 1].bytes;
  return bytes;
}

}  // namespace gccl::sim
