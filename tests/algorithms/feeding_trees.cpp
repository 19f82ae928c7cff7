// The root of a double binary tree broadcast shares links with the trees that it feeds.
#include <doctest/doctest.h>

#include "tests/algorithms/machine.hpp"

using namespace gccl;
using gccl::test::Machine;

TEST_CASE("a double binary tree's prediction knows that its root's messages cross the same link as the trees'") {
  Machine machine("l40s-box", 8);
  const Call call{.kind = Collective::broadcast, .count = 4 << 20};
  const Plan plan = machine.plan(*find_algorithm(call.kind, "double_binary_tree"), call);
  const double simulated_ns = double(sim::run_model(machine.workload(call, plan)).time_ns);
  CHECK(plan.predicted_ns == doctest::Approx(simulated_ns).epsilon(0.05));
}
