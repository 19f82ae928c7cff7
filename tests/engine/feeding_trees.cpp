// The root of a double binary tree broadcast shares links with the trees that it feeds.
#include <doctest/doctest.h>

#include "tests/engine/planned_call.hpp"

namespace feeding_trees_test {

using namespace gccl;

TEST_CASE("a double binary tree's prediction knows that its root's messages cross the same link as the trees'") {
  const PlannedCall p = planned_call("l40s-box", 8, Collective::broadcast, "double_binary_tree", 4 << 20);
  CHECK(p.plan.predicted_ns == doctest::Approx(double(run_model(p.workload).time_ns)).epsilon(0.05));
}

}  // namespace feeding_trees_test
