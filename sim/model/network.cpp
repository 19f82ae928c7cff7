#include "sim/model/network.hpp"

namespace gccl::sim {

ModelNetwork::ModelNetwork(const Cluster& cluster)
    : ways_(cluster), receivers_(cluster.cards()), long_(links_, ways_, calendar_) {
  links_.reserve(cluster.links().size());
  for (const Link& l : cluster.links()) links_.emplace_back(l.bandwidth_GBps, l.latency_ns);
}

void ModelNetwork::send_over(const LinkSet& set, const Message& m) {
  if (m.bytes > LongMessages::kAbove || (!long_.idle() && long_.queues(m.lane, set.narrowest))) return long_.send(m);
  StagedPassage way(m.at);
  for (const LinkSet::Leg& leg : set.legs) {
    BookedLink& link = links_[leg.link];
    way.enter(leg.stage);
    way.pass(link.book(way.head(), m.bytes, calendar_.now()), link.latency());
  }
  arrive(m, way.end());
}

std::vector<std::uint64_t> ModelNetwork::link_bytes() const {
  std::vector<std::uint64_t> bytes;
  bytes.reserve(links_.size());
  for (const BookedLink& p : links_) bytes.push_back(p.bytes());
  return bytes;
}

}  // namespace gccl::sim
