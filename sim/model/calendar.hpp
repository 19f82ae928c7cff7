// The model engine's event queue: a radix heap. Virtual time never goes back, so an event moves down at most 64 buckets
// in its life and, in practice, two or three. Ahuja, Mehlhorn, Orlin and Tarjan, JACM 37 (1990).
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <vector>

#include "sim/engine/network.hpp"

namespace gccl::sim {

class Calendar {
 public:
  Nanos now() const { return now_; }

  // Requires at >= now(). Its own events are those that the network gives itself.
  void push(Nanos at, EventId id, bool own = false) {
    assert(at >= now_);
    buckets_[bucket(at)].push_back({at, id, own});
    ++size_;
  }

  // Advances to the earliest instant and appends its events in the order they were pushed. False when empty.
  bool pop(std::vector<EventId>& due, std::vector<EventId>& own) {
    if (size_ == 0) return false;
    std::size_t b = 0;
    while (buckets_[b].empty()) ++b;
    auto& from = buckets_[b];
    if (b > 0) {
      Nanos earliest = from.front().at;
      for (const Event& e : from) earliest = std::min(earliest, e.at);
      now_ = earliest;
    }
    const std::size_t before = due.size() + own.size();
    for (const Event& e : from) {
      if (e.at == now_)
        (e.own ? own : due).push_back(e.id);
      else
        buckets_[bucket(e.at)].push_back(e);  // always a lower bucket than b
    }
    from.clear();
    size_ -= due.size() + own.size() - before;
    return true;
  }

 private:
  struct Event {
    Nanos at;
    EventId id;
    bool own;
  };
  std::size_t bucket(Nanos at) const { return std::size_t(std::bit_width(std::uint64_t(at ^ now_))); }

  std::array<std::vector<Event>, 64> buckets_;  // bucket b > 0: times whose highest bit different from now_ is bit b-1
  std::size_t size_ = 0;
  Nanos now_ = 0;
};

}  // namespace gccl::sim
