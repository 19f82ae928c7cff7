#include "sim/model/network.hpp"

namespace gccl::sim {

ModelNetwork::ModelNetwork(const Cluster& cluster)
    : links_(cluster),
      ways_(cluster.cards(),
            [this, &cluster](Card from, Card to, Ways::Found* found) {
              cluster.route(from, to, found->links);
              found->latency = 0;
              for (const LinkId l : found->links) found->latency += cluster.links()[l].latency_ns;
              if (!found->links.empty()) found->narrowest = links_.place(narrowest(cluster, found->links));
              for (std::uint32_t& l : found->links) l = links_.place(l);
            }),
      receivers_(cluster.cards()),
      long_(links_, ways_, calendar_) {}

void ModelNetwork::send_over(const LinkSet& set, const Message& m) {
  if (m.bytes > LongMessages::kAbove || (!long_.idle() && long_.queues(m.lane, links_.place(set.narrowest))))
    return long_.send(m);
  StagedPassage way(m.at);
  for (const LinkSet::Leg& leg : set.legs) {
    BookedLink& link = links_[links_.place(leg.link)];
    way.enter(leg.stage);
    way.pass(link.book(way.head(), m.bytes, calendar_.now()), link.latency());
  }
  arrive(m, way.end());
}

std::vector<std::uint64_t> BookedLinks::bytes() const {
  std::vector<std::uint64_t> bytes(places_.size());
  for (LinkId l = 0; l < places_.size(); ++l)
    if (places_[l]) bytes[l] = links_[places_[l] - 1].bytes();
  return bytes;
}

}  // namespace gccl::sim
