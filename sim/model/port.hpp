// One directed link of the model engine: what is booked on it, and when the next message can pass.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/network.hpp"

namespace gccl::sim {

// Messages book the link when they are sent, for the time at which their head will reach it. A later booking may reach the
// link earlier and then uses what is free before the others, in pieces if need be: the link is never idle while a message
// waits for it, and no booking moves once made.
//
//   booked     ____####______######____
//   new, 8 long, head at ^      ->  ____####nnnnnn######nn__
class Port {
 public:
  Port(double bandwidth_GBps, Nanos latency_ns) : ns_per_byte_(1 / bandwidth_GBps), latency_(latency_ns) {}

  Nanos latency() const { return latency_; }
  std::uint64_t bytes() const { return bytes_; }

  struct Passage {
    Nanos head, tail;  // when the message begins and ends to pass
  };
  // Books a message whose head arrives at `head`. What was booked before `now` is forgotten.
  Passage book(Nanos head, Count bytes, Nanos now) {
    const Nanos length = Nanos(double(bytes) * ns_per_byte_ + 0.5);
    bytes_ += bytes;
    if (head < last_.begin) return squeeze_in(head, length, now);
    const Nanos start = std::max(head, last_.end);
    if (start > last_.end) {  // a gap stays open before it
      if (last_.end > now) remember(last_, now);
      last_.begin = start;
    }
    last_.end = start + length;
    return {start, last_.end};
  }

 private:
  struct Booking {
    Nanos begin = 0, end = 0;
  };
  void remember(Booking b, Nanos now);
  Passage squeeze_in(Nanos head, Nanos length, Nanos now);

  double ns_per_byte_;
  Nanos latency_;
  std::uint64_t bytes_ = 0;
  Booking last_;                                    // the latest stretch without a gap
  std::unique_ptr<std::vector<Booking>> earlier_;   // those before it that are not over, in order, with gaps between
};

}  // namespace gccl::sim
