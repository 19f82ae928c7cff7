#include "sim/scenario/plan/worlds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/cluster/load.hpp"
#include "libgccl/cluster/shipped.hpp"

namespace gccl::sim {
std::vector<World> make_worlds(const Scenario& scenario, std::uint64_t seed) {
  std::vector<World> worlds;
  for (const auto& [path, where] : scenario.clusters) {
    const std::filesystem::path file = cluster_file(where);
    World world{.cluster = load_cluster(file), .cluster_name = "", .cluster_file = file, .cards = {}};
    const Cluster& cluster = *world.cluster;
    world.cluster_name = cluster.name();
    const auto same = [&](const World& w) { return w.cluster_name == world.cluster_name; };
    if (std::any_of(worlds.begin(), worlds.end(), same))
      world.cluster_name += fmt::format(" ({})", json::valid_text(file.string()));

    const auto add = [&](Rank ranks) {
      world.cards = place(scenario.placement, cluster, ranks, seed);
      worlds.push_back(world);
    };
    for (const auto& [ranks, stated] : scenario.ranks) {
      if (ranks > cluster.cards())
        stated.fail(fmt::format("found {}, but {} has only {} cards", json::format_ranks(ranks), cluster.name(),
                                cluster.cards()));
      add(ranks);
    }
    if (scenario.ranks.empty())
      add(scenario.placement.kind == Placement::Kind::cards ? Rank(scenario.placement.cards.size()) : cluster.cards());
  }
  return worlds;
}

}  // namespace gccl::sim
