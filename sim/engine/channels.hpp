// Meets sends with receives: the k-th send a -> b of a lane with the k-th receive on b from a in that lane.
#pragma once

#include <cstdint>
#include <vector>

#include "libgccl/base/prefetch.hpp"
#include "libgccl/base/splitmix.hpp"

namespace gccl::sim {

// A queue for each (lane of the receiver, sender) that has something unmet: a first-in-first-out list of either sends
// or receives, never both. One of each lane's queues lies in an array, which is all that rings need; the others are in
// a hash table. Linear probing, erased entries close the gap (Knuth, TAOCP 6.4, algorithm R), so the table is as small
// as what is unmet at one time.
class Channels {
 public:
  static constexpr std::uint32_t kNone = ~0u;
  struct Queue {
    std::uint64_t key = kEmpty;
    std::uint32_t head = kNone, tail = kNone;
    bool sends = false;
  };

  Channels() : slots_(64) {}
  bool empty() const { return size_ == 0; }

  static std::uint64_t key(std::uint32_t lane, std::uint32_t sender) { return std::uint64_t(lane) << 32 | sender; }

  Queue* find(std::uint64_t key) {
    const std::size_t lane = key >> 32;
    if (lane < first_.size() && first_[lane].key == key) return &first_[lane];
    if (used_ == 0) return nullptr;
    for (std::size_t i = home(key);; i = (i + 1) & mask()) {
      if (slots_[i].key == key) return &slots_[i];
      if (slots_[i].key == kEmpty) return nullptr;
    }
  }

  // Requires that the key is not there.
  Queue& insert(std::uint64_t key) {
    ++size_;
    const std::size_t lane = key >> 32;
    if (lane >= first_.size()) first_.resize(lane + 1);
    if (first_[lane].key == kEmpty) {
      first_[lane].key = key;
      return first_[lane];
    }
    if (++used_ * 2 > slots_.size()) grow();
    std::size_t i = home(key);
    while (slots_[i].key != kEmpty) i = (i + 1) & mask();
    slots_[i].key = key;
    return slots_[i];
  }

  void erase(Queue* q) {
    --size_;
    if (q >= first_.data() && q < first_.data() + first_.size()) {
      *q = Queue{};
      return;
    }
    --used_;
    std::size_t hole = std::size_t(q - slots_.data());
    for (std::size_t i = (hole + 1) & mask(); slots_[i].key != kEmpty; i = (i + 1) & mask()) {
      if (((i - home(slots_[i].key)) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = Queue{};
  }

  // What finding a queue of that lane will touch.
  [[gnu::always_inline]] void fetch(std::uint32_t lane) const { prefetch(first_.data() + lane); }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t(0);
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home(std::uint64_t key) const { return std::size_t((key * splitmix::kGolden) >> 20) & mask(); }
  void grow() {
    std::vector<Queue> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Queue& q : old) {
      if (q.key == kEmpty) continue;
      std::size_t i = home(q.key);
      while (slots_[i].key != kEmpty) i = (i + 1) & mask();
      slots_[i] = q;
    }
  }

  std::vector<Queue> first_;  // by lane: one of its queues
  std::vector<Queue> slots_;  // the others; a power of two
  std::size_t used_ = 0;      // slots
  std::size_t size_ = 0;      // queues
};

}  // namespace gccl::sim
