// What NCCL's model has to know of a cluster's machines, for planning calls as NCCL would: as the parameter set states
// it in its "nccl" object, the rest from the cluster's links.
#pragma once

#include <optional>

#include "libgccl/cluster/cluster.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/select/others/nccl_model.hpp"

namespace gccl {

struct NcclSettings {
  std::optional<NcclArchitecture> architecture;
  std::optional<double> card_GBps, nic_GBps;  // as NCCL counts them: nominal
  // In place of the channels that nccl_ring_graph finds.
  std::optional<unsigned> channels;
  std::optional<double> inside_GBps, between_GBps;
  std::optional<bool> nvls, collnet;
  std::optional<double> net_latency_us;
  std::optional<bool> amd;  // the processors
};

// Replaces those that the object gives.
void read_nccl(const json::Node& value, NcclSettings& settings);

// What NCCL's model knows of ranks on these cards. Nothing where the cluster's parameters have no "nccl" object with an
// architecture.
std::optional<NcclMachine> nccl_machine(const Cluster& cluster, const std::vector<Card>& cards);

}  // namespace gccl
