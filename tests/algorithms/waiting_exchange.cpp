// Ranks whose messages share links unequally wait for each other in an exchange of whole blocks.
#include <doctest/doctest.h>

#include "tests/algorithms/machine.hpp"

using namespace gccl;
using gccl::test::Machine;

namespace {

struct Ranks {
  const char* cluster;
  Rank number;
};
// Cards in pairs with a narrow link each; nodes of eight cards and of four; leaves with other ways; corners of a torus;
// groups of a dragonfly; a last node that is not full.
constexpr Ranks kUneven[] = {
    {"l40s-box", 8},         {"mixed", 12},    {"custom-fabric", 10},     {"tpu-v4-4096", 8}, {"pcie-box", 8},
    {"alps-gh200-2048", 64}, {"leonardo", 23}, {"llama3-h100-24576", 63}, {"tpu-v4-4096", 48}};
constexpr Ranks kEven[] = {{"l40s-box", 5}, {"mixed", 8}, {"leonardo", 40}, {"dgx-h100-superpod-2048", 32}};
constexpr Slicing kWhole{.shares = 1, .lanes = 1}, kChannels{.shares = 4, .lanes = 4};

// One call of blocks of floats, of so many bytes in all.
struct Exchanged {
  double predicted_ns, simulated_ns;
  double ratio() const { return predicted_ns / simulated_ns; }
};
Exchanged exchanged(const Ranks& ranks, Collective kind, const char* algorithm, Count bytes,
                    const std::optional<Slicing>& slicing) {
  Machine machine(ranks.cluster, ranks.number);
  const Call call{.kind = kind, .count = bytes / 4 / ranks.number};
  const Plan plan = machine.plan(*find_algorithm(kind, algorithm), call, slicing);
  return {plan.predicted_ns, machine.simulated_ns(call, plan)};
}

}  // namespace

TEST_CASE("whole blocks are predicted with what ranks wait for each other") {
  for (const Collective kind : {Collective::alltoall, Collective::reduce_scatter}) {
    CAPTURE(kind);
    for (const Ranks& r : kUneven) {
      CAPTURE(r.cluster);
      CHECK(exchanged(r, kind, "pairwise", 64 << 20, kWhole).ratio() == doctest::Approx(1).epsilon(0.15));
      CHECK(exchanged(r, kind, "pairwise", 64 << 20, kChannels).ratio() == doctest::Approx(1).epsilon(0.3));
    }
  }
}

TEST_CASE("and where all ranks do alike they wait for nobody") {
  for (const Ranks& r : kEven) {
    CAPTURE(r.cluster);
    CHECK(exchanged(r, Collective::alltoall, "pairwise", 64 << 20, kWhole).ratio() == doctest::Approx(1).epsilon(0.02));
  }
}

TEST_CASE("a root that takes a window of long blocks at a time leaves its busiest link idle") {
  const auto gathered = [](Count bytes) {
    return exchanged({"tpu-v4-4096", 32}, Collective::gather, "linear", bytes, kWhole).ratio();
  };
  CHECK(gathered(32 << 20) == doctest::Approx(1).epsilon(0.05));  // eager: all are on their way at once
  CHECK(gathered(64 << 20) == doctest::Approx(1).epsilon(0.03));
}

TEST_CASE("many chunks in several channels wait less, and are chosen") {
  // On the last one whole blocks wait for nobody.
  struct Place {
    Ranks ranks;
    double most;  // of what whole blocks take
  };
  for (const Place& p : {Place{{"l40s-box", 8}, 0.75}, {{"custom-fabric", 10}, 0.85}, {{"mixed", 12}, 1.1}}) {
    CAPTURE(p.ranks.cluster);
    const auto takes_ns = [&](const std::optional<Slicing>& slicing) {
      return exchanged(p.ranks, Collective::alltoall, "pairwise", 8 << 20, slicing).simulated_ns;
    };
    CHECK(takes_ns({}) < p.most * takes_ns(kWhole));
  }
}
