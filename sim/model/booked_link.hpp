// One directed link of the model engine: what is booked on it, and when the next message can pass.
#pragma once

#include <memory>
#include <vector>

#include "libgccl/base/prefetch.hpp"
#include "sim/engine/network.hpp"
#include "sim/model/timeline.hpp"

namespace gccl::sim {

// Short messages pass one after the other and whole. Long ones (see long_messages.hpp) have a timeline of their own.
// While both are there, each side has half of the link: a short message's way takes twice as long, and what it took
// from the long one is owed to that.
class alignas(64) BookedLink {
 public:
  using Passage = Timeline::Passage;

  // The bookings of long messages.
  struct alignas(64) Long {
    static constexpr std::uint32_t kNobody = ~0u;
    std::uint32_t owner = kNobody;  // who has booked the end of `line` and gives up what is left when asked
    Nanos owner_begin = 0, owner_end = 0;
    Nanos owed = 0;  // time that short messages have taken since the last booking
    Count turn = 0;  // bytes of a piece while several messages take turns
    Timeline line;
  };

  BookedLink(double bandwidth_GBps, Nanos latency_ns)
      : bandwidth_GBps_(bandwidth_GBps), ns_per_byte_(1 / bandwidth_GBps), latency_(latency_ns) {}

  double bandwidth() const { return bandwidth_GBps_; }
  Nanos latency() const { return latency_; }
  std::uint64_t bytes() const { return bytes_; }
  void count(Count bytes) { bytes_ += bytes; }

  // Books a short message whose head arrives at `head`.
  Passage book(Nanos head, Count bytes, Nanos now) {
    Nanos length = duration(double(bytes) * ns_per_byte_);
    bytes_ += bytes;
    if (long_ && head < long_->line.end()) length += lost_to_long(head, length);
    return short_.book(head, length, now);
  }

  // Requires that the link has_long(), as does book_long.
  Long& for_long() { return *long_; }
  bool has_long() const { return long_; }
  void set_long(Long* bookings) { long_ = bookings; }
  // Books a piece of a long message, behind the short ones that are before it and after what it is owed.
  Passage book_long(Nanos head, Count bytes, Nanos now) {
    if (head >= short_.begin()) head = std::max(head, short_.end());
    const Nanos length = duration(double(bytes) * ns_per_byte_) + long_->owed;
    long_->owed = 0;
    return long_->line.book(head, length, now);
  }

 private:
  // What a short message loses to a long one that passes at the same time.
  Nanos lost_to_long(Nanos head, Nanos length) {
    const Nanos start = head >= short_.begin() ? std::max(head, short_.end()) : head;
    const Timeline& line = long_->line;
    if (start < line.begin() || start >= line.end()) return 0;
    const Nanos lost = std::min(length, (line.end() - start) / 2);
    long_->owed += lost;
    return lost;
  }

  double bandwidth_GBps_, ns_per_byte_;
  Nanos latency_;
  std::uint64_t bytes_ = 0;
  Timeline short_;
  Long* long_ = nullptr;  // where one has come
};
static_assert(sizeof(BookedLink) == 64);

// The links that messages have come to, each in a place of its own from then on: a cluster may have a hundred thousand,
// of which a job on few of its cards meets some dozens. There is memory for all of them, and for what each has of long
// messages, of which only what is used is ever touched.
class BookedLinks {
 public:
  explicit BookedLinks(const Cluster& cluster)
      : cluster_(cluster),
        places_(cluster.links().size()),
        long_(std::make_unique_for_overwrite<LongRoom[]>(cluster.links().size())) {
    links_.reserve(cluster.links().size());
  }
  ~BookedLinks() {
    for (BookedLink& link : links_)
      if (link.has_long()) std::destroy_at(&link.for_long());
  }
  BookedLinks(const BookedLinks&) = delete;
  BookedLinks& operator=(const BookedLinks&) = delete;

  std::uint32_t place(LinkId link) {
    std::uint32_t& place = places_[link];
    if (place == 0) {
      const Link& l = cluster_.links()[link];
      links_.emplace_back(l.bandwidth_GBps, l.latency_ns);
      place = std::uint32_t(links_.size());
    }
    return place - 1;
  }
  BookedLink& operator[](std::uint32_t place) { return links_[place]; }
  const BookedLink& operator[](std::uint32_t place) const { return links_[place]; }
  // The link, which has_long() from then on.
  BookedLink& with_long(std::uint32_t place) {
    BookedLink& link = links_[place];
    if (!link.has_long()) link.set_long(std::construct_at(&long_[place].bookings));
    return link;
  }

  [[gnu::always_inline]] void fetch(std::uint32_t place) const { prefetch(links_.data() + place); }
  [[gnu::always_inline]] void fetch_with_long(std::uint32_t place) const {
    fetch(place);
    prefetch(&long_[place]);
  }

  // Bytes carried by each link of the cluster.
  std::vector<std::uint64_t> bytes() const;

 private:
  union LongRoom {
    LongRoom() {}
    ~LongRoom() {}
    BookedLink::Long bookings;
  };

  const Cluster& cluster_;
  std::vector<std::uint32_t> places_;  // by LinkId, plus one; 0: none has come
  std::vector<BookedLink> links_;
  std::unique_ptr<LongRoom[]> long_;
};

// A message's way through links in stages: its head comes to the links of a stage together, once it has passed all of
// the stage before.
class StagedPassage {
 public:
  explicit StagedPassage(Nanos at) : head_(at), tail_(at), next_head_(at), next_tail_(at) {}
  // Before a link of that stage. Stages count up from 0.
  void enter(std::uint32_t stage) {
    if (stage == stage_) return;
    stage_ = stage;
    head_ = next_head_;
    tail_ = next_tail_;
  }
  Nanos head() const { return head_; }
  void pass(const BookedLink::Passage& p, Nanos latency) {
    next_head_ = std::max(next_head_, p.head + latency);
    next_tail_ = std::max(next_tail_, std::max(tail_, p.tail) + latency);
  }
  // When the last byte is there.
  Nanos end() const { return next_tail_; }

 private:
  std::uint32_t stage_ = 0;
  Nanos head_, tail_, next_head_, next_tail_;
};

}  // namespace gccl::sim
