// One fat tree whose leaves belong to rails.
#include <fmt/format.h>

#include <algorithm>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"
#include "libgccl/cluster/fabrics/fat_tree.hpp"

namespace gccl {
namespace {

// NIC i of every node is on rail i % rails. Each rail of consecutive nodes has leaves of its own; where a node has more
// NICs than there are rails, its NICs of one rail are neighbours on the rail's leaf.
void read_rail(const json::Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "rails", "cross_rail", "levels", "radix", "leaf_size", "oversubscription", "pod_leaves",
           "core_oversubscription", "link", "core_link"});
  FatTreeShape s = read_fat_tree_shape(v, p);
  const auto given = v.find("rails");
  const auto rails = unsigned(given ? given->integer(1, kPlanesMax) : most_nics(c));
  c.planes.count = rails;
  s.arrangement = fmt::format("{} rails on a ", rails);
  c.planes.cross_in_node = true;
  if (const auto cross = v.find("cross_rail")) {
    static constexpr std::string_view kWays[] = {"node", "fabric"};
    c.planes.cross_in_node = cross->one_of(kWays) == 0;
  }
  const std::uint64_t per_node = (most_nics(c) + rails - 1) / rails;
  const std::uint64_t ports = rounded_up(c.type_of_node.size() * per_node, s.leaf_size) * rails;
  auto fabric = make_fat_tree(v, s, ports, ports);
  for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
    for (unsigned i = 0; i < node_type(c, n).graph.nics; ++i) {
      const std::uint64_t place = n * per_node + i / rails;
      c.port_of_nic.push_back(
          FabricPort((place / s.leaf_size * rails + i % rails) * s.leaf_size + place % s.leaf_size));
    }
  c.fabric = std::move(fabric);
}

}  // namespace

extern const FabricKind rail_fabric{.name = "rail", .read = read_rail};

}  // namespace gccl
