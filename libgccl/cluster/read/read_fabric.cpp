// From "fabric" in a cluster description to a Fabric and the place of every NIC on it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"
#include "libgccl/cluster/read/load.hpp"

namespace gccl {

const NodeType& node_type(const Composition& c, std::size_t node) { return c.types[c.type_of_node[node]]; }

std::uint64_t count_nics(const Composition& c) {
  std::uint64_t nics = 0;
  for (const auto t : c.type_of_node) nics += c.types[t].graph.nics;
  return nics;
}

unsigned most_nics(const Composition& c) {
  unsigned most = 0;
  for (const auto& t : c.types) most = std::max(most, t.graph.nics);
  return most;
}

void check_link_count(const json::Node& v, double links) {
  if (links > double(kLinksMax)) v.fail(fmt::format("makes {:.0f} links, expected at most {}", links, kLinksMax));
}

void plug_in_order(Composition& c) {
  c.port_of_nic.resize(count_nics(c));
  std::iota(c.port_of_nic.begin(), c.port_of_nic.end(), 0);
}

void read_fabric(const json::Node& v, const Parameters& p, Composition& c) {
  std::vector<std::string_view> names;
  for (const FabricKind* kind : fabric_kinds()) names.push_back(kind->name);
  const FabricKind& kind = *fabric_kinds()[v.at("kind").one_of(names)];
  if (!(kind.joins_cards && kind.joins_cards(v)) && count_nics(c) == 0) v.fail("a fabric, but no node has a NIC");
  kind.read(v, p, c);
}

}  // namespace gccl
