// When a link is taken, against a list of all its nanoseconds.
#include "sim/model/timeline.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace timeline_test {

using gccl::Nanos;
using gccl::sim::Bookings;
using gccl::sim::Timeline;

// A nanosecond of each is taken once.
struct Taken {
  std::vector<bool> at = std::vector<bool>(4000);

  Timeline::Passage book(Nanos head, Nanos length) {
    while (at[std::size_t(head)]) ++head;
    Nanos tail = head;
    for (Nanos left = length; left > 0; ++tail) {
      if (at[std::size_t(tail)]) continue;
      at[std::size_t(tail)] = true;
      --left;
    }
    return {head, tail};
  }
};

TEST_CASE("a message takes what is free from its head on, in pieces if need be") {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 rng(seed);
    const Nanos ahead = 1 + Nanos(rng() % 400), longest = 1 + Nanos(rng() % 30);
    Timeline line;
    Bookings bookings;
    Taken taken;
    Nanos now = 0;
    for (int k = 0; k < 100; ++k) {
      now += Nanos(rng() % 20);
      const Nanos head = now + Nanos(rng() % ahead), length = Nanos(rng() % longest);
      CAPTURE(k);
      const Timeline::Passage booked = line.book(head, length, now, bookings), free = taken.book(head, length);
      REQUIRE(booked.head == free.head);
      REQUIRE(booked.tail == free.tail);
    }
  }
}

}  // namespace timeline_test
