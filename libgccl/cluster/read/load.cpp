#include "libgccl/cluster/read/load.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/cluster/fabrics/fabric_kind.hpp"

namespace gccl {
namespace {

using json::Node;

constexpr std::size_t kNodeKindsMax = 256;

bool joins_cards(const Node& fabric) {
  const auto name = fabric.find("kind");
  for (const FabricKind* kind : fabric_kinds())
    if (name && name->is_string() && name->string() == kind->name)
      return kind->joins_cards && kind->joins_cards(fabric);
  return false;
}

void read_nodes(const Node& v, const Parameters& defaults, bool bare, Composition& parts) {
  std::uint64_t cards = 0, links = 0;
  for (const Node& one : v.items(1, kNodeKindsMax)) {
    const auto count = std::uint64_t(one.at("count").integer(1, std::int64_t(kCardsMax)));
    const NodeType type = read_node(one, defaults, bare);
    cards += count * type.graph.cards;
    links += count * (type.graph.edges.size() + 2 * type.graph.nics);
    if (cards > kCardsMax) one.fail(fmt::format("makes {} cards, expected at most {} in a cluster", cards, kCardsMax));
    if (links > kLinksMax) one.fail(fmt::format("makes {} links inside nodes, expected at most {}", links, kLinksMax));
    parts.type_of_node.insert(parts.type_of_node.end(), count, std::uint32_t(parts.types.size()));
    parts.types.push_back(type);
  }
}

std::shared_ptr<const Cluster> compose(const Node& v, const Parameters* instead) {
  v.schema("gccl/cluster/1");
  v.allow({"$schema", "schema", "name", "description", "sources", "parameters", "mpi_parameters", "nodes", "fabric"});
  Composition parts;
  parts.name = v.at("name").string();
  if (parts.name.empty()) v.at("name").fail("found an empty string, expected a name");
  if (const auto text = v.find("description")) parts.description = text->string();
  check_sources(v);
  const Parameters parameters = instead ? *instead : read_parameters(v.at("parameters"));
  if (!instead) read_mpi_parameters(v);  // its errors are a cluster's
  parts.eager_bytes = parameters.eager_bytes;
  parts.backends = parameters.backends;
  if (!parameters.transports.empty()) parts.transports = std::make_shared<const TransportModels>(parameters.transports);
  parts.nccl = parameters.nccl;
  parts.mpi = parameters.mpi;
  parts.protocols = parameters.protocols;
  parts.corrections = parameters.corrections;
  parts.choices = parameters.choices;

  const auto fabric = v.find("fabric");
  const Node nodes = v.at("nodes");
  read_nodes(nodes, parameters, fabric && joins_cards(*fabric), parts);
  // A set that replaces the description's may be of other machines.
  if (!instead && parts.nccl.nvls.value_or(false) &&
      std::ranges::none_of(parts.types, [](const NodeType& type) { return type.in_switch > 0; }))
    nodes.fail(
        "found no switch with \"in_switch\": true, expected one, as \"nccl\" of the parameters has \"nvls\": true");
  if (fabric) {
    read_fabric(*fabric, parameters, parts);
  } else if (parts.type_of_node.size() > 1) {
    v.fail(fmt::format("\"fabric\" is missing, and there are {} nodes to join", parts.type_of_node.size()));
  } else {
    for (FabricPort i = 0; i < parts.types[0].graph.nics; ++i) parts.port_of_nic.push_back(i);
  }
  try {
    return std::make_shared<ComposedCluster>(std::move(parts));
  } catch (const std::invalid_argument& e) {
    nodes.fail(e.what());
  }
}

}  // namespace

std::shared_ptr<const Cluster> load_cluster(const std::filesystem::path& file) {
  return compose(Node::load(file), nullptr);
}

std::shared_ptr<const Cluster> parse_cluster(std::string_view text, const std::filesystem::path& file) {
  return compose(Node::parse(text, file), nullptr);
}

std::shared_ptr<const Cluster> read_cluster(const Node& description, const Parameters& parameters) {
  return compose(description, &parameters);
}

std::optional<Parameters> read_mpi_parameters(const Node& description) {
  const auto value = description.find("mpi_parameters");
  return value ? std::optional(read_parameters(*value)) : std::nullopt;
}

}  // namespace gccl
