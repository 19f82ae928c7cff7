// The root of a double binary tree broadcast shares links with the trees that it feeds.
#include <doctest/doctest.h>

#include <numeric>
#include <string>

#include "libgccl/algorithms/algorithm.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/engine/workload.hpp"

namespace feeding_trees_test {

using namespace gccl;
using namespace gccl::sim;

TEST_CASE("a double binary tree's prediction knows that its root's messages cross the same link as the trees'") {
  const auto cluster = load_cluster(GCCL_SOURCE_DIR "/topologies/l40s-box.json");
  std::vector<Card> cards(8);
  std::iota(cards.begin(), cards.end(), 0);
  const auto layout = std::make_shared<Layout>(layout_of(*cluster, cards));
  const Algorithm& tree = *find_algorithm(Collective::broadcast, "double_binary_tree");
  const Call call{.kind = Collective::broadcast, .count = 4 << 20};
  const PlannedBy by = planned_by(*cluster, cards, 4);
  const Plan plan = plan_of(tree, call, layout->view(0), by.models, by.tuning, nullptr, {});
  Workload w;
  w.cluster = cluster.get();
  w.cards = cards;
  w.operations.push_back({.algorithm = &tree,
                          .call = call,
                          .layout = layout,
                          .members = {},
                          .shares = plan.slicing.shares,
                          .lanes = plan.slicing.lanes,
                          .window = plan.slicing.window,
                          .protocol = &cluster->protocols()[plan.protocol]});
  w.streams = {{{0}}};
  CHECK(plan.predicted_ns == doctest::Approx(double(run_model(w).time_ns)).epsilon(0.05));
}

}  // namespace feeding_trees_test
