#include "libgccl/cluster/cost_stairs.hpp"

#include <array>

#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/cluster/rescaled.hpp"
#include "libgccl/cost/scaled.hpp"

namespace gccl {
namespace {

constexpr Count kPlannedChannelsMax = 32;  // NCCL's channels
constexpr std::size_t kTiers = std::size_t(Tier::other) + 1;

bool within_nodes(std::size_t tier) { return Tier(tier) == Tier::card || Tier(tier) == Tier::node; }

std::vector<CostModel> models_of(const std::shared_ptr<const Cluster>& cluster, const std::vector<Card>& cards,
                                 unsigned element_bytes, std::span<const Rank> order) {
  std::vector<CostModel> models;
  for (const Protocol& p : cluster->protocols()) models.push_back(cost_model(cluster, cards, element_bytes, p, order));
  return models;
}

std::vector<CostModel> all_scaled(std::vector<CostModel> models, const CostScale& by) {
  for (CostModel& m : models) m = scaled(std::move(m), by);
  return models;
}

// Of the cluster with its bandwidths times these factors, where ranks wait for each other as they do by the models
// `as_is`: who waits for whom changes in jumps, and may take longer on faster links.
std::vector<CostModel> rescaled_models(const std::vector<CostModel>& as_is, const Cluster& cluster,
                                       const Rescaled::Factors& bandwidth, const std::vector<Card>& cards,
                                       unsigned element_bytes, std::span<const Rank> order) {
  auto models = models_of(std::make_shared<const Rescaled>(cluster, bandwidth), cards, element_bytes, order);
  for (std::size_t i = 0; i < models.size(); ++i)
    for (const auto loads : {&CostModel::all, &CostModel::inside, &CostModel::rail}) {
      (models[i].*loads).stretch = (as_is[i].*loads).stretch;
      (models[i].*loads).gather_stretch = (as_is[i].*loads).gather_stretch;
    }
  return models;
}

Rescaled::Factors factors(double within, double others) {
  Rescaled::Factors f;
  for (std::size_t t = 0; t < kTiers; ++t) f[t] = within_nodes(t) ? within : others;
  return f;
}

std::array<bool, kTiers> tiers_of(const Cluster& cluster) {
  std::array<bool, kTiers> has{};
  for (const Link& l : cluster.links()) has[std::size_t(l.tier)] = true;
  return has;
}

bool has_network(const Cluster& cluster) {
  const auto has = tiers_of(cluster);
  for (std::size_t t = 0; t < kTiers; ++t)
    if (has[t] && !within_nodes(t)) return true;
  return false;
}

}  // namespace

PlannedBy planned_by(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                     std::span<const Rank> order) {
  if (!cluster.backends().empty()) {
    const Layout layout = layout_of(cluster, cards);
    const View view = layout.view(0);
    const TransportModel& t = transport_model_of(cluster.transports(), cluster.backends(), view.nodes == 1);
    return {.models = {t.costs_on(view, element_bytes)}, .tuning = t.tuning.where(false)};
  }
  PlannedBy by{.models = models_of(not_held(cluster), cards, element_bytes, order), .tuning = {}};
  by.tuning.search = true;
  by.tuning.channels_max = kPlannedChannelsMax;
  return by;
}

// Where links of two tiers are equally narrow the one that takes its step last answers for both: so the farthest ones
// go first, and a NIC is named before the spine that is no slower.
CostStairs cost_stairs(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                       std::span<const Rank> order) {
  using What = CostKind::What;
  constexpr double kLess = 1 - CostStairs::kLighter;
  CostStairs stairs;
  stairs.models.push_back(planned_by(cluster, cards, element_bytes, order).models);
  const auto step = [&](CostKind kind, std::vector<CostModel> models) {
    stairs.kinds.push_back(kind);
    stairs.models.push_back(std::move(models));
  };
  const auto scaled_step = [&](CostKind kind, const CostScale& by) {
    step(kind, all_scaled(stairs.models.back(), by));
  };
  if (!cluster.backends().empty()) {
    scaled_step({What::bandwidth, name(Tier::nic)}, {.between = kLess});
    scaled_step({What::bandwidth, name(Tier::node)}, {.inside = kLess});
  } else {
    const auto has = tiers_of(cluster);
    Rescaled::Factors bandwidth;
    bandwidth.fill(1);
    for (std::size_t t = kTiers; t-- > 0;) {
      if (!has[t]) continue;
      bandwidth[t] = 1 / kLess;
      step({What::bandwidth, name(Tier(t))},
           rescaled_models(stairs.models.front(), cluster, bandwidth, cards, element_bytes, order));
    }
  }
  scaled_step({What::channel}, {.channel = kLess});
  scaled_step({What::reduction}, {.reduction = kLess});
  scaled_step({What::latency}, {.latency = kLess});
  scaled_step({What::start_up}, {.start_up = kLess});
  return stairs;
}

std::vector<Better> better_machines(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                                    std::span<const Rank> order) {
  const std::vector<CostModel> now = planned_by(cluster, cards, element_bytes, order).models;
  const bool by_routes = cluster.backends().empty();
  const bool several = layout_of(cluster, cards).view(0).nodes > 1;
  std::vector<Better> all;
  const auto faster = [&](double within, double others) {
    if (!by_routes) return all_scaled(now, {.inside = 1 / within, .between = 1 / others});
    return rescaled_models(now, cluster, factors(within, others), cards, element_bytes, order);
  };
  if (several && by_routes && !has_network(cluster)) {  // such as a torus of cards
    all.push_back({"links between cards twice as fast", faster(2, 1)});
  } else {
    all.push_back({"links inside nodes twice as fast", faster(2, 1)});
    if (several) all.push_back({"the network between nodes twice as fast", faster(1, 2)});
  }
  all.push_back({"half the latency of messages", all_scaled(now, {.latency = 0.5})});
  all.push_back({"half the time to start an operation", all_scaled(now, {.start_up = 0.5})});
  all.push_back({"reductions and copies twice as fast", all_scaled(now, {.reduction = 0.5})});
  return all;
}

}  // namespace gccl
