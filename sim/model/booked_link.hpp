// One directed link of the model engine: what is booked on it, and when the next message can pass.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "libgccl/base/prefetch.hpp"
#include "sim/engine/network.hpp"
#include "sim/model/timeline.hpp"

namespace gccl::sim {

// One directed link: what is booked on it. Half a cache line, as a cluster may have a million.
struct alignas(32) BookedLink {
  using Passage = Timeline::Passage;

  // The bookings of long messages.
  struct alignas(64) Long {
    static constexpr std::uint32_t kNobody = ~0u;
    std::uint32_t owner = kNobody;   // who has booked the end of `line` and gives up what is left when asked
    std::uint32_t latest = kNobody;  // who has booked the end of `line`, which is owner_end
    Nanos owner_begin = 0, owner_end = 0;
    Nanos owed = 0;  // time that short messages have taken since the last booking
    Count turn = 0;  // bytes of a piece while several messages take turns
    Timeline line;
  };

  std::uint64_t bytes = 0;               // carried
  [[no_unique_address]] Timeline brief;  // of short messages; what follows lies in its last bytes
  std::uint32_t kind : 31 = 0;           // Links::Kind
  std::uint32_t has_long : 1 = 0;        // a long message has come
};
static_assert(sizeof(BookedLink) == 32);

// The links that messages have come to, each in a place of its own from then on: a cluster may have a million, of which
// a job on few of its cards meets some dozens. There is memory for all of them, and for what each has of long messages,
// of which only what is used is ever touched.
//
// Short messages pass a link one after the other and whole. Long ones (see long_messages.hpp) have a timeline of their
// own. While both are there, each side has half of the link: a short message's way takes twice as long, and what it
// took from the long one is owed to that: the next piece is so much longer, or the latest one at its end. That is not
// exact. Where messages of just 128 KiB and longer ones crowd a link it may seem up to 5 % busier than it can be
// (concurrent all-to-alls of both on 8 cards), which flow and SimGrid never say.
class BookedLinks {
 public:
  using Passage = BookedLink::Passage;
  using Long = BookedLink::Long;

  explicit BookedLinks(const Cluster& cluster)
      : of_cluster_(cluster.links()),
        places_(of_cluster_.size()),
        long_(std::make_unique_for_overwrite<LongRoom[]>(of_cluster_.size())) {
    links_.reserve(of_cluster_.size());
    for (const Link& l : of_cluster_.kinds()) kinds_.push_back({l.bandwidth_GBps, 1 / l.bandwidth_GBps, l.latency_ns});
  }
  BookedLinks(const BookedLinks&) = delete;
  BookedLinks& operator=(const BookedLinks&) = delete;

  std::uint32_t place(LinkId link) {
    std::uint32_t& place = places_[link];
    if (place == 0) {
      links_.emplace_back().kind = of_cluster_.kind(link) & 0x7fffffff;
      place = std::uint32_t(links_.size());
    }
    return place - 1;
  }

  double bandwidth_GBps(std::uint32_t place) const { return kind_of(place).bandwidth_GBps; }
  Nanos latency_ns(std::uint32_t place) const { return kind_of(place).latency_ns; }
  void count(std::uint32_t place, Count bytes) { links_[place].bytes += bytes; }

  // Books a short message whose head arrives at `head`.
  Passage book(std::uint32_t place, Nanos head, Count bytes, Nanos now) {
    BookedLink& link = links_[place];
    Nanos length = duration(double(bytes) * kinds_[link.kind].ns_per_byte);
    link.bytes += bytes;
    if (link.has_long && head < long_[place].bookings.line.end())
      length += lost_to_long(link.brief, long_[place].bookings, head, length);
    return link.brief.book(head, length, now, bookings_);
  }

  // The bookings of long messages on a link, which has_long from then on.
  Long& with_long(std::uint32_t place) {
    BookedLink& link = links_[place];
    if (!link.has_long) {
      link.has_long = 1;
      std::construct_at(&long_[place].bookings);
    }
    return long_[place].bookings;
  }
  // Books a piece of a long message, behind the short ones that are before it, with those that are booked for while it
  // passes, and after what it is owed. Requires a link that has_long.
  Passage book_long(std::uint32_t place, Nanos head, Count bytes, Nanos now) {
    const BookedLink& link = links_[place];
    Long& bookings = long_[place].bookings;
    if (head >= link.brief.begin()) head = std::max(head, link.brief.end());
    Nanos length = duration(double(bytes) * kinds_[link.kind].ns_per_byte) + bookings.owed;
    bookings.owed = 0;
    const Nanos start = head >= bookings.line.begin() ? std::max(head, bookings.line.end()) : head;
    if (link.brief.begin() > start && link.brief.begin() < start + length)
      length += link.brief.end() - link.brief.begin();
    return bookings.line.book(head, length, now, bookings_);
  }

  // Moves the end of the latest booking by what it is owed, behind the short ones that are there then: by twice as much
  // at most, as each side has half of the link. Returns by how much.
  Nanos pay(std::uint32_t place, Long& bookings) {
    const Timeline& brief = links_[place].brief;
    const Nanos end = bookings.line.end();
    const Nanos taken = brief.begin() <= end ? std::max<Nanos>(0, brief.end() - end) : 0;
    const Nanos later = bookings.owed + std::min(taken, bookings.owed);
    bookings.owed = 0;
    bookings.owner_end = end + later;
    bookings.line.end_at(end + later);
    return later;
  }

  // For what stands beside the links too.
  Bookings& bookings() { return bookings_; }

  [[gnu::always_inline]] void fetch(std::uint32_t place) const { prefetch(links_.data() + place); }
  [[gnu::always_inline]] void fetch_with_long(std::uint32_t place) const {
    fetch(place);
    prefetch(&long_[place]);
  }

  // Bytes carried by each link of the cluster.
  std::vector<std::uint64_t> bytes() const;

 private:
  struct Kind {
    double bandwidth_GBps, ns_per_byte;
    Nanos latency_ns;
  };
  union LongRoom {
    LongRoom() {}
    Long bookings;
  };
  static_assert(std::is_trivially_destructible_v<Long>);

  const Kind& kind_of(std::uint32_t place) const { return kinds_[links_[place].kind]; }

  // What a short message loses to a long one that passes at the same time.
  static Nanos lost_to_long(const Timeline& brief, Long& bookings, Nanos head, Nanos length) {
    const Nanos start = head >= brief.begin() ? std::max(head, brief.end()) : head;
    const Timeline& line = bookings.line;
    if (start < line.begin() || start >= line.end()) return 0;
    const Nanos lost = std::min(length, (line.end() - start) / 2);
    bookings.owed += lost;
    return lost;
  }

  const Links& of_cluster_;
  std::vector<Kind> kinds_;            // by Links::Kind
  std::vector<std::uint32_t> places_;  // by LinkId, plus one; 0: none has come
  std::vector<BookedLink> links_;
  std::unique_ptr<LongRoom[]> long_;
  Bookings bookings_;
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
