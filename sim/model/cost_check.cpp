#include "sim/model/cost_check.hpp"

#include <cmath>
#include <numeric>

#include "sim/cluster/cost_model.hpp"
#include "sim/cluster/star.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {
namespace {

Count all_equal(const void* count, Rank, Rank) { return *static_cast<const Count*>(count); }

constexpr CardCosts kCosts{.overhead_ns = 400, .receive_overhead_ns = 300, .combine_GBps = 200, .copy_GBps = 400};

}  // namespace

std::optional<std::string> wrong_cost(const Algorithm& a) {
  if (!a.cost) return std::nullopt;
  double worst = kCostTolerance;
  std::optional<std::string> text;
  for (const Rank ranks : {2u, 4u, 8u, 16u, 64u})
    for (const Count count : {Count(1) << 6, Count(1) << 14, Count(1) << 22}) {
      const Star star(ranks, 50, 900, kCosts);
      Workload w;
      w.cluster = &star;
      w.cards.resize(ranks);
      std::iota(w.cards.begin(), w.cards.end(), 0);
      const auto layout = std::make_shared<Layout>(Layout::flat(ranks));
      const Call call{.kind = a.kind, .count = count, .counts = all_equal, .table = &count};
      if (!a.can(call, layout->view(0))) continue;
      w.operations.push_back({.algorithm = &a, .call = call, .layout = layout, .members = {}});
      w.streams = {{{0}}};
      const double simulated = double(run_model(w).time_ns);
      const double predicted = a.cost(call, layout->view(0), cost_model(star, w.cards, 4));
      if (std::abs(predicted - simulated) <= 2.0 * ranks) continue;  // each message rounds to a nanosecond
      const double off = std::abs(predicted - simulated) / simulated;
      if (!(off > worst) && std::isfinite(predicted)) continue;
      worst = off;
      text = "its closed form says " + std::to_string(std::llround(predicted)) + " ns for " + std::to_string(ranks) +
             " ranks and " + std::to_string(4 * count) + " bytes, the model engine " +
             std::to_string(std::llround(simulated)) + " ns";
    }
  return text;
}

}  // namespace gccl::sim
