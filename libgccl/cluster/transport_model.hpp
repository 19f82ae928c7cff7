// What the planner knows of a transport: cost-models/transports/*.json, compiled in.
#pragma once

#include <map>
#include <string>

#include "libgccl/json/reader.hpp"
#include "libgccl/select/tuning.hpp"

namespace gccl {

struct TransportModel {
  CostModel costs;  // hops alone; element_bytes is the call's
  Tuning tuning;
  bool net_all_shared = false;  // costs.net_all.beta is for one rank of a node: its ranks share the way out

  CostModel costs_on(const View& view, unsigned element_bytes) const;
};

// "gccl/transport/1". Throws json::InputError.
TransportModel read_transport(const json::Node& file);

// All that are compiled in, by name.
const std::map<std::string, TransportModel, std::less<>>& transport_models();
// The one of that name, for as long as the process runs: "shared-memory", "tcp", "tcp-loopback", "mpi". Requires that
// there is one.
const TransportModel& transport_model(std::string_view name);
// What a communicator with these GCCL_BACKENDS ("shm,tcp", the first that reaches a peer is used) plans by, where all
// its ranks are on one node or not.
const TransportModel& transport_model_of(std::string_view backends, bool one_node);

}  // namespace gccl
