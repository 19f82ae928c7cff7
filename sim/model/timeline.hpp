// When something that serves one message at a time is taken: a link, or the receiving side of a card.
#pragma once

#include <algorithm>
#include <vector>

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
      if (last_.end > now) remember(last_, now);
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
  void remember(Booking b, Nanos now);
  Passage squeeze_in(Nanos head, Nanos length, Nanos now);

  Booking last_;
  std::vector<Booking> earlier_;  // those before it, in order, with gaps between; some may be over
};

}  // namespace gccl::sim
