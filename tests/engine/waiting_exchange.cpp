// Ranks whose messages share links unequally wait for each other in an exchange of whole blocks.
#include <doctest/doctest.h>

#include "tests/engine/planned_call.hpp"

namespace waiting_exchange_test {

using namespace gccl;

struct Case {
  const char* cluster;
  Rank ranks;
};
// Cards in pairs with a narrow link each; nodes of eight cards and of four; leaves with other ways; corners of a torus;
// groups of a dragonfly.
constexpr Case kUneven[] = {
    {"l40s-box", 8},         {"mixed", 12},    {"custom-fabric", 10},     {"tpu-v4-4096", 8}, {"pcie-box", 8},
    {"alps-gh200-2048", 64}, {"leonardo", 23}, {"llama3-h100-24576", 63}, {"tpu-v4-4096", 48}};
constexpr Case kEven[] = {{"l40s-box", 5}, {"mixed", 8}, {"leonardo", 40}, {"dgx-h100-superpod-2048", 32}};
constexpr Slicing kWhole{.shares = 1, .lanes = 1}, kChannels{.shares = 4, .lanes = 4};

// By the time of the flow engine.
double predicted(const Case& c, Collective kind, const Slicing& slicing) {
  const Count block = (64 << 20) / sizeof(float) / c.ranks;
  const PlannedCall p = planned_call(c.cluster, c.ranks, kind, "pairwise", block, slicing);
  return p.plan.predicted_ns / double(run_flow(p.workload).time_ns);
}

TEST_CASE("whole blocks are predicted with what ranks wait for each other") {
  for (const Collective kind : {Collective::alltoall, Collective::reduce_scatter}) {
    CAPTURE(kind);
    for (const Case& c : kUneven) {
      CAPTURE(c.cluster);
      CHECK(predicted(c, kind, kWhole) == doctest::Approx(1).epsilon(0.15));
      CHECK(predicted(c, kind, kChannels) == doctest::Approx(1).epsilon(0.3));
    }
  }
}

TEST_CASE("and where all ranks do alike they wait for nobody") {
  for (const Case& c : kEven) {
    CAPTURE(c.cluster);
    CHECK(predicted(c, Collective::alltoall, kWhole) == doctest::Approx(1).epsilon(0.02));
  }
}

TEST_CASE("a root that takes a window of long blocks at a time leaves its busiest link idle") {
  const auto gathered = [](Count bytes) {
    const PlannedCall p = planned_call("tpu-v4-4096", 32, Collective::gather, "linear", bytes / 4 / 32, kWhole);
    return p.plan.predicted_ns / double(run_flow(p.workload).time_ns);
  };
  CHECK(gathered(32 << 20) == doctest::Approx(1).epsilon(0.05));  // eager: all are on their way at once
  CHECK(gathered(64 << 20) == doctest::Approx(1).epsilon(0.03));
}

TEST_CASE("many chunks in several channels wait less, and are chosen") {
  for (const Case& c : {Case{"l40s-box", 8}, Case{"mixed", 12}, Case{"custom-fabric", 10}}) {
    CAPTURE(c.cluster);
    const auto time = [&](const std::optional<Slicing>& slicing) {
      const Count block = (8 << 20) / sizeof(float) / c.ranks;
      return double(
          run_flow(planned_call(c.cluster, c.ranks, Collective::alltoall, "pairwise", block, slicing).workload)
              .time_ns);
    };
    CHECK(time({}) < 0.75 * time(kWhole));
  }
}

}  // namespace waiting_exchange_test
