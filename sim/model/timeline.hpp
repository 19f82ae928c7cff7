// When something that serves one message at a time is taken: a link, or the receiving side of a card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "sim/engine/time.hpp"

namespace gccl::sim {

// Bookings are made when a message is sent, for the time at which it will be there. A later booking may be there
// earlier and then uses what is free before the others, in pieces if need be: nothing idles while a message waits for
// it.
//
//   booked     ____####______######____
//   new, 8 long, from    ^      ->  ____####nnnnnn######nn__
class Timeline {
 public:
  struct Passage {
    Nanos head, tail;  // when the message begins and ends to pass
  };

  // Books `length` from `head` on. What was booked before `now` is forgotten.
  Passage book(Nanos head, Nanos length, Nanos now) {
    if (head < last_.begin) return squeeze_in(head, length, now);
    const Nanos start = std::max(head, last_.end);
    if (start > last_.end) {  // a gap stays open before it
      if (last_.end > now) earlier_.push(last_, now);
      last_.begin = start;
    }
    last_.end = start + length;
    return {start, last_.end};
  }

  // The latest stretch without a gap.
  Nanos begin() const { return last_.begin; }
  Nanos end() const { return last_.end; }
  // Moves its end. Requires at >= begin().
  void end_at(Nanos at) { last_.end = at; }

 private:
  struct Booking {
    Nanos begin = 0, end = 0;
  };
  // Those before the latest, in order, with gaps between; some may be over. The oldest leave as new ones come: few are
  // to come at one time, and they stay within a cache line or two.
  class Earlier {
   public:
    bool empty() const { return first_ == end_; }
    Booking* begin() { return &all_[first_]; }
    Booking* end() { return &all_[end_]; }
    const Booking& back() const { return all_[end_ - 1]; }
    void push(Booking b, Nanos now) {
      while (first_ < end_ && all_[first_].end <= now) ++first_;
      if (end_ == room_) make_room();
      all_[end_++] = b;
    }
    Booking pop() { return all_[--end_]; }
    void insert(Booking* before, Booking b);
    void erase(Booking* from, Booking* to);

   private:
    void make_room();

    std::unique_ptr<Booking[]> all_;
    std::uint32_t first_ = 0, end_ = 0, room_ = 0;
  };
  Passage squeeze_in(Nanos head, Nanos length, Nanos now);

  Booking last_;
  Earlier earlier_;
};

}  // namespace gccl::sim
