// The model engine's network: alpha-beta messages that occupy every link on their way.
#pragma once

#include "sim/engine/network.hpp"
#include "sim/model/calendar.hpp"
#include "sim/model/long_messages.hpp"

namespace gccl::sim {

// A message's head enters each link of its route when the link is free, then moves on after the link's latency while
// the body follows (cut-through, unlimited buffers in switches). Each link is held for bytes/bandwidth. So a lone
// message takes the sum of the latencies plus bytes over the narrowest bandwidth, and n messages into one link leave it
// one by one; long ones take turns there (LongMessages).
class ModelNetwork {
 public:
  explicit ModelNetwork(const Cluster& cluster);

  Nanos now() const { return calendar_.now(); }
  void wake(EventId id, Nanos at) { calendar_.push(at, id); }
  std::vector<std::uint64_t> link_bytes() const;

  bool next(std::vector<EventId>& due) {
    do {
      own_.clear();
      if (!calendar_.pop(due, own_)) return false;
      for (const EventId e : own_) long_.handle(e, [&](const Message& m, Nanos tail) { arrive(m, tail); });
    } while (due.empty());
    if (now() > kTimeMax) throw TimeOverflow();
    return true;
  }

  void send(const Message& m) {
    if (m.set) return send_over(*m.set, m);
    Cached& way = cached_[m.from];
    if (way.to != m.to) look_up(way, m.from, m.to);
    const LinkId* ids = way.length <= kInline ? way.links : far_[m.from].data();
    if (way.length > 0 && (m.bytes > LongMessages::kAbove || (!long_.idle() && long_.queues(m.lane, way.narrowest))))
      return long_.send(m, {ids, way.length}, way.narrowest);
    Nanos head = m.at, tail = m.at + m.least_ns;
    for (std::uint32_t i = 0; i < way.length; ++i) {
      BookedLink& link = links_[ids[i]];
      const BookedLink::Passage passage = link.book(head, m.bytes, calendar_.now());
      head = passage.head + link.latency();
      tail = std::max(tail, passage.tail) + link.latency();
    }
    arrive(m, tail);
  }

 private:
  void arrive(const Message& m, Nanos tail) {
    if (m.receive_ns > 0) tail = receivers_[m.to].book(tail, m.receive_ns, calendar_.now()).tail;
    if (tail > kTimeMax) throw TimeOverflow();
    calendar_.push(tail, m.id);
  }

  static constexpr std::uint32_t kInline = 10;
  struct Cached {  // the last route from a card: rings and trees keep their peers
    Card to = ~Card(0);
    std::uint32_t length = 0;
    LinkId narrowest = 0;
    LinkId links[kInline];
  };
  void look_up(Cached& way, Card from, Card to);
  void send_over(const LinkSet& set, const Message& m);

  const Cluster& cluster_;
  Calendar calendar_;
  std::vector<BookedLink> links_;
  std::vector<Timeline> receivers_;  // by card
  LongMessages long_;
  std::vector<EventId> own_;
  std::vector<Cached> cached_;
  std::vector<std::vector<LinkId>> far_;  // far_[card]: its last route when longer than kInline; empty until needed
  std::vector<LinkId> route_;
};

static_assert(Network<ModelNetwork>);

}  // namespace gccl::sim
