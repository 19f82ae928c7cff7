// The model engine's event queue: a radix heap. Virtual time never goes back, so an event moves down at most 64 buckets
// in its life and, in practice, two or three. Ahuja, Mehlhorn, Orlin and Tarjan, JACM 37 (1990).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "libgccl/base/prefetch.hpp"
#include "sim/engine/network.hpp"

namespace gccl::sim {

class Calendar {
 public:
  Nanos now() const { return now_; }

  // Requires at >= now(). Its own events are those that the network gives itself.
  void push(Nanos at, EventId id, bool own = false) {
    assert(at >= now_);
    add({std::uint64_t(at), own, id});
    ++size_;
  }

  // Advances to the earliest instant and appends its events in the order they were pushed. False when empty.
  bool pop(std::vector<EventId>& due, std::vector<EventId>& own) {
    if (size_ == 0) return false;
    std::size_t b = 0;
    while (!buckets_[b].first) ++b;
    const Bucket from = std::exchange(buckets_[b], {});
    if (b > 0) now_ = from.earliest;
    const std::size_t before = due.size() + own.size();
    for (Block* block = from.first; block;) {
      if (block->next) prefetch(block->next, 256);
      const std::uint32_t end = block == from.last ? from.end : Block::kEvents;
      for (std::uint32_t i = 0; i < end; ++i) {
        const Event& e = block->events[i];
        if (Nanos(e.at) == now_)
          (e.own ? own : due).push_back(e.id);
        else
          add(e);  // to a lower bucket than b
      }
      Block* const done = std::exchange(block, block->next);
      done->next = std::exchange(free_, done);
    }
    size_ -= due.size() + own.size() - before;
    return true;
  }

 private:
  struct Event {
    std::uint64_t at : 63, own : 1;
    EventId id;
  };
  static_assert(sizeof(Event) == 16);
  // Buckets are lists of blocks, which pass from one to another: as arrays each would keep what it once needed.
  struct Block {
    static constexpr std::uint32_t kEvents = 255;  // with `next` one page
    Event events[kEvents];
    Block* next;
  };
  struct Bucket {
    Block *first = nullptr, *last = nullptr;
    std::uint32_t end = Block::kEvents;  // of the last block's events
    Nanos earliest = std::numeric_limits<Nanos>::max();
  };

  void add(const Event& e) {
    Bucket& bucket = buckets_[std::size_t(std::bit_width(e.at ^ std::uint64_t(now_)))];
    if (bucket.end == Block::kEvents) extend(bucket);
    bucket.last->events[bucket.end++] = e;
    bucket.earliest = std::min(bucket.earliest, Nanos(e.at));
  }
  [[gnu::noinline]] void extend(Bucket& bucket) {
    if (!free_) {
      std::unique_ptr<Block[]>& more = blocks_.emplace_back(std::make_unique_for_overwrite<Block[]>(kTogether));
      for (std::size_t i = kTogether; i-- > 0;) more[i].next = std::exchange(free_, &more[i]);
    }
    Block* const block = std::exchange(free_, free_->next);
    block->next = nullptr;
    (bucket.first ? bucket.last->next : bucket.first) = block;
    bucket.last = block;
    bucket.end = 0;
  }

  static constexpr std::size_t kTogether = 4;  // blocks

  std::array<Bucket, 64> buckets_;  // bucket b > 0: times whose highest bit different from now_ is bit b-1
  std::size_t size_ = 0;
  Nanos now_ = 0;
  Block* free_ = nullptr;
  std::vector<std::unique_ptr<Block[]>> blocks_;
};

}  // namespace gccl::sim
