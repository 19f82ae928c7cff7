// Channels that are in different rounds, or in different orders, and still share a port inside a node.
#include <doctest/doctest.h>

#include "tests/engine/planned_call.hpp"

namespace shared_ports_test {

using namespace gccl;

// By the time of the flow engine.
double predicted(const char* cluster, Rank ranks, const char* algorithm, const Slicing& slicing) {
  const PlannedCall p = planned_call(cluster, ranks, Collective::allreduce, algorithm, 16 << 20, slicing);
  return p.plan.predicted_ns / double(run_flow(p.workload).time_ns);
}

TEST_CASE("rounds to near ranks and to far ones leave a card by one port") {
  CHECK(predicted("pcie-box", 8, "rabenseifner", {.shares = 32, .lanes = 32}) == doctest::Approx(1).epsilon(0.05));
  CHECK(predicted("pcie-box", 4, "rabenseifner", {.shares = 32, .lanes = 32}) == doctest::Approx(1).epsilon(0.05));
  CHECK(predicted("l40s-box", 8, "rabenseifner", {.shares = 32, .lanes = 32}) == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("chains of many channels pass a card's narrow link in both orders") {
  CHECK(predicted("l40s-box", 5, "tree", {.shares = 256, .lanes = 8}) == doctest::Approx(1).epsilon(0.06));
}

}  // namespace shared_ports_test
