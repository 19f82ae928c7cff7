// When something that serves one message at a time is taken: a link, or the receiving side of a card.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/engine/time.hpp"
#include "sim/model/bookings.hpp"

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

  // Books `length` from `head` on. What was booked before `now` is forgotten. `room` is for all of its bookings.
  Passage book(Nanos head, Nanos length, Nanos now, Bookings& room) {
    if (head < last_.begin) return squeeze_in(head, length, now, room);
    const Nanos start = std::max(head, last_.end);
    if (start > last_.end) {  // a gap stays open before it
      if (last_.end > now) Earlier(room, earlier_).push(last_, now);
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
  // Those before the latest, in order, with gaps between; some may be over. The oldest leave as new ones come: few are
  // to come at one time, and they stay within a cache line or two.
  class Earlier {
   public:
    Earlier(Bookings& rooms, Bookings::Room& room)
        : rooms_(rooms), room_(room), all_(room == Bookings::kNone ? nullptr : rooms[room]) {}
    Booking* begin() const { return all_ + first(); }
    Booking* end() const { return all_ + last(); }
    void push(Booking b, Nanos now) {
      if (all_)
        while (first() < last() && all_[first()].end <= now) ++first();
      if (!all_ || last() == size()) make_room();
      all_[last()++] = b;
    }
    Booking pop() const { return all_[--last()]; }
    void insert(Booking* before, Booking b);
    void erase(Booking* from, Booking* to) const;

   private:
    void make_room();
    // Which of `all_` are in use, from first() to last(), and how many there are: most timelines have no earlier
    // booking, and hundreds of thousands of them need no room for these numbers.
    static constexpr std::size_t kNumbers = 2;
    std::int64_t& first() const { return all_[0].begin; }
    std::int64_t& last() const { return all_[0].end; }
    std::int64_t& size() const { return all_[1].begin; }

    Bookings& rooms_;
    Bookings::Room& room_;
    Booking* all_;
  };
  Passage squeeze_in(Nanos head, Nanos length, Nanos now, Bookings& room);

  Booking last_;
  Bookings::Room earlier_ = Bookings::kNone;
};

}  // namespace gccl::sim
