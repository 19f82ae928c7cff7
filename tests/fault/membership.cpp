// One member at a time: what it sends, and what it makes of what it gets.
#include "libgccl/fault/membership.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <vector>

#include "libgccl/fault/member.hpp"
#include "sim/fault/virtual_time.hpp"

using namespace gccl;
using namespace gccl::fault;

namespace {

constexpr MembershipSettings kSettings = {.retry = 1000, .quorum_timeout = 100'000};

// Carries packets to and fro until there are none.
void carry(std::vector<Membership*> all) {
  for (bool moved = true; moved;) {
    moved = false;
    for (Rank r = 0; r < all.size(); ++r)
      for (const Packet& p : all[r]->take_packets()) {
        moved = true;
        all[p.to]->received(0, r, *MembershipMessage::decoded(p.bytes));
      }
  }
}

}  // namespace

TEST_CASE("the quorum: more than half, half with the first, or all others gone") {
  const RankSet four = RankSet::below(4);
  CHECK(has_quorum(four, {}));
  CHECK(has_quorum(four, {.failed = {3}, .gone = {}}));
  CHECK(has_quorum(four, {.failed = {2, 3}, .gone = {}}));
  CHECK(!has_quorum(four, {.failed = {0, 3}, .gone = {}}));
  CHECK(!has_quorum(four, {.failed = {0, 3}, .gone = {3}}));
  CHECK(has_quorum(four, {.failed = {0, 3}, .gone = {0, 3}}));
  CHECK(has_quorum(four, {.failed = {0, 1, 3}, .gone = {0, 1, 3}}));
  CHECK(!has_quorum(four, {.failed = {0, 1, 2, 3}, .gone = {0, 1, 2, 3}}));
  // No two disjoint sets have one by their numbers.
  for (Rank n = 1; n <= 10; ++n)
    for (std::uint32_t bits = 0; bits < 1u << n; ++bits) {
      RankSet in, out;
      for (Rank r = 0; r < n; ++r) (bits >> r & 1 ? in : out).insert(r);
      const RankSet all = RankSet::below(n);
      if (!in.empty() && !out.empty())
        CHECK(has_quorum(all, {.failed = out, .gone = {}}) != has_quorum(all, {.failed = in, .gone = {}}));
    }
}

TEST_CASE("a decision reports calls that differ, and failures that somebody did not know of") {
  const RankSet three = RankSet::below(3);
  Membership a(0, kSettings, 0, three), b(0, kSettings, 1, three), c(0, kSettings, 2, three);
  a.agree(0, 7);
  b.agree(0, 5);
  c.shrink(0);
  carry({&a, &b, &c});
  for (Membership* m : {&a, &b, &c}) {
    const auto d = m->take_decisions();
    REQUIRE(d.size() == 1);
    CHECK(d[0].mixed);
    CHECK(d[0].flags == 5);
    CHECK(m->epoch() == 1);
  }
  for (Membership* m : {&a, &b}) m->learn(0, {.failed = {2}, .gone = {2}});
  a.acknowledge({2});
  for (Membership* m : {&a, &b}) m->agree(0, 1);
  carry({&a, &b, &c});
  const Decision d = a.take_decisions().at(0);
  CHECK(d.failed == RankSet{2});
  CHECK(!d.acknowledged);
  b.acknowledge({2});
  for (Membership* m : {&a, &b}) m->agree(0, 1);
  carry({&a, &b, &c});
  CHECK(a.take_decisions().at(0).acknowledged);
  CHECK(b.take_decisions().at(1).acknowledged);
}

TEST_CASE("one that revokes notifies all, and they pass it on") {
  const RankSet three = RankSet::below(3);
  Membership a(0, kSettings, 0, three), b(0, kSettings, 1, three), c(0, kSettings, 2, three);
  a.revoke(0);
  for (const Packet& p : a.take_packets())  // it dies before it has notified the other
    if (p.to == 2) c.received(0, 0, *MembershipMessage::decoded(p.bytes));
  CHECK(c.revoked());
  CHECK(!b.revoked());
  carry({&a, &b, &c});
  CHECK(b.revoked());
  for (Membership* m : {&b, &c}) m->shrink(0);
  a.shrink(0);
  carry({&a, &b, &c});
  CHECK(b.epoch() == 2);
  CHECK(!b.revoked());
}

TEST_CASE("where the first two call each other failed, and each is believed by some, the others go on or end") {
  for (Rank n = 3; n <= 8; ++n)
    for (std::uint32_t believed = 0; believed < 1u << (n - 2); ++believed)
      for (const bool all_at_once : {true, false}) {
        CAPTURE(n);
        CAPTURE(believed);
        CAPTURE(all_at_once);
        std::vector<std::unique_ptr<Membership>> all;
        std::vector<Membership*> members;
        for (Rank r = 0; r < n; ++r) {
          all.push_back(std::make_unique<Membership>(0, kSettings, r, RankSet::below(n)));
          members.push_back(all.back().get());
        }
        for (Rank r = 0; r < n; ++r) {
          const Rank lost = r < 2 ? 1 - r : believed >> (r - 2) & 1;
          members[r]->learn(0, {.failed = {lost}, .gone = {}});
          members[r]->shrink(0);
          if (!all_at_once) carry(members);
        }
        carry(members);
        for (Nanos now = 0; now <= 10 * kSettings.quorum_timeout; now += kSettings.retry) {
          for (Membership* m : members) m->time_passed(now);
          carry(members);
        }
        Rank decided = 0;
        std::optional<Decision> first;
        for (Membership* m : members) {
          const auto d = m->take_decisions();
          CHECK((m->out() != Membership::Out::no || d.size() == 1));
          if (d.empty()) continue;
          ++decided;
          if (!first) first = d[0];
          CHECK(d[0] == *first);
        }
        CHECK((decided == 0 || 2 * decided >= n));
        if (n > 4) CHECK(decided >= n - 2);
      }
}

TEST_CASE("any bytes are taken, and what is no message is refused") {
  gccl::sim::Chance chance(5);
  const RankSet three = RankSet::below(3);
  Membership a(0, kSettings, 0, three), b(0, kSettings, 1, three), c(0, kSettings, 2, three);
  std::vector<std::vector<std::byte>> seen;
  for (Membership* m : {&a, &b, &c}) m->shrink(0);
  for (bool moved = true; moved;) {
    moved = false;
    Rank r = 0;
    for (Membership* from : {&a, &b, &c}) {
      for (const Packet& p : from->take_packets()) {
        moved = true;
        seen.push_back(p.bytes);
        (p.to == 0 ? a : p.to == 1 ? b : c).received(0, r, *MembershipMessage::decoded(p.bytes));
      }
      ++r;
    }
  }
  MembershipMessage welcome;
  welcome.kind = MembershipMessage::Kind::welcome;
  welcome.epoch = 3;
  welcome.members = {{0, 0}, {4, 17}};
  seen.push_back(welcome.encoded());
  MembershipMessage out;
  out.kind = MembershipMessage::Kind::out;
  out.epoch = 1;
  seen.push_back(out.encoded());
  REQUIRE(seen.size() > 8);
  for (const auto& bytes : seen) {
    CHECK(MembershipMessage::decoded(bytes)->encoded() == bytes);
    CHECK(!DetectorMessage::decoded(bytes));
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
      CHECK(!MembershipMessage::decoded(std::span(bytes).first(cut)));
    Member m(0, MemberSettings{}, 1, three, 1);
    m.agree(0, 1);
    for (int i = 0; i < 3000; ++i) {
      auto damaged = bytes;
      for (int n = 0; n < 3; ++n) damaged[chance.next() % damaged.size()] = std::byte(chance.next());
      (void)m.received(Nanos(i), Rank(chance.from(0, 4)), damaged);
      (void)m.take_packets();
      (void)m.take_decisions();
    }
  }
}
