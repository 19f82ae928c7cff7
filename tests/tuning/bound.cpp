// What a call takes at least, which simulated times never fall below.
#include "sim/tuning/bound.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "libgccl/cluster/read/load.hpp"
#include "tests/support/project.hpp"

using namespace gccl;

namespace {

double simulated_ns(const Cluster& cluster, const std::vector<Card>& cards, const Algorithm& a, const Call& call,
                    const std::shared_ptr<const Layout>& layout, const Protocol& protocol, Count shares, Count lanes,
                    sim::Outcome (*run)(const sim::Workload&)) {
  sim::Workload w;
  w.cluster = &cluster;
  w.cards = cards;
  w.operations = {{.algorithm = &a,
                   .call = call,
                   .layout = layout,
                   .members = {},
                   .shares = shares,
                   .lanes = lanes,
                   .element_bytes = 4,
                   .protocol = &protocol}};
  w.streams = {{{0}}};
  return double(run(w).time_ns);
}

}  // namespace

TEST_CASE("no engine is ever faster than the bound, whatever the algorithm, the protocol and the chunks") {
  std::size_t cases = 0;
  double closest = 0;
  for (const char* name : {"ethernet-cpu", "polaris", "pcie-box", "mixed"}) {
    const auto cluster = load_cluster(test::kRoot / "topologies" / (std::string(name) + ".json"));
    for (const Rank n : {2u, 12u}) {
      if (n > cluster->cards()) continue;
      std::vector<Card> cards(n);
      std::iota(cards.begin(), cards.end(), 0);
      const auto layout = std::make_shared<const Layout>(layout_of(*cluster, cards));
      for (const Algorithm& a : algorithms()) {
        if (has_counts(a.kind)) continue;
        for (const Count count : {Count(1), Count(1) << 16}) {
          const Call call{.kind = a.kind, .count = count};
          if (!a.can(call, layout->view(0))) continue;
          const Protocol& protocol = cluster->protocols()[cases % cluster->protocols().size()];
          const double least = sim::least_ns(*cluster, cards, a, call, *layout, 4, protocol);
          for (const auto run : {sim::run_model, sim::run_flow})
            for (const auto& [shares, lanes] : {std::pair<Count, Count>{1, 1}, {4, 2}}) {
              const double ns = simulated_ns(*cluster, cards, a, call, layout, protocol, shares, lanes, run);
              CAPTURE(name);
              CAPTURE(n);
              CAPTURE(count);
              CAPTURE(a.name);
              CHECK(least <= ns * (1 + 1e-9) + 2);  // engines count whole nanoseconds
              if (ns > 0) closest = std::max(closest, least / ns);
              ++cases;
            }
        }
      }
    }
  }
  CHECK(cases > 500);
  CHECK(closest > 0.9);  // it is worth having
}
