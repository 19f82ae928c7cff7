#include "sim/flow/cost_check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/fabrics/star.hpp"
#include "libgccl/cluster/read/load.hpp"

namespace gccl::sim {
namespace {

Count all_equal(const void* count, Rank, Rank) { return *static_cast<const Count*>(count); }

constexpr CardCosts kCosts{.overhead_ns = 400, .receive_overhead_ns = 300, .combine_GBps = 200, .copy_GBps = 400};

constexpr const char* kTwoLevels = R"({"schema": "gccl/cluster/1", "name": "two levels",
  "parameters": {"card": {"overhead_ns": 400, "receive_overhead_ns": 300, "combine_GBps": 200, "copy_GBps": 400},
                 "eager_bytes": 65536,
                 "links": {"fast": {"bandwidth_GBps": 200, "latency_ns": 300}, "port": {"bandwidth_GBps": 50, "latency_ns": 600}}},
  "nodes": [{"count": 4, "cards": 8, "inside": {"kind": "switch", "link": "fast"},
             "nics": {"count": 8, "bus": "fast", "port": "port"}}],
  "fabric": {"kind": "fat_tree", "leaf_size": 16, "oversubscription": 2, "link": "port"}})";

}  // namespace

std::vector<Card> first_cards(Rank ranks) {
  std::vector<Card> cards(ranks);
  std::iota(cards.begin(), cards.end(), 0);
  return cards;
}

double CostPoint::error(double slack_ns) const {
  if (!std::isfinite(predicted_ns)) return predicted_ns;
  const double off = std::abs(predicted_ns - simulated_ns);
  return off <= slack_ns ? 0 : off / simulated_ns;
}

double CostPoint::apart() const { return std::abs(predicted_ns - simulated_ns) / std::max(predicted_ns, simulated_ns); }

std::optional<CostPoint> cost_point(const Algorithm& a, const Cluster& cluster, const std::vector<Card>& cards,
                                    Count count, Outcome (*run)(const Workload&)) {
  const auto layout = std::make_shared<Layout>(layout_of(cluster, cards));
  const Call call{.kind = a.kind, .count = count, .counts = all_equal, .table = &count};
  if (!a.cost || !a.can(call, layout->view(0))) return std::nullopt;
  Workload w;
  w.cluster = &cluster;
  w.cards = cards;
  w.operations.push_back({.algorithm = &a, .call = call, .layout = layout, .members = {}});
  w.streams = {{{0}}};
  return CostPoint{a.cost(call, layout->view(0), cost_model(cluster, cards, 4)), double(run(w).time_ns)};
}

std::optional<std::string> wrong_cost(const Algorithm& a) {
  std::optional<std::string> text;
  double worst = 1;  // error by tolerance
  const auto hold = [&](const Cluster& cluster, const std::vector<Card>& cards, double tolerance,
                        Outcome (*run)(const Workload&), const char* engine, bool any_sizes = false) {
    const Rank ranks = Rank(cards.size()), nodes = cluster.node_of(*std::ranges::max_element(cards)) + 1;
    for (const Count count : {Count(1) << 6, Count(1) << 14, Count(1) << 22}) {
      const auto p = cost_point(a, cluster, cards, count, run);
      if (!p) continue;
      // Each message rounds to a nanosecond.
      const double off = (any_sizes ? p->apart() : p->error(2.0 * ranks)) / tolerance;
      if (off <= worst) continue;
      worst = off;
      text = fmt::format("its closed form says {} ns for {} ranks of {} and {} bytes, the {} engine {} ns",
                         std::llround(p->predicted_ns), ranks, counted(nodes, "node"), 4 * count, engine,
                         std::llround(p->simulated_ns));
    }
  };
  const auto on_star = [&](std::initializer_list<Rank> all, double tolerance) {
    for (const Rank ranks : all) hold(Star(ranks, 50, 900, kCosts), first_cards(ranks), tolerance, run_model, "model");
  };
  on_star({2, 4, 8, 16, 64}, kCostTolerance);
  on_star({3, 5, 6, 7, 12, 23}, kCostToleranceOdd);
  static const auto two_levels = parse_cluster(kTwoLevels, "two levels");
  for (const Rank ranks : {two_levels->cards(), 12u, 13u, 23u})
    hold(*two_levels, first_cards(ranks), ranks == two_levels->cards() ? kCostToleranceTwoLevels : kCostToleranceUneven,
         run_flow, "flow");
  for (const std::vector<Card>& cards :
       {std::vector<Card>{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27},
        std::vector<Card>{0, 8, 16, 24, 1, 9, 17, 2, 10, 18, 3, 11, 19, 4, 12, 5}})
    hold(*two_levels, cards, kCostToleranceAnySizes, run_flow, "flow", true);
  return text;
}

}  // namespace gccl::sim
