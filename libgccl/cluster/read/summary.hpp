// What a cluster amounts to: the numbers of `gccl topology`.
#pragma once

#include <optional>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

struct TierSummary {
  Tier tier;
  std::uint64_t links = 0;  // each direction counted
  double GBps_min = 0, GBps_max = 0;
  Nanos latency_ns_min = 0, latency_ns_max = 0;
  double total_GBps = 0;  // of all links of the tier
  // Bandwidth of all NIC cables over bandwidth of all links of this tier; spine and core tiers only, and only where the
  // fabric is in layers: else most of a tier's links are not on the way up.
  std::optional<double> oversubscription;
};

struct Summary {
  std::string name, description, fabric;  // fabric: one line, empty when there is none
  bool layered = true;                    // every cable of the fabric joins one layer of switches to the next
  std::uint64_t cards = 0, nodes = 0, nics = 0;
  std::uint64_t cards_per_node_min = 0, cards_per_node_max = 0;
  std::vector<TierSummary> tiers;  // those that have links
  // The narrower direction of the structure's cut into two halves of the ports: half of the NICs' cables, or half of a
  // tree's level, or the cables between two halves of a dragonfly's groups or of a torus, whichever is least. Absent
  // for a single node and for a custom fabric.
  std::optional<double> bisection_GBps;
  // As routed: card i and card i + cards/2 all send to each other at one common rate, the highest that no link refuses;
  // the sum over one direction.
  double paired_GBps = 0;
  // Links of the longest route; from diameter_sources cards, evenly spread, to every card.
  std::uint64_t diameter = 0, diameter_sources = 0;
  CostModel costs;                // of all cards, for elements of one byte, without loads
  std::optional<Hop> net_loaded;  // see there
};

Summary summarize(const Cluster& cluster);

}  // namespace gccl
