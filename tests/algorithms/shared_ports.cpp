// Channels that are in different rounds, or in different orders, and still share a port inside a node.
#include <doctest/doctest.h>

#include "tests/algorithms/machine.hpp"

using namespace gccl;
using gccl::test::Machine;

namespace {

double all_reduce_predicted_by_simulated(const char* cluster, Rank ranks, const char* algorithm,
                                         const Slicing& slicing) {
  Machine machine(cluster, ranks);
  const Call call{.kind = Collective::allreduce, .count = 16 << 20};
  const Plan plan = machine.plan(*find_algorithm(call.kind, algorithm), call, slicing);
  return plan.predicted_ns / machine.simulated_ns(call, plan);
}

}  // namespace

TEST_CASE("rounds to near ranks and to far ones leave a card by one port") {
  const auto off = [](const char* cluster, Rank ranks) {
    return all_reduce_predicted_by_simulated(cluster, ranks, "rabenseifner", {.shares = 32, .lanes = 32});
  };
  CHECK(off("pcie-box", 8) == doctest::Approx(1).epsilon(0.05));
  CHECK(off("pcie-box", 4) == doctest::Approx(1).epsilon(0.05));
  CHECK(off("l40s-box", 8) == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("chains of many channels pass a card's narrow link in both orders") {
  CHECK(all_reduce_predicted_by_simulated("l40s-box", 5, "tree", {.shares = 256, .lanes = 8}) ==
        doctest::Approx(1).epsilon(0.06));
}
