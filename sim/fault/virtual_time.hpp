// A clock that nobody waits for, and what is to happen when. What is due at one instant happens in the order in which
// it was asked for, so the same program gives the same run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

class VirtualTime {
 public:
  Nanos now() const { return now_; }
  void at(Nanos when, std::function<void()> what) {
    events_.push_back({std::max(when, now_), order_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), later);
  }
  void after(Nanos delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  // Lets the next thing happen. False: nothing is left, or nothing until then.
  bool step(Nanos until) {
    if (events_.empty() || events_.front().at > until) return false;
    std::pop_heap(events_.begin(), events_.end(), later);
    const Event e = std::move(events_.back());
    events_.pop_back();
    now_ = e.at;
    e.what();
    return true;
  }

 private:
  struct Event {
    Nanos at;
    std::uint64_t order;
    std::function<void()> what;
  };
  static bool later(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  Nanos now_ = 0;
  std::uint64_t order_ = 0;
  std::vector<Event> events_;
};

// Numbers by seed, the same on every platform.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(splitmix::hash(seed)) {}
  std::uint64_t next() { return splitmix::mix(state_ += splitmix::kGolden); }
  // From low to high, both included.
  std::uint64_t from(std::uint64_t low, std::uint64_t high) { return low + next() % (high - low + 1); }
  bool with(double probability) { return double(next() >> 11) * 0x1p-53 < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace gccl::sim
