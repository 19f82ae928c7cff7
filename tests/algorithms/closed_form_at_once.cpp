// Closed forms of channels that begin a chunk each at once, against the flow engine, on shipped clusters.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/engine/workload.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {

struct Machine {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Card> cards;
  std::shared_ptr<const Layout> layout;
  PlannedBy by;

  Machine(const char* name, Rank ranks)
      : cluster(load_cluster(test::kRoot / "topologies" / (std::string(name) + ".json"))), cards(ranks) {
    std::iota(cards.begin(), cards.end(), 0);
    layout = std::make_shared<const Layout>(layout_of(*cluster, cards));
    by = planned_by(*cluster, cards, 4);
  }

  // Predicted by simulated.
  double ratio(const Algorithm& a, Count count, Count channels) const {
    const Call call{.kind = a.kind, .count = count};
    const Slicing s{channels, channels, by.tuning.window};
    Workload w;
    w.cluster = cluster.get();
    w.cards = cards;
    w.operations = {{.algorithm = &a,
                     .call = call,
                     .layout = layout,
                     .members = {},
                     .shares = s.shares,
                     .lanes = s.lanes,
                     .window = s.window,
                     .element_bytes = 4,
                     .protocol = &cluster->protocols()[0]}};
    w.streams = {{{0}}};
    return predicted(a, call, layout->view(0), by.models[0], s, by.tuning) / double(run_flow(w).time_ns);
  }
};

}  // namespace

TEST_CASE("binomial trees and PAT of channels with a chunk each are predicted as the flow engine has them") {
  for (const auto& [name, ranks] : {std::pair("ethernet-cpu", 16u),
                                    {"polaris", 12u},
                                    {"polaris", 16u},
                                    {"dgx-h100-superpod-2048", 16u},
                                    {"alps-gh200-2048", 24u}}) {
    const Machine machine(name, ranks);
    const auto hold = [&, of = std::string(name), n = ranks](Collective kind, const std::string& algorithm, Count count,
                                                             double limit) {
      for (const Count channels : {2u, 4u, 8u, 16u}) {
        const double ratio = machine.ratio(*find_algorithm(kind, algorithm), count, channels);
        INFO(gccl::name(kind), " ", algorithm, " on ", n, " ranks of ", of, ", ", count, " elements in ", channels,
             " channels: predicted ", ratio, " of what was simulated");
        CHECK(std::abs(ratio - 1) <= limit);
      }
    };
    for (const Count count : {Count(1) << 16, Count(1) << 18, Count(1) << 20}) {
      hold(Collective::broadcast, "binomial", count, 0.08);
      hold(Collective::reduce, "binomial", count, 0.08);
    }
    hold(Collective::allgather, "pat", (Count(1) << 18) / ranks, 0.13);
    // Blocks that go one by one keep the ports busy from the first to the last.
    hold(Collective::allgather, "pat", (Count(1) << 26) / ranks, 0.025);
  }
}
