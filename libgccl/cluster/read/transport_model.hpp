// What the planner knows of a transport: cost-models/transports/*.json, compiled in.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "libgccl/base/status.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/select/tuning.hpp"

namespace gccl {

// Channels of a communicator's collectives. No plan by a transport's model has more, of real ranks or simulated ones.
inline constexpr Count kLanesMax = 4;

struct TransportModel {
  CostModel costs;  // hops alone; element_bytes is the call's
  Tuning tuning;
  bool net_all_shared = false;  // costs.net_all.beta is for one rank of a node: its ranks share the way out

  CostModel costs_on(const View& view, unsigned element_bytes) const;
};

// "gccl/transport/1". Throws json::InputError.
TransportModel read_transport(const json::Node& file);

using TransportModels = std::map<std::string, TransportModel, std::less<>>;

// All that are compiled in, by name: "shared-memory", "tcp", "tcp-loopback", "mpi".
const TransportModels& transport_models();
// The one of that name, for as long as the process runs. Requires that there is one.
const TransportModel& transport_model(std::string_view name);
// Of these models the one that a communicator with these GCCL_BACKENDS ("shm,tcp", the first that reaches a peer is
// used) plans by, where all its ranks are on one node or not.
const TransportModel& transport_model_of(const TransportModels& models, std::string_view backends, bool one_node);

// "transports" of a parameter set: its costs replace those of the models of these names, one by one; what the models
// say beyond costs stays. Throws json::InputError.
void replace_costs(const json::Node& transports, TransportModels& models);

// The compiled-in models with the costs of the parameter set in a file, for real communicators. `costs` gets all of
// them as a text, so that ranks can compare them. GCCL_ERR_INVALID_ARGUMENT says what is wrong with the file, and
// where.
Status load_transports(const std::string& file, std::shared_ptr<const TransportModels>* out, std::string* costs);

}  // namespace gccl
