// Parameter sets: the costs of a card and the named kinds of links that cluster descriptions refer to.
#pragma once

#include <algorithm>
#include <map>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/cluster/read/library_choices.hpp"
#include "libgccl/cluster/read/mpi_memory.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

// Both directions of a link before its place in a cluster, and so its tier, is known. Forward is as the description
// names the ends: from a card or a NIC towards the network, from a switch to the one above it, from the first end to
// the second.
struct LinkKind {
  Link forward, reverse;
  LinkKind at(Tier tier) const;
  double narrower_GBps() const { return std::min(forward.bandwidth_GBps, reverse.bandwidth_GBps); }
};

// What a set may hold.
constexpr double kLinkGBpsMin = 1e-6, kLinkGBpsMax = 1e6;
constexpr double kCostNanosMax = 1e12;
constexpr double kEfficiencyMin = 1e-3;

struct Parameters {
  CardCosts card;
  Count eager_bytes = 0;
  std::string backends;             // as Cluster::backends()
  TransportModels transports;       // those that are compiled in, with costs of the set; empty where it has none
  double in_switch_efficiency = 1;  // of a node's switch that multicasts and reduces
  NcclSettings nccl;
  std::optional<MpiMemory> mpi;
  Protocols protocols;  // by name; one that adds nothing where no set gives any
  Corrections corrections;
  LibraryChoices choices;  // of the library whose costs these are
  std::map<std::string, LinkKind, std::less<>> links;
};

// The value of a "parameters" key: a file name, or the parameters themselves. Follows "base" sets; throws
// json::InputError where a set is missing, refers back to itself, or leaves a value of the card or eager_bytes open.
Parameters read_parameters(const json::Node& value);
// A whole file with "schema": "gccl/parameters/1".
Parameters load_parameters(const std::filesystem::path& file);

// {"overhead_ns", "receive_overhead_ns", "combine_GBps", "copy_GBps"}; keys that are absent keep what `card` holds.
void read_card(const json::Node& value, CardCosts& card);
// The name of a link kind of `known`, or an object {"bandwidth_GBps", "latency_ns", "reverse_bandwidth_GBps",
// "reverse_latency_ns", "source"}.
LinkKind read_link(const json::Node& value, const Parameters& known);
// Checks a "sources" map: JSON pointers that exist in the document, each with a text.
void check_sources(const json::Node& document);

}  // namespace gccl
