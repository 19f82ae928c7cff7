// What is in flight in a simulation, and the queues of what waits for its other half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libgccl/schedule/types.hpp"
#include "sim/engine/channels.hpp"

namespace gccl::sim {

// A message from its send to its delivery or, if later, its receive; also a posted receive without message, and
// combining or copying in flight.
struct alignas(32) Item {
  std::uint32_t sender, receiver;  // lane ids
  std::uint8_t sender_token, receiver_token;
  bool started : 1, delivered : 1, met : 1;
  std::uint32_t next;   // in the channel's queue, or in the free list
  std::uint32_t order;  // of sending, to compare messages that leave at one instant
  Rank to;              // world
  Count bytes;
};

// Items by number. A number is taken again once it has been released.
class Items {
 public:
  Item& operator[](std::uint32_t i) { return items_[i]; }
  const Item* data() const { return items_.data(); }
  std::size_t size() const { return items_.size(); }

  std::uint32_t acquire() {
    std::uint32_t i = free_;
    if (i == Channels::kNone) {
      i = std::uint32_t(items_.size());
      items_.emplace_back();
    } else {
      free_ = items_[i].next;
    }
    items_[i] = {0, 0, 0, 0, false, false, false, Channels::kNone, 0, 0, 0};
    return i;
  }
  void release(std::uint32_t i) {
    items_[i].next = free_;
    free_ = i;
  }

  // The queue of a key, or null: of `sends`, or of receives.
  Channels::Queue* find(std::uint64_t key) { return channels_.find(key); }
  // Appends to the queue that find() gave for the key.
  void push(Channels::Queue* q, std::uint64_t key, std::uint32_t i, bool sends) {
    if (!q) {
      q = &channels_.insert(key);
      q->sends = sends;
      q->head = q->tail = i;
    } else {
      items_[q->tail].next = i;
      q->tail = i;
    }
  }
  std::uint32_t pop(Channels::Queue* q) {
    const std::uint32_t i = q->head;
    q->head = items_[i].next;
    if (q->head == Channels::kNone) channels_.erase(q);
    return i;
  }

  // What finding a queue of that lane will touch.
  [[gnu::always_inline]] void fetch(std::uint32_t lane) const { channels_.fetch(lane); }

 private:
  std::vector<Item> items_;
  std::uint32_t free_ = Channels::kNone;
  Channels channels_;
};

}  // namespace gccl::sim
