// Routes of the model engine, each looked up once for all who are on it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/model/booked_link.hpp"

namespace gccl::sim {

// A route, as places of its links, and what the engine asks of it. One cache line: a message touches it at the card and
// at its end.
struct alignas(64) Way {
  static constexpr std::uint32_t kInline = 8;

  Card to = ~Card(0);
  std::uint32_t length = 0;
  std::uint32_t narrowest = 0;
  std::uint32_t users = 0;
  Nanos latency = 0;
  std::uint32_t near[kInline];
  std::unique_ptr<std::uint32_t[]> far;  // instead of `near`, of longer routes

  std::span<const std::uint32_t> links() const { return {length <= kInline ? near : far.get(), length}; }
};

// Keeps the last route from each card, as rings and trees keep their peers, and those that messages in flight hold.
class Ways {
 public:
  Ways(const Cluster& cluster, BookedLinks& links) : cluster_(cluster), links_(links), last_(cluster.cards(), kNone) {}

  const Way& operator[](std::uint32_t i) const { return ways_[i]; }
  // Valid until the next call for the card, or longer where it is held.
  std::uint32_t of(Card from, Card to) {
    const std::uint32_t i = last_[from];
    return i != kNone && ways_[i].to == to ? i : look_up(from, to);
  }
  [[gnu::always_inline]] void fetch(std::uint32_t i) const { prefetch(&ways_[i], sizeof(Way)); }
  void hold(std::uint32_t i) { ++ways_[i].users; }
  void release(std::uint32_t i) {
    if (--ways_[i].users == 0) free_.push_back(i);
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t look_up(Card from, Card to);
  std::uint32_t acquire();

  const Cluster& cluster_;
  BookedLinks& links_;
  std::vector<std::uint32_t> last_;  // by card
  std::vector<Way> ways_;
  std::vector<std::uint32_t> free_;
  std::vector<LinkId> route_;
};

}  // namespace gccl::sim
