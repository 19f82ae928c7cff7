// Ranks on cards of a shipped cluster: what calls are predicted to take, and what they take on the flow engine.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/engine/workload.hpp"
#include "sim/flow/cost_check.hpp"
#include "tests/support/project.hpp"

namespace gccl::test {

struct Machine {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Card> cards;
  std::shared_ptr<const Layout> layout;

  Machine(const char* name, std::vector<Card> on)
      : Machine(load_cluster(kRoot / "topologies" / (std::string(name) + ".json")), std::move(on)) {}
  Machine(std::shared_ptr<const Cluster> of, std::vector<Card> on)
      : cluster(std::move(of)),
        cards(std::move(on)),
        layout(std::make_shared<const Layout>(layout_of(*cluster, cards))) {}
  Machine(const char* name, Rank ranks) : Machine(name, sim::first_cards(ranks)) {}

  View view() const { return layout->view(0); }
  const PlannedBy& by(const Call& call) {
    const auto [at, fresh] = by_.try_emplace(order_from_root(call, view()));
    if (fresh) at->second = planned_by(*cluster, cards, 4, at->first);
    return at->second;
  }
  // In the slicing that is stated, or else as the planner would cut it up.
  Plan plan(const Algorithm& a, const Call& call, const std::optional<Slicing>& slicing = {}) {
    const PlannedBy& planned = by(call);
    return plan_of(a, call, view(), planned.models, planned.tuning, nullptr, slicing);
  }
  sim::Workload workload(const Call& call, const Plan& p) const {
    sim::Workload w;
    w.cluster = cluster.get();
    w.cards = cards;
    w.operations = {{.algorithm = p.algorithm,
                     .call = call,
                     .layout = layout,
                     .members = {},
                     .shares = p.slicing.shares,
                     .lanes = p.slicing.lanes,
                     .window = p.slicing.window,
                     .element_bytes = 4,
                     .protocol = &cluster->protocols()[p.protocol]}};
    w.streams = {{{0}}};
    return w;
  }
  double simulated_ns(const Call& call, const Plan& p) const {
    return double(sim::run_flow(workload(call, p)).time_ns);
  }

 private:
  std::map<std::vector<Rank>, PlannedBy> by_;
};

// How far ratios are from 1: in the mean, at worst and where that is.
struct Off {
  double sum = 0, worst = 0;
  int points = 0;
  std::string where;

  void add(double ratio, const std::string& at) {
    const double off = std::abs(ratio - 1);
    sum += off, ++points;
    if (off > worst) worst = off, where = at;
  }
  double mean() const { return sum / points; }
};

}  // namespace gccl::test
