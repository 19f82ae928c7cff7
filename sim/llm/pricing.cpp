#include "sim/llm/pricing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "sim/llm/arithmetic.hpp"
#include "sim/scenario/plan/point_key.hpp"
#include "sim/scenario/read/placement.hpp"
#include "sim/scenario/read/reader.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

// Nodes are alike in their cards, in what joins these and in how each leaves the node.
Nodes nodes_of(const Cluster& cluster) {
  std::vector<std::vector<Card>> cards(cluster.nodes());
  Nodes nodes;
  for (Card c = 0; c < cluster.cards(); ++c) {
    nodes.place.push_back(Rank(cards[cluster.node_of(c)].size()));
    cards[cluster.node_of(c)].push_back(c);
  }
  const auto& known = cluster.links().kinds();
  std::vector<std::uint64_t> as;  // of links that are the same, the first kind
  for (const Link& link : known) as.push_back(std::uint64_t(std::ranges::find(known, link) - known.begin()));
  std::map<std::vector<std::uint64_t>, Rank> numbers;
  std::vector<LinkId> route;
  for (Rank node = 0; node < cluster.nodes(); ++node) {
    const auto& here = cards[node];
    const auto& there = cards[node > 0 ? 0 : cards.size() - 1];  // to where a card's way out of the node is looked at
    std::vector<std::uint64_t> all{here.size(), std::bit_cast<std::uint64_t>(cluster.in_switch(here))};
    std::map<LinkId, std::uint64_t> places;  // which ways have links in common
    const auto add_way = [&](Card from, Card to, bool inside) {
      cluster.route(from, to, route);
      if (!inside) {  // up to the NIC; to cards that are joined to other nodes' there is no one way out
        const auto out = std::ranges::find_if(route, [&](LinkId l) { return cluster.links()[l].tier >= Tier::nic; });
        if (out == route.end())
          route.clear();
        else
          route.erase(out + (cluster.links()[*out].tier == Tier::nic), route.end());
      }
      for (const LinkId l : route) {
        all.push_back(as[cluster.links().kind(l)]);
        all.push_back(places.try_emplace(l, places.size()).first->second);
      }
      all.push_back(~std::uint64_t(0));
    };
    for (std::size_t i = 0; i < here.size(); ++i) {
      const CardCosts& costs = cluster.costs(here[i]);
      all.insert(all.end(),
                 {std::uint64_t(costs.overhead_ns), std::uint64_t(costs.receive_overhead_ns),
                  std::bit_cast<std::uint64_t>(costs.combine_GBps), std::bit_cast<std::uint64_t>(costs.copy_GBps)});
      add_way(here[i], here[(i + 1) % here.size()], true);
      add_way(here[i], here[0], true);
      add_way(here[i], there[i % there.size()], false);
    }
    nodes.kind.push_back(numbers.try_emplace(std::move(all), Rank(numbers.size())).first->second);
  }
  return nodes;
}

// Stages that have no node in common with others, from which to before which: of those whose ranks lie at the same
// places of nodes that are alike, the first.
std::vector<std::pair<Rank, Rank>> stages_played(const LlmWorkload& w, const StepWorld& world) {
  const Rank stage = w.parallel.stage_ranks();
  // Of a rank: its node's kind, the node's number among those of the stages, and its place there.
  using Place = std::array<Rank, 3>;
  std::set<std::vector<Place>> seen;
  std::vector<std::pair<Rank, Rank>> all;
  for (Rank first = 0, end; first < w.parallel.pipeline; first = end) {
    end = separate_stages(w, world, first);
    std::vector<Place> ranks;
    std::map<Rank, Rank> nodes;
    for (Rank r = first * stage; r < end * stage; ++r)
      ranks.push_back(
          {world.kind_of(r), nodes.try_emplace(world.node_of(r), Rank(nodes.size())).first->second, world.place_of(r)});
    if (seen.insert(std::move(ranks)).second) all.emplace_back(first, end);
  }
  return all;
}

bool in_nodes(const RankLists& groups, const StepWorld& world) {
  return std::ranges::all_of(groups, [&](const auto& group) {
    return std::ranges::all_of(group, [&](Rank r) { return world.node_of(r) == world.node_of(group[0]); });
  });
}

// The first of those on the most nodes.
const std::vector<Rank>& widest(const RankLists& groups, const StepWorld& world) {
  return *std::ranges::max_element(groups, {}, [&](const auto& group) {
    std::set<Rank> nodes;
    for (const Rank r : group) nodes.insert(world.node_of(r));
    return nodes.size();
  });
}

}  // namespace

Rank separate_stages(const LlmWorkload& w, const StepWorld& world, Rank first) {
  const Rank stage = w.parallel.stage_ranks();
  std::map<Rank, Rank> last_on;  // node: the last stage with a rank there
  for (Rank r = 0; r < w.parallel.ranks(); ++r) {
    Rank& last = last_on[world.node_of(r)];
    last = std::max(last, r / stage);
  }
  Rank stages = first + 1;
  for (Rank s = first; s < stages; ++s)
    for (Rank r = s * stage; r < (s + 1) * stage; ++r) stages = std::max(stages, last_on[world.node_of(r)] + 1);
  return stages;
}

Rank expert_ranks_in_node(const LlmWorkload& w, const StepWorld& world) {
  Rank n = 0;
  for (Rank r = 0; r < w.parallel.expert; ++r) n += world.node_of(r) == world.node_of(0);
  return n;
}

