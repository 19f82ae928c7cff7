// The model engine's network: alpha-beta messages that occupy every port on their way.
#pragma once

#include "sim/engine/network.hpp"
#include "sim/model/calendar.hpp"
#include "sim/model/port.hpp"

namespace gccl::sim {

// A message's head enters each link of its route when the link is free, then moves on after the link's latency while the
// body follows (cut-through, unlimited buffers in switches). Each link is held for bytes/bandwidth. So a lone message takes
// the sum of the latencies plus bytes over the narrowest bandwidth, and n messages into one port leave it one by one.
class ModelNetwork {
 public:
  explicit ModelNetwork(const Cluster& cluster);

  Nanos now() const { return calendar_.now(); }
  void wake(EventId id, Nanos at) { calendar_.push(at, id); }
  bool next(std::vector<EventId>& due) { return calendar_.pop(due); }
  std::vector<std::uint64_t> link_bytes() const;

  void send(EventId id, Card from, Card to, Count bytes, Nanos at) {
    Cached& way = cached_[from];
    if (way.to != to) look_up(way, from, to);
    const LinkId* link = way.length <= kInline ? way.links : far_[from].data();
    Nanos head = at, tail = at;
    for (std::uint32_t i = 0; i < way.length; ++i) {
      Port& port = ports_[link[i]];
      const Port::Passage passage = port.book(head, bytes, calendar_.now());
      head = passage.head + port.latency();
      tail = std::max(tail, passage.tail) + port.latency();
    }
    calendar_.push(tail, id);
  }

 private:
  static constexpr std::uint32_t kInline = 10;
  struct Cached {  // the last route from a card: rings and trees keep their peers
    Card to = ~Card(0);
    std::uint32_t length = 0;
    LinkId links[kInline];
  };
  void look_up(Cached& way, Card from, Card to);

  const Cluster& cluster_;
  Calendar calendar_;
  std::vector<Port> ports_;
  std::vector<Cached> cached_;
  std::vector<std::vector<LinkId>> far_;  // far_[card]: its last route when longer than kInline; empty until needed
  std::vector<LinkId> route_;
};

static_assert(Network<ModelNetwork>);

}  // namespace gccl::sim
