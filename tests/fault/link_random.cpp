// The link's guarantee, by seed: whatever a wire does, every message arrives once, in order and unchanged.
#include <doctest/doctest.h>

#include <string>

#include "tests/fault/link_traffic.hpp"
#include "tests/support/from_environment.hpp"

using namespace link_test;

namespace {

// The first seed at which what is planted is noticed; 0: not within a thousand.
std::uint64_t found(const std::string& what, const LinkRules& planted) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed)
    if (const std::string wrong = run(seed, planted).wrong; !wrong.empty()) {
      MESSAGE(what << ": seed " << seed << ", " << wrong);
      return seed;
    }
  return 0;
}

}  // namespace

// GCCL_LINK_SEEDS=100000 GCCL_LINK_SEED=1 ctest --preset release -R link_random
TEST_CASE("every message arrives once, in order and unchanged, whatever the wire does") {
  const std::uint64_t first = test::from_environment("GCCL_LINK_SEED", 1),
                      seeds = test::from_environment("GCCL_LINK_SEEDS", 400);
  fault::Link::Counters sum{};
  std::uint64_t messages = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    const Outcome o = run(seed);
    CHECK(o.wrong == "");
    messages += o.messages;
    sum.repeated += o.counters.repeated, sum.duplicates += o.counters.duplicates, sum.damaged += o.counters.damaged;
    sum.foreign += o.counters.foreign, sum.reconnects += o.counters.reconnects, sum.sent += o.counters.sent;
  }
  MESSAGE(seeds << " seeds from " << first << ": " << messages << " messages of last epochs, " << sum.sent
                << " frames sent, " << sum.repeated << " repeated, " << sum.duplicates << " duplicates, " << sum.damaged
                << " damaged, " << sum.foreign << " of another epoch, " << sum.reconnects << " reconnects");
  // The faults did happen.
  if (seeds < 400) return;
  CHECK(sum.repeated > 1000);
  CHECK(sum.duplicates > 1000);
  CHECK(sum.damaged > 100);
  CHECK(sum.foreign > 100);
  CHECK(sum.reconnects > 100);
}

TEST_CASE("the same seed gives the same trace, another one another") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Outcome first = run(seed);
    CHECK(run(seed).trace == first.trace);
    CHECK(run(seed + 1000).trace != first.trace);
  }
}

TEST_CASE("a link without duplicate suppression is noticed within 1,000 seeds") {
  struct : LinkRules {
    bool is_duplicate(std::uint64_t, std::uint64_t) const override { return false; }
  } planted;
  CHECK(found("no duplicate suppression", planted) > 0);
}

TEST_CASE("an acknowledgement that is off by one is noticed within 1,000 seeds") {
  struct : LinkRules {
    std::uint64_t acknowledgement(std::uint64_t arrived) const override { return arrived + 1; }
  } planted;
  CHECK(found("an acknowledgement off by one", planted) > 0);
}

TEST_CASE("a missing epoch check is noticed within 1,000 seeds") {
  struct : LinkRules {
    bool is_current(std::uint32_t, std::uint32_t) const override { return true; }
  } planted;
  CHECK(found("no epoch check", planted) > 0);
}

TEST_CASE("a last frame that is never repeated is noticed within 1,000 seeds") {
  struct : LinkRules {
    bool repeats(std::uint64_t in_flight) const override { return in_flight > 1; }
  } planted;
  CHECK(found("the last frame not repeated", planted) > 0);
}

TEST_CASE("a credit that each duplicate leaks is noticed within 1,000 seeds") {
  struct : LinkRules {
    std::uint64_t credit(std::uint64_t taken, std::uint64_t credits, std::uint64_t duplicates) const override {
      return taken + credits - duplicates;
    }
  } planted;
  CHECK(found("a credit leak", planted) > 0);
}
