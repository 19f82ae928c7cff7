// The SimGrid engine's own timers: what is due when, in batches of one instant each.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sim/engine/network.hpp"

namespace gccl::sim {

// A binary heap of instants, not of entries: lockstep patterns put thousands of entries on one instant, and the slots
// remember the latest instants so that such an entry costs an append. An instant may own several batches.
template <class Entry>
class Agenda {
 public:
  bool empty() const { return heap_.empty(); }
  // The earliest instant. Requires !empty().
  Nanos next() const { return heap_.front().at; }

  void add(Nanos at, const Entry& entry) {
    Slot& slot = slots_[std::size_t(at) % slots_.size()];
    if (slot.at != at) slot = {at, open(at)};
    batches_[slot.batch].push_back(entry);
  }

  // Replaces `out` by one batch of the earliest instant, in the order of its adds. Requires !empty().
  void take(std::vector<Entry>& out) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const auto [at, batch] = heap_.back();
    heap_.pop_back();
    Slot& slot = slots_[std::size_t(at) % slots_.size()];
    if (slot.at == at && slot.batch == batch) slot.at = kNever;
    out.clear();
    out.swap(batches_[batch]);
    free_.push_back(batch);
  }

 private:
  struct Slot {
    Nanos at;
    std::uint32_t batch;
  };
  static constexpr Nanos kNever = -1;
  static bool later(const Slot& a, const Slot& b) { return a.at != b.at ? a.at > b.at : a.batch > b.batch; }

  std::uint32_t open(Nanos at) {
    std::uint32_t batch;
    if (free_.empty()) {
      batch = std::uint32_t(batches_.size());
      batches_.emplace_back();
    } else {
      batch = free_.back();
      free_.pop_back();
    }
    heap_.push_back({at, batch});
    std::push_heap(heap_.begin(), heap_.end(), later);
    return batch;
  }

  std::vector<Slot> heap_;
  std::vector<std::vector<Entry>> batches_;
  std::vector<std::uint32_t> free_;
  std::array<Slot, 64> slots_ = [] {
    std::array<Slot, 64> s;
    s.fill({kNever, 0});
    return s;
  }();
};

}  // namespace gccl::sim
