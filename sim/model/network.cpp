#include "sim/model/network.hpp"

namespace gccl::sim {

ModelNetwork::ModelNetwork(const Cluster& cluster)
    : cluster_(cluster), receivers_(cluster.cards()), long_(links_, calendar_), cached_(cluster.cards()) {
  links_.reserve(cluster.links().size());
  for (const Link& l : cluster.links()) links_.emplace_back(l.bandwidth_GBps, l.latency_ns);
}

void ModelNetwork::look_up(Cached& way, Card from, Card to) {
  cluster_.route(from, to, route_);
  way.to = to;
  way.length = std::uint32_t(route_.size());
  if (way.length > 0) way.narrowest = narrowest(cluster_, route_);
  if (way.length <= kInline) {
    std::copy(route_.begin(), route_.end(), way.links);
  } else {
    if (far_.empty()) far_.resize(cached_.size());
    far_[from] = route_;
  }
}

void ModelNetwork::send_over(const LinkSet& set, const Message& m) {
  if (m.bytes > LongMessages::kAbove || (!long_.idle() && long_.queues(m.lane, set.narrowest)))
    return long_.send(m, set);
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
