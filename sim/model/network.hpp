// The model engine's network: alpha-beta messages that occupy every link on their way.
#pragma once

#include <array>

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
  bool stalled() const { return false; }
  std::vector<std::uint64_t> link_bytes() const { return links_.bytes(); }

  bool next(std::vector<EventId>& due) {
    while (booked_ != end_) {
      if (found_ != end_) find_next();
      book_next();
    }
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
    if (!m.set) ways_.fetch_last(m.from);
    prefetch(&receivers_[m.to]);
    sent_[end_++ % kSent] = {m, Ways::kNone};
    if (end_ - found_ > kNotFound) find_next();
    if (end_ - booked_ == kSent) book_next();
  }

 private:
  // Messages that were sent a moment ago, in their order: all of an instant are booked before time goes on. What a
  // booking touches lies anywhere in megabytes, and comes while those before it are booked.
  struct Sent {
    Message message;
    std::uint32_t way;  // once it has been found; kNone: the message has a LinkSet
  };
  static constexpr std::uint32_t kSent = 16, kNotFound = 6;  // at most

  void find_next() {
    Sent& s = sent_[found_++ % kSent];
    if (s.message.set) return;
    s.way = ways_.of(s.message.from, s.message.to);
    ways_.hold(s.way);
    for (const std::uint32_t place : ways_[s.way].links()) links_.fetch(place);
  }
  void book_next() {
    const Sent& s = sent_[booked_++ % kSent];
    if (s.message.set) return book_over(*s.message.set, s.message);
    book(s.message, s.way);
    ways_.release(s.way);
  }

  // Finds what only long messages ask of a way. Requires one that is not empty.
  void measure(Way& way) const;

  void book(const Message& m, std::uint32_t w) {
    const Way& way = ways_[w];
    if (way.length > 0 && (m.bytes > LongMessages::kAbove || !long_.idle())) {
      if (way.narrowest == Ways::kNone) measure(ways_.at(w));
      if (m.bytes > LongMessages::kAbove || long_.queues(m.lane, way.narrowest)) return long_.send(m, w);
    }
    Nanos head = m.at, tail = m.at + m.least_ns;
    for (const std::uint32_t place : way.links()) {
      const BookedLinks::Passage passage = links_.book(place, head, m.bytes, calendar_.now());
      const Nanos latency = links_.latency_ns(place);
      head = passage.head + latency;
      tail = std::max(tail, passage.tail) + latency;
    }
    arrive(m, tail);
  }

  void arrive(const Message& m, Nanos tail) {
    if (m.receive_ns > 0) tail = receivers_[m.to].book(tail, m.receive_ns, calendar_.now(), links_.bookings()).tail;
    if (tail > kTimeMax) throw TimeOverflow();
    calendar_.push(tail, m.id);
  }

  void book_over(const LinkSet& set, const Message& m);

  Calendar calendar_;
  BookedLinks links_;
  Ways ways_;
  std::vector<Timeline> receivers_;  // by card
  LongMessages long_;
  std::vector<EventId> own_;
  std::array<Sent, kSent> sent_;
  std::uint32_t booked_ = 0, found_ = 0, end_ = 0;  // how many messages have got so far; the ring has them modulo kSent
};

static_assert(Network<ModelNetwork>);

}  // namespace gccl::sim
