// "faults" and "recovery" of a run, from JSON and back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "libgccl/json/reader.hpp"
#include "sim/fault/faults.hpp"

namespace gccl::sim {

constexpr std::size_t kFaultsMax = 1000;

// Each with where it stands. Throws json::InputError.
std::vector<std::pair<Fault, json::Node>> read_faults(const json::Node& node);
RecoverySettings read_recovery(const json::Node& node);

// As a scenario states it.
nlohmann::json fault_json(const Fault& fault);

}  // namespace gccl::sim
