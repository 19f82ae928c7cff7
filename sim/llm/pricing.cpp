#include "sim/llm/pricing.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/scenario/read/placement.hpp"
#include "sim/scenario/read/reader.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

constexpr double kSlowerMax = 20;  // one of two may stand still while the other lasts

bool in_nodes(const RankLists& groups, const StepWorld& world) {
  return std::ranges::all_of(groups, [&](const auto& group) {
    return std::ranges::all_of(group, [&](Rank r) { return world.node_of(r) == world.node_of(group[0]); });
  });
}

}  // namespace

Rank separate_stages(const LlmWorkload& w, const StepWorld& world) {
  const Rank stage = w.parallel.stage_ranks();
  std::map<Rank, Rank> last_on;  // node: the last stage with a rank there
  for (Rank r = 0; r < w.parallel.ranks(); ++r) {
    Rank& last = last_on[world.node_of(r)];
    last = std::max(last, r / stage);
  }
  Rank stages = 1;
  for (Rank s = 0; s < stages; ++s)
    for (Rank r = s * stage; r < (s + 1) * stage; ++r) stages = std::max(stages, last_on[world.node_of(r)] + 1);
  return stages;
}

Rank expert_ranks_in_node(const LlmWorkload& w, const StepWorld& world) {
  Rank n = 0;
  for (Rank r = 0; r < w.parallel.expert; ++r) n += world.node_of(r) == world.node_of(0);
  return n;
}

Json task_of(const LlmWorkload& w, const TrafficCall& call, const Json& groups) {
  Json task = {
      {"collective", name(call.collective)}, {"bytes", call.bytes}, {"dtype", name(call.dtype)}, {"groups", groups}};
  if (w.planner != PlannerKind::gccl) task["planner"] = kPlanners[std::size_t(w.planner)];
  if (const auto named = w.algorithms.find(call.collective); named != w.algorithms.end())
    task["algorithm"] = named->second->name;
  static constexpr std::string_view kLoads[] = {"uniform", "random", "skewed"};
  if (call.by_load) task["counts"] = {{"distribution", kLoads[std::size_t(w.model.experts.load)]}};
  return task;
}

Json run_of(const LlmWorkload& w, const StepWorld& world, const std::vector<const Traffic*>& traffic, bool one_group) {
  const Rank stages = one_group ? 1 : separate_stages(w, world);
  const auto node_of = [&](Rank r) { return world.node_of(r); };
  std::vector<std::pair<const TrafficCall*, RankLists>> calls;
  bool inside = true;
  for (const Traffic* t : traffic)
    for (const TrafficCall& c : t->calls) {
      calls.emplace_back(&c, groups_of(c.groups, w, 0, stages, node_of));
      if (one_group) calls.back().second.resize(1);
      inside = inside && !one_group && in_nodes(calls.back().second, world);
    }
  Json streams = Json::array();
  for (auto& [call, groups] : calls) {
    if (inside)  // one node is as good as all
      std::erase_if(groups, [&](const auto& group) { return world.node_of(group[0]) != world.node_of(0); });
    streams.push_back(Json::array({task_of(w, *call, groups)}));
  }
  return {{"label", traffic[0]->what}, {"engine", name(w.engine)}, {"concurrent", std::move(streams)}};
}

Json scenario_of(const LlmWorkload& w, const std::vector<Json>& runs) {
  Json document = {
      {"schema", "gccl/scenario/1"}, {"name", w.name}, {"cluster", std::filesystem::absolute(w.cluster).string()},
      {"ranks", w.parallel.ranks()}, {"seed", w.seed}, {"runs", runs}};
  if (w.placement.where) document["placement"] = w.placement.where->raw();
  return document;
}

StepWorld Pricer::world(const LlmWorkload& w) {
  auto& cluster = clusters_[w.cluster];
  if (!cluster) cluster = load_cluster(w.cluster);
  const Rank ranks = w.parallel.ranks();
  if (ranks > cluster->cards())
    w.where.find("parallel")
        .value_or(w.where)
        .fail(fmt::format("asks for {} (tensor x context x data x pipeline), but {} has only {} cards",
                          counted(ranks, "rank"), cluster->name(), cluster->cards()));
  return {cluster, place(w.placement, *cluster, ranks, w.seed)};
}

Campaign Pricer::campaign(const LlmWorkload& w, const StepWorld& world, const std::vector<Json>& runs) const {
  CampaignOptions o{.engine = {}, .seed = {}};
  o.authorities = options_.authorities;
  o.load = [&](const std::filesystem::path&) { return world.cluster; };
  const auto file = w.where.file().parent_path() / (w.where.file().filename().string() + " (its communications)");
  return make_campaign(read_scenario(json::Node::parse(scenario_of(w, runs).dump(), file)), o);
}

std::vector<Json> Pricer::play(const LlmWorkload& w, const StepWorld& world, const std::vector<Json>& runs) {
  std::vector<std::string> keys;
  std::vector<Json> fresh;
  std::vector<std::string> fresh_keys;
  for (const Json& run : runs) {
    keys.push_back(scenario_of(w, {run}).dump());
    if (rows_.contains(keys.back()) || std::ranges::find(fresh_keys, keys.back()) != fresh_keys.end()) continue;
    fresh.push_back(run);
    fresh_keys.push_back(keys.back());
  }
  if (!fresh.empty()) {
    const Campaign all = campaign(w, world, fresh);
    RunOptions o{.jobs = options_.jobs, .trace = false, .progress = options_.progress, .stop = options_.stop};
    if (options_.journal) o.journal = options_.journal, o.keys = point_keys(all);
    Json document = run_campaign(all, options_.engines, o).document;
    for (std::size_t i = 0; i < fresh.size(); ++i) rows_[fresh_keys[i]] = std::move(document["runs"][i]);
    simulated_ += fresh.size();
  }
  std::vector<Json> rows;
  for (const std::string& key : keys) rows.push_back(rows_.at(key));
  return rows;
}

std::vector<double> Pricer::predict(const LlmWorkload& w, const StepWorld& world, const std::vector<Json>& runs) {
  std::vector<std::string> keys, fresh_keys;
  std::vector<Json> fresh;
  for (const Json& run : runs) {
    keys.push_back(run.dump() + w.cluster.string());
    if (predicted_.contains(keys.back()) || std::ranges::find(fresh_keys, keys.back()) != fresh_keys.end()) continue;
    fresh.push_back(run);
    fresh_keys.push_back(keys.back());
  }
  if (!fresh.empty()) {
    const Campaign all = campaign(w, world, fresh);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const double us = all.points[i].predicted_us.value_or(NAN);
      predicted_[fresh_keys[i]] = std::isnan(us) ? 0 : us;
    }
  }
  std::vector<double> us;
  for (const std::string& key : keys) us.push_back(predicted_.at(key));
  return us;
}

std::pair<double, double> slower_together(const Json& row, std::size_t first, double alone_us, double other_alone_us) {
  double end = 0, other_end = 0;
  for (const Json& o : row["operations"]) {
    double& to = o["stream"].get<std::size_t>() < first ? end : other_end;
    to = std::max(to, o["end_us"].get<double>());
  }
  const double both = std::min(end, other_end);
  const auto slower = [&](double alone, double together) {
    const double done = alone - (together - both);  // while both were in flight; the rest went at full speed
    return done <= both / kSlowerMax ? kSlowerMax : std::max(1.0, both / done);
  };
  return {slower(alone_us, end), slower(other_alone_us, other_end)};
}

}  // namespace gccl::sim::llm
