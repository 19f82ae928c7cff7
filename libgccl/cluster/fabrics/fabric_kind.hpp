// The kinds of fabric that a cluster description may name. One is a file that defines a Fabric and its FabricKind, and
// a line in fabric_kinds.cpp; its keys also stand in cluster.schema.json and docs/formats.md.
#pragma once

#include <span>

#include "libgccl/cluster/composed.hpp"

namespace gccl {

struct FabricKind {
  std::string_view name;  // "kind"
  // Reads the description and fills in everything of the composition that depends on the fabric: fabric, port_of_nic,
  // planes, and for a torus of cards node_of_card and grid_columns. Requires types and type_of_node. Throws
  // json::InputError.
  void (*read)(const json::Node& value, const Parameters& parameters, Composition& parts);
  // Whether the fabric joins the cards themselves, so that nodes may do without links and NICs; null: never. Before the
  // description is checked.
  bool (*joins_cards)(const json::Node& value) = nullptr;
};

std::span<const FabricKind* const> fabric_kinds();

// For readers.
constexpr std::int64_t kSwitchPortsMax = 1 << 16, kPlanesMax = 1024;

const NodeType& node_type(const Composition& c, std::size_t node);
std::uint64_t count_nics(const Composition& c);
unsigned most_nics(const Composition& c);  // of a node
void check_link_count(const json::Node& v, double links);
// NICs plugged in in order.
void plug_in_order(Composition& c);

}  // namespace gccl
