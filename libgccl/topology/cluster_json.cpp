// From a cluster description, the one that the simulator plays, to nodes, devices and rails.
#include <fmt/core.h>

#include "gccl/gccl.h"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/topology/description.hpp"
#include "libgccl/topology/islands.hpp"

namespace gccl::topology {
namespace {

// island[card]: cards of one node type that reach each other over cards' own links, numbered from 0.
std::vector<int> islands_inside(const NodeGraph& graph, int* count) {
  Islands islands(graph.vertices());
  for (const auto& e : graph.edges)
    if (e.link.tier == Tier::card) islands.join(e.from, e.to);
  return islands.numbers(graph.cards, count);
}

Description describe(const ComposedCluster& cluster) {
  const Composition& parts = cluster.parts();
  std::vector<std::vector<int>> inside;
  std::vector<int> inside_count(parts.types.size());
  for (std::size_t t = 0; t < parts.types.size(); ++t)
    inside.push_back(islands_inside(parts.types[t].graph, &inside_count[t]));

  Description d;
  d.nodes = int(cluster.nodes());
  std::vector<int> nic_first(cluster.nodes()), island_first(cluster.nodes());
  int islands = 0;
  for (Rank n = 0; n < cluster.nodes(); ++n) {
    const std::uint32_t t = parts.type_of_node[n];
    nic_first[n] = int(d.nics.size());
    island_first[n] = islands;
    islands += inside_count[t];
    for (unsigned i = 0; i < parts.types[t].graph.nics; ++i)
      d.nics.push_back({.node = int(n),
                        .index = int(i),
                        .bandwidth_GBps = parts.types[t].ports[i].forward.bandwidth_GBps,
                        .name = fmt::format("nic{}", i)});
  }
  std::vector<unsigned> next(cluster.nodes());  // the next card's place on its node
  d.devices.resize(cluster.cards());
  for (Card c = 0; c < cluster.cards(); ++c) {
    const Rank n = cluster.node_of(c);
    const unsigned place = next[n]++;
    const std::uint32_t t = parts.type_of_node[n];
    const auto& own = parts.types[t].own[place];
    // Where the cards are the routers, the cards' own links join all of them.
    d.devices[c] = {.kind = GCCL_DEVICE_GPU,
                    .node = int(n),
                    .island = parts.cards_are_ports ? 0 : island_first[n] + inside[t][place],
                    .nic = own.empty() ? -1 : nic_first[n] + int(own.front()),
                    .name = fmt::format("card{}", place)};
  }
  return d;
}

}  // namespace

Status read_cluster_json(std::string_view text, const std::string& file, Description* out) {
  try {
    const auto cluster = parse_cluster(text, file);
    *out = describe(dynamic_cast<const ComposedCluster&>(*cluster));
    return {};
  } catch (const json::InputError& e) {
    return Status::error(e.what(), GCCL_ERR_INVALID_ARGUMENT);
  }
}

}  // namespace gccl::topology
