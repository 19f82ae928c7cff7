// Few machines, and a crash at every position: after each packet that a rank sends, in work, agreement, shrinking and
// growing, of one rank and of two.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstdlib>

#include "sim/fault/members.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {

FaultTimeline quiet(Rank ranks, bool system_reports) {
  FaultTimeline t;
  t.ranks = ranks;
  t.rounds = 2;
  t.system_reports = system_reports;
  t.detection = 50 * kMillisecond;
  return t;
}

MembersOutcome played(const FaultTimeline& t, std::uint64_t seed = 1) {
  MembersOutcome o = play_members(t, seed);
  if (!o.violations.empty()) FAIL_CHECK(fmt::format("{}\n  {}", o.violations[0], text(t)));
  return o;
}

// Whether ranks that end without word may have had no quorum: half are gone for good, silently.
bool may_lack_quorum(const FaultTimeline& t) {
  return !t.system_reports && t.ranks <= 2 * Rank(t.after_packets.size()) + 1;
}

}  // namespace

TEST_CASE("one rank crashes after any packet, and all others go on") {
  std::uint64_t runs = 0;
  for (const bool reports : {false, true})
    for (const Rank ranks : {2, 3, 4, 5}) {
      const MembersOutcome whole = played(quiet(ranks, reports));
      CHECK(whole.done == ranks);
      for (Rank r = 0; r < ranks; ++r)
        for (std::uint64_t n = 1; n <= whole.sent[r]; ++n, ++runs) {
          FaultTimeline t = quiet(ranks, reports);
          t.after_packets = {{r, n}};
          const MembersOutcome o = played(t);
          if (!may_lack_quorum(t)) CHECK_MESSAGE(o.done == ranks - 1, text(t));
          CHECK(o.expelled == 0);
        }
    }
  MESSAGE(fmt::format("{} runs", runs));
  CHECK(runs > 500);
}

// The coordinator and the one that takes its place; all pairs of positions with GCCL_FAULT_PAIRS=1.
TEST_CASE("two ranks crash after any packets, and all others go on") {
  const bool all = std::getenv("GCCL_FAULT_PAIRS") != nullptr;
  std::uint64_t runs = 0;
  for (const bool reports : {true, false})
    for (const Rank ranks : {3, 4, 5}) {
      const MembersOutcome whole = played(quiet(ranks, reports));
      for (const Rank other : {1u, ranks - 1})
        for (std::uint64_t n = 1; n <= whole.sent[0]; n += all ? 1 : 7)
          for (std::uint64_t m = 1; m <= whole.sent[other] + 40; m += all ? 1 : 11, ++runs) {
            FaultTimeline t = quiet(ranks, reports);
            t.after_packets = {{0, n}, {other, m}};
            const MembersOutcome o = played(t);
            if (!may_lack_quorum(t)) CHECK_MESSAGE(o.done >= ranks - 2, text(t));
            CHECK(o.expelled == 0);
          }
    }
  MESSAGE(fmt::format("{} runs", runs));
  CHECK(runs > 500);
}

TEST_CASE("all but one crash, and where the system says so the last goes on alone") {
  for (const Rank ranks : {2, 3, 5, 8}) {
    for (Rank last = 0; last < ranks; ++last) {
      FaultTimeline t = quiet(ranks, true);
      for (Rank r = 0; r < ranks; ++r)
        if (r != last) t.injuries.push_back({kMillisecond / 10 * Nanos(r + 1), Injury::Kind::crash, r, 0});
      CHECK(played(t).done == 1);
    }
  }
}

TEST_CASE("half of the ranks vanish without a word: the half with the first rank goes on, the other gives up") {
  for (const bool first : {true, false}) {
    FaultTimeline t = quiet(4, false);
    for (const Rank r : {0u, 1u}) t.injuries.push_back({kMillisecond / 5, Injury::Kind::crash, first ? r + 2 : r, 0});
    const MembersOutcome o = played(t);
    CHECK(o.done == (first ? 2 : 0));
    CHECK(o.without_quorum == (first ? 0 : 2));
  }
}

TEST_CASE("spares and restarted processes join at the next epoch") {
  FaultTimeline t = quiet(4, true);
  t.rounds = 200;
  t.spares = 2;
  t.begins = {0, 0, 0, 0, kMillisecond, 2 * kMillisecond};
  CHECK(played(t).done == 6);
  t.injuries = {{3 * kMillisecond, Injury::Kind::crash, 2, 0}, {4 * kMillisecond, Injury::Kind::restart, 2, 0}};
  CHECK(played(t).done == 6);
}
