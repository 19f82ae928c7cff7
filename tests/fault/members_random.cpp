// Random injuries to machines in virtual time: whatever happens, the promises of docs/faults.md hold. Broken promises
// are found, too.
//   GCCL_FAULT_SEED, GCCL_FAULT_SEEDS     which seeds, and how many
//   GCCL_FAULT_RANKS                      on so many machines, and up to 32 more; else on 1 to 64
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>

#include "sim/fault/members.hpp"
#include "tests/support/from_environment.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {

FaultTimeline timeline_of(std::uint64_t seed) {
  const Rank ranks = Rank(test::from_environment("GCCL_FAULT_RANKS", 0));
  FaultTimeline t = ranks > 0 ? random_timeline(seed, ranks, ranks + 32) : random_timeline(seed, 1, 64);
  if (t.ranks > 128) t.rounds = 1;
  return t;
}

// The first of the seeds up to 1000 at which a broken rule breaks a promise, and which.
std::string found_by(const fault::MemberRules& broken, std::uint32_t helpers) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    FaultTimeline t = random_timeline(seed, 1, 8);
    t.helpers = helpers;
    if (const MembersOutcome o = play_members(t, seed, broken); !o.violations.empty())
      return fmt::format("seed {}: {}", seed, o.violations[0]);
  }
  return "";
}

}  // namespace

TEST_CASE("whatever happens to machines, survivors decide alike and go on") {
  const std::uint64_t first = test::from_environment("GCCL_FAULT_SEED", 1),
                      seeds = test::from_environment("GCCL_FAULT_SEEDS", 250);
  std::uint64_t packets = 0, machines = 0, done = 0, expelled = 0, without_quorum = 0;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + seeds && failures < 5; ++seed) {
    const FaultTimeline t = timeline_of(seed);
    const MembersOutcome o = play_members(t, seed);
    packets += o.packets;
    machines += o.sent.size();
    done += o.done;
    expelled += o.expelled;
    without_quorum += o.without_quorum;
    if (o.violations.empty()) continue;
    ++failures;
    FAIL_CHECK(fmt::format(
        "{}\n  {}\n  replay: GCCL_FAULT_SEED={} GCCL_FAULT_SEEDS=1 ctest --preset release -R members_random",
        o.violations[0], text(t), seed));
  }
  MESSAGE(fmt::format(
      "seeds {} to {}: {} machines, {} packets; {} done, {} expelled, {} without quorum, the others crashed", first,
      first + seeds - 1, machines, packets, done, expelled, without_quorum));
  CHECK((done > 0 || seeds < 10));
}

TEST_CASE("the same seed gives the same run") {
  std::uint64_t last = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const FaultTimeline t = timeline_of(seed);
    const std::uint64_t trace = play_members(t, seed).trace;
    CHECK(trace == play_members(t, seed).trace);
    CHECK(trace != last);
    last = trace;
  }
}

TEST_CASE("an agreement that trusts the first coordinator is found") {
  struct : fault::MembershipRules {
    bool trusts_proposals() const override { return true; }
  } broken;
  const std::string found = found_by({.membership = &broken}, 3);
  MESSAGE(found);
  CHECK(!found.empty());
}

TEST_CASE("a missing epoch check is found") {
  struct : fault::MembershipRules {
    bool is_current(fault::Epoch, fault::Epoch) const override { return true; }
  } broken;
  const std::string found = found_by({.membership = &broken}, 3);
  MESSAGE(found);
  CHECK(!found.empty());
}

TEST_CASE("suspicion without indirect confirmation is found") {
  struct : fault::DetectorRules {
    bool accuses(bool, bool) const override { return true; }
  } broken;
  const std::string found = found_by({.detector = &broken}, 0);
  MESSAGE(found);
  CHECK(found.find("nothing was done") != std::string::npos);
}
