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
  std::vector<std::uint64_t> link_bytes() const { return links_.bytes(); }

  bool next(std::vector<EventId>& due) {
    do {
      own_.clear();
      if (!calendar_.pop(due, own_)) return false;
      for (std::size_t k = 0; k < own_.size(); ++k) {
        long_.fetch_ahead(own_, k);
        long_.handle(own_[k], [&](const Message& m, Nanos tail) { arrive(m, tail); });
      }
    } while (due.empty());
    if (now() > kTimeMax) throw TimeOverflow();
    return true;
  }

  void send(const Message& m) {
    if (m.set) return send_over(*m.set, m);
    const std::uint32_t w = ways_.of(m.from, m.to);
    const Way& way = ways_[w];
    if (way.length > 0 && (m.bytes > LongMessages::kAbove || (!long_.idle() && long_.queues(m.lane, way.narrowest))))
      return long_.send(m, w);
    Nanos head = m.at, tail = m.at + m.least_ns;
    for (const std::uint32_t place : way.links()) {
      BookedLink& link = links_[place];
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

  void send_over(const LinkSet& set, const Message& m);

  Calendar calendar_;
  BookedLinks links_;
  Ways ways_;
  std::vector<Timeline> receivers_;  // by card
  LongMessages long_;
  std::vector<EventId> own_;
};

static_assert(Network<ModelNetwork>);

}  // namespace gccl::sim
