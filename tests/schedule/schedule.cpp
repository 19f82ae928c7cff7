// Schedule: the generator coroutine that every algorithm is.
#include "libgccl/schedule/schedule.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <vector>

#include "libgccl/schedule/replay_order.hpp"

using namespace gccl;

namespace {

constexpr Region kElement{Buffer::output, 0, 1};

Schedule none() { co_return; }

Schedule range(Rank first, Rank last) {
  for (Rank p = first; p < last; ++p) co_yield send(p, kElement);
}

Schedule around(Rank first, Rank last) {
  co_yield none();
  co_yield send(first, kElement);
  co_yield range(first + 1, last);
  co_yield none();
  co_yield none();
  co_yield send(last, kElement);
}

Schedule deep(Rank levels) {
  if (levels == 0) {
    co_yield none();
    co_return;
  }
  co_yield deep(levels - 1);
  co_yield send(levels, kElement);
}

Schedule outer_of(Schedule inner) { co_yield std::move(inner); }

Schedule throwing(Rank after) {
  for (Rank p = 0; p < after; ++p) co_yield send(p, kElement);
  throw std::runtime_error("no more");
}

Schedule throwing_inside() {
  co_yield send(7, kElement);
  co_yield throwing(1);
}

// Counts how many of it are alive, to see that frames are destroyed.
struct Alive {
  int* count;
  explicit Alive(int* c) : count(c) { ++*count; }
  Alive(const Alive& o) : count(o.count) { ++*count; }
  Alive& operator=(const Alive&) = delete;
  ~Alive() { --*count; }
};

Schedule holding(Alive held, Rank levels) {
  co_yield send(levels, kElement);
  if (levels) co_yield holding(held, levels - 1);
  co_yield send(levels, kElement);
}

std::vector<Rank> peers(Schedule s) {
  std::vector<Rank> all;
  while (const Step* step = s.next()) all.push_back(step->peer);
  return all;
}

}  // namespace

TEST_CASE("a schedule yields its steps in order and then null for ever") {
  Schedule s = range(3, 5);
  REQUIRE(s.next()->peer == 3);
  const Step* second = s.next();
  REQUIRE(second->peer == 4);
  CHECK(second->op == Op::send);
  CHECK(second->from == kElement);
  CHECK(s.next() == nullptr);
  CHECK(s.next() == nullptr);
}

TEST_CASE("a default or an empty schedule has no step") {
  Schedule s;
  CHECK(s.next() == nullptr);
  CHECK(peers(none()).empty());
  CHECK(peers(range(4, 4)).empty());
}

TEST_CASE("nested schedules take the place of their steps, empty ones vanish") {
  CHECK(peers(around(1, 4)) == std::vector<Rank>{1, 2, 3, 4});
  CHECK(peers(outer_of(range(0, 3))) == std::vector<Rank>{0, 1, 2});
  CHECK(peers(outer_of(none())).empty());
  CHECK(peers(outer_of(Schedule{})).empty());
}

TEST_CASE("nesting goes thousands deep on a flat stack") {
  const std::vector<Rank> all = peers(deep(20000));
  REQUIRE(all.size() == 20000);
  for (Rank i = 0; i < all.size(); ++i) REQUIRE(all[i] == i + 1);
}

TEST_CASE("a schedule moves, also between two steps and inside a nested one") {
  Schedule a = around(1, 4);
  CHECK(a.next()->peer == 1);
  CHECK(a.next()->peer == 2);
  Schedule b = std::move(a);
  CHECK(a.next() == nullptr);
  CHECK(b.next()->peer == 3);
  a = std::move(b);
  CHECK(a.next()->peer == 4);
  CHECK(a.next() == nullptr);
}

TEST_CASE("an exception comes out of next, also from a nested schedule") {
  Schedule s = throwing(2);
  CHECK(s.next()->peer == 0);
  CHECK(s.next()->peer == 1);
  CHECK_THROWS_WITH_AS(s.next(), "no more", std::runtime_error);

  Schedule t = throwing_inside();
  CHECK(t.next()->peer == 7);
  CHECK(t.next()->peer == 0);
  CHECK_THROWS_WITH_AS(t.next(), "no more", std::runtime_error);
}

TEST_CASE("a schedule dropped at any step destroys all its frames") {
  int alive = 0;
  for (int steps = 0; steps <= 9; ++steps) {
    {
      Schedule s = holding(Alive(&alive), 3);
      for (int i = 0; i < steps; ++i) s.next();
      CHECK(alive >= 1);
    }
    CHECK(alive == 0);
  }
}

namespace {

constexpr Region part(Count i) { return {Buffer::output, i, 1}; }

Schedule in_turn(std::vector<Step> steps) {
  for (const Step& s : steps) co_yield s;
}

bool same(const Step& a, const Step& b) { return a.op == b.op && a.peer == b.peer && a.from == b.from && a.to == b.to; }

void check_replayed(const std::vector<Step>& given, const std::vector<Step>& due) {
  const auto found = replay_order(in_turn(given));
  REQUIRE(found);
  REQUIRE(found->size() == due.size());
  for (std::size_t i = 0; i < due.size(); ++i) CHECK(same((*found)[i], due[i]));
}

}  // namespace

TEST_CASE("a replay sends as early as regions allow, and keeps the order of sends and of all else") {
  check_replayed({recv(1, part(0)), recv(2, part(1)), send(3, part(2))},
                 {send(3, part(2)), recv(1, part(0)), recv(2, part(1))});
  check_replayed({recv(1, part(0)), recv(2, part(1)), send(3, part(0))},
                 {recv(1, part(0)), send(3, part(0)), recv(2, part(1))});
  check_replayed({recv_reduce(1, part(0)), copy(part(1), part(2)), send(3, part(2))},
                 {recv_reduce(1, part(0)), copy(part(1), part(2)), send(3, part(2))});
  check_replayed({recv(1, part(0)), send(3, part(2)), send(3, part(0)), send(1, part(5))},
                 {send(3, part(2)), recv(1, part(0)), send(3, part(0)), send(1, part(5))});
  check_replayed({await(1), send(2, part(0)), signal(3)}, {send(2, part(0)), await(1), signal(3)});
}

TEST_CASE("a replay has no steps that do nothing") {
  check_replayed({send(1, {Buffer::output, 0, 0}), recv(1, {Buffer::output, 4, 0}), copy(part(1), part(1)), await(1)},
                 {await(1)});
}

TEST_CASE("what is too long for a replay is none") {
  const auto sends = [](std::size_t n, Rank peers) {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < n; ++i) steps.push_back(send(Rank(i % peers), part(i)));
    return steps;
  };
  CHECK(replay_order(in_turn(sends(24, 1))));
  CHECK_FALSE(replay_order(in_turn(sends(25, 1))));
  CHECK(replay_order(in_turn(sends(512, 32))));
  CHECK_FALSE(replay_order(in_turn(sends(513, 32))));
}
