// Several fat trees side by side.
#include <fmt/format.h>

#include <algorithm>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"
#include "libgccl/cluster/fabrics/fat_tree.hpp"

namespace gccl {
namespace {

// Plane i is a fat tree of its own for NIC i of every node.
void read_multi_plane(const json::Node& v, const Parameters& p, Composition& c) {
  v.allow({"kind", "planes", "levels", "radix", "leaf_size", "oversubscription", "pod_leaves", "core_oversubscription",
           "link", "core_link"});
  FatTreeShape s = read_fat_tree_shape(v, p);
  const auto planes = unsigned(v.at("planes").integer(1, kPlanesMax));
  s.arrangement = fmt::format("{} planes, each a ", planes);
  c.planes = {.count = planes, .cross_in_node = true, .separate = true};
  std::vector<std::uint64_t> taken(planes, 0), place;
  for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
    for (unsigned i = 0; i < node_type(c, n).graph.nics; ++i) place.push_back(taken[i % planes]++);
  const std::uint64_t each = rounded_up(*std::max_element(taken.begin(), taken.end()), s.leaf_size);
  auto fabric = make_fat_tree(v, s, each * planes, each);
  auto at = place.begin();
  for (std::uint64_t n = 0; n < c.type_of_node.size(); ++n)
    for (unsigned i = 0; i < node_type(c, n).graph.nics; ++i)
      c.port_of_nic.push_back(FabricPort(i % planes * each + *at++));
  c.fabric = std::move(fabric);
}

}  // namespace

extern const FabricKind multi_plane_fabric{.name = "multi_plane", .read = read_multi_plane};

}  // namespace gccl
