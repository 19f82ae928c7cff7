#include "sim/scenario/plan/worlds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/shipped.hpp"
#include "sim/scenario/read/placement.hpp"

namespace gccl::sim {
namespace {

// As real ranks: a communicator whose backends do not reach all of them cannot be made.
void check_backends(const SimulatedWorld& world, const json::Node& where) {
  if (world.cluster->backends() != "shm") return;
  for (const Card c : world.cards)
    if (world.cluster->node_of(c) != world.cluster->node_of(world.cards[0]))
      where.fail(
          fmt::format("no backend of \"shm\" reaches ranks on another node, and the {} on {} are on several; "
                      "expected \"backends\": \"shm,tcp\" in its parameters, or ranks on one node",
                      counted(world.ranks(), "rank"), world.cluster_name));
}

}  // namespace

std::vector<SimulatedWorld> make_worlds(const Scenario& scenario, std::uint64_t seed, const LoadCluster& load) {
  std::vector<SimulatedWorld> worlds;
  for (const auto& [path, where] : scenario.clusters) {
    const std::filesystem::path file = cluster_file(where);
    SimulatedWorld world{.cluster = load(file), .cluster_name = "", .cluster_file = file, .cards = {}};
    const Cluster& cluster = *world.cluster;
    world.cluster_name = cluster.name();
    const auto same = [&](const SimulatedWorld& w) { return w.cluster_name == world.cluster_name; };
    if (std::any_of(worlds.begin(), worlds.end(), same))
      world.cluster_name += fmt::format(" ({})", json::valid_text(file.string()));

    const auto add = [&, &stated_cluster = where](Rank ranks) {
      world.cards = place(scenario.placement, cluster, ranks, seed);
      check_backends(world, stated_cluster);
      worlds.push_back(world);
    };
    for (const auto& [ranks, stated] : scenario.ranks) {
      if (ranks > cluster.cards())
        stated.fail(
            fmt::format("found {}, but {} has only {} cards", counted(ranks, "rank"), cluster.name(), cluster.cards()));
      add(ranks);
    }
    if (scenario.ranks.empty())
      add(scenario.placement.kind == Placement::Kind::cards ? Rank(scenario.placement.cards.size()) : cluster.cards());
  }
  return worlds;
}

}  // namespace gccl::sim