double groups_at_once(const LlmWorkload& w, const StepWorld& world, const Traffic& traffic, Rank stages) {
  const auto node_of = [&](Rank r) { return world.node_of(r); };
  double most = 1;
  std::vector<LinkId> route;
  for (const TrafficCall& c : traffic.calls) {
    const RankLists groups = groups_of(c.groups, w, 0, stages, node_of);
    const std::vector<Rank>& one = widest(groups, world);
    const Rank node = node_of(one[0]);
    std::map<LinkId, double> ns_per_byte;  // of neighbours in groups, of which one at least is on that node
    double busiest = 0;
    const auto add = [&](const std::vector<Rank>& group) {
      for (std::size_t i = across_stages(c.groups) ? 1 : 0; i < group.size(); ++i) {
        const Rank from = group[i > 0 ? i - 1 : group.size() - 1], to = group[i];
        if (node_of(from) != node && node_of(to) != node) continue;
        world.cluster->route(world.cards[from], world.cards[to], route);
        for (const LinkId l : route) {
          double& all = ns_per_byte[l];
          busiest = std::max(busiest, all += 1 / world.cluster->links()[l].bandwidth_GBps);
        }
      }
    };
    add(one);
    const double alone = busiest;
    for (const auto& group : groups)
      if (&group != &one) add(group);
    if (alone > 0) most = std::max(most, busiest / alone);
  }
  return most;
}

Json task_of(const LlmWorkload& w, const TrafficCall& call, const Json& groups) {
  Json task = {
      {"collective", name(call.collective)}, {"bytes", call.bytes}, {"dtype", name(call.dtype)}, {"groups", groups}};
  if (w.planner != PlannerKind::gccl) task["planner"] = kPlanners[std::size_t(w.planner)];
  if (const auto named = w.algorithms.find(call.collective); named != w.algorithms.end())
    task["algorithm"] = named->second->name;
  static constexpr std::string_view kLoads[] = {"uniform", "random", "skewed"};
  if (call.by_load)
    task["counts"] = {{"distribution", kLoads[std::size_t(w.model.experts.load)]}, {"max", load_max(w)}};
  return task;
}

Json run_of(const LlmWorkload& w, const StepWorld& world, const std::vector<const Traffic*>& traffic, bool one_group) {
  const auto stages = one_group ? std::vector{std::pair<Rank, Rank>(0, 1)} : stages_played(w, world);
  const auto node_of = [&](Rank r) { return world.node_of(r); };
  std::vector<std::pair<const TrafficCall*, RankLists>> calls;
  bool inside = true;
  for (const Traffic* t : traffic)
    for (const TrafficCall& c : t->calls) {
      calls.emplace_back(&c, RankLists{});
      for (const auto& [first, end] : stages) {
        if (first > 0 && across_stages(c.groups)) continue;
        RankLists more = groups_of(c.groups, w, first, end, node_of);
        calls.back().second.insert(calls.back().second.end(), more.begin(), more.end());
      }
      if (one_group) calls.back().second = {widest(calls.back().second, world)};
      inside = inside && !one_group && in_nodes(calls.back().second, world);
    }
  std::set<Rank> nodes;  // that are played, where groups lie inside nodes: of those that are alike the first
  if (inside) {
    // Node: its kind, and of each call the groups that it has, by their members' places. Their order does not matter.
    using Work = std::pair<Rank, std::vector<std::multiset<std::vector<Rank>>>>;
    std::map<Rank, Work> work;
    for (std::size_t i = 0; i < calls.size(); ++i)
      for (const auto& group : calls[i].second) {
        auto& [kind, groups] = work[world.node_of(group[0])];
        kind = world.kind_of(group[0]);
        groups.resize(calls.size());
        std::vector<Rank> places;
        for (const Rank r : group) places.push_back(world.place_of(r));
        groups[i].insert(std::move(places));
      }
    std::set<Work> seen;
    for (const auto& [node, of_node] : work)
      if (seen.insert(of_node).second) nodes.insert(node);
  }
  Json streams = Json::array();
  for (auto& [call, groups] : calls) {
    if (inside) std::erase_if(groups, [&](const auto& group) { return !nodes.contains(world.node_of(group[0])); });
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
  auto& [cluster, nodes] = clusters_[w.cluster];
  if (!cluster) {
    cluster = load_cluster(w.cluster);
    nodes = std::make_shared<const Nodes>(nodes_of(*cluster));
  }
  const Rank ranks = w.parallel.ranks();
  if (ranks > cluster->cards() && w.chakra)
    w.where.at("chakra").at("prefix").fail(fmt::format("has traces of {}, but {} has only {} cards",
                                                       counted(ranks, "rank"), cluster->name(), cluster->cards()));
  if (ranks > cluster->cards())
    w.where.find("parallel")
        .value_or(w.where)
        .fail(fmt::format("asks for {} (tensor x context x data x pipeline), but {} has only {} cards",
                          counted(ranks, "rank"), cluster->name(), cluster->cards()));
  return {cluster, place(w.placement, *cluster, ranks, w.seed), nodes};
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
    if (options_.journal) {
      o.journal = options_.journal;
      o.keys = point_keys(all);
      keys_.insert(keys_.end(), o.keys.begin(), o.keys.end());
    }
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
