// Rooms for bookings, against the memory that nobody else may have.
#include "sim/model/bookings.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "sim/model/timeline.hpp"

namespace bookings_test {

using namespace gccl;
using sim::Bookings;

struct Taken {
  Bookings::Room room;
  std::uint32_t size;
  Nanos mark;  // in all of its bookings
};

bool holds(const Bookings& bookings, const Taken& t) {
  for (std::uint32_t i = 0; i < t.size; ++i)
    if (bookings[t.room][i].begin != t.mark || bookings[t.room][i].end != -t.mark) return false;
  return true;
}

TEST_CASE("rooms of all sizes keep what is in them until they are given back, and are taken again") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Bookings bookings;
    std::vector<Taken> taken;
    for (int k = 0; k < 3000; ++k) {
      if (taken.size() > 40 || (!taken.empty() && random() % 3 == 0)) {
        std::swap(taken[random() % taken.size()], taken.back());
        REQUIRE(holds(bookings, taken.back()));
        bookings.give_back(taken.back().room, taken.back().size);
        taken.pop_back();
        continue;
      }
      // Beyond a chunk of 65,536 too.
      const std::uint32_t size = 8u << (random() % 40 ? random() % 6 : random() % 15);
      const Taken t{bookings.take(size), size, k + 1};
      REQUIRE(t.room != Bookings::kNone);
      for (std::uint32_t i = 0; i < size; ++i) bookings[t.room][i] = {t.mark, -t.mark};
      taken.push_back(t);
    }
    for (const Taken& t : taken) CHECK(holds(bookings, t));
  }
  Bookings one;
  const Bookings::Room room = one.take(8);
  one.give_back(room, 8);
  CHECK(one.take(8) == room);
}

TEST_CASE("a first room as large as a chunk lies in memory of its own, and so does the next one") {
  for (const std::uint32_t size : {1u << 16, 1u << 17}) {
    Bookings bookings;
    std::vector<Taken> taken;
    for (const std::uint32_t n : {size, 8u, size}) {
      const Taken t{bookings.take(n), n, Nanos(taken.size() + 1)};
      for (std::uint32_t i = 0; i < n; ++i) bookings[t.room][i] = {t.mark, -t.mark};
      taken.push_back(t);
    }
    for (const Taken& t : taken) CHECK(holds(bookings, t));
  }
}

TEST_CASE("a timeline that outgrows its room gives it back") {
  Bookings fresh, bookings;
  const Bookings::Room first = fresh.take(8);
  sim::Timeline timeline;
  for (int k = 0; k < 20; ++k) timeline.book(100 * k, 10, 0, bookings);
  CHECK(bookings.take(8) == first);
}

}  // namespace bookings_test
