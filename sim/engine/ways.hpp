// Routes of an engine's messages, each found once for all who are on it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "libgccl/base/prefetch.hpp"
#include "sim/engine/network.hpp"

namespace gccl::sim {

// A route, as the engine numbers its links, and what the engine asks of it. One cache line: a message touches it at the
// card and at its end.
struct alignas(64) Way {
  static constexpr std::uint32_t kInline = 8;

  Card to = ~Card(0);
  std::uint32_t length = 0;
  std::uint32_t narrowest = ~0u;  // where there is a link, and `Find` or the engine has said so; as is
  std::uint32_t users = 0;
  Nanos latency = 0;  // this
  std::uint32_t near[kInline];
  std::unique_ptr<std::uint32_t[]> far;  // instead of `near`, of longer routes

  std::span<const std::uint32_t> links() const { return {length <= kInline ? near : far.get(), length}; }
};

// Keeps the last route from each card, as rings and trees keep their peers, and those that messages in flight hold.
class Ways {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  struct Found {
    std::vector<std::uint32_t> links;
    std::uint32_t narrowest = kNone;
    Nanos latency = 0;
  };
  // Overwrites what was found before.
  using Find = std::function<void(Card from, Card to, Found* found)>;

  Ways(Card cards, Find find) : find_(std::move(find)), last_(cards, kNone) {}

  const Way& operator[](std::uint32_t i) const { return ways_[i]; }
  Way& at(std::uint32_t i) { return ways_[i]; }
  // Valid until the next call for the card, or longer where it is held.
  std::uint32_t of(Card from, Card to) {
    const std::uint32_t i = last_[from];
    return i != kNone && ways_[i].to == to ? i : look_up(from, to);
  }
  [[gnu::always_inline]] void fetch(std::uint32_t i) const { prefetch(&ways_[i], sizeof(Way)); }
  // What finding a way from that card will touch.
  [[gnu::always_inline]] void fetch_last(Card from) const { prefetch(ways_.data() + last_[from], sizeof(Way)); }
  void hold(std::uint32_t i) { ++ways_[i].users; }
  void release(std::uint32_t i) {
    if (--ways_[i].users == 0) free_.push_back(i);
  }
  // Routes may be others from now on. Those that are held stay as they are.
  void find_anew();

 private:
  std::uint32_t look_up(Card from, Card to);
  std::uint32_t acquire();

  Find find_;
  Found found_;
  std::vector<std::uint32_t> last_;  // by card
  std::vector<Way> ways_;
  std::vector<std::uint32_t> free_;
};

}  // namespace gccl::sim
