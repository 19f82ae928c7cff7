// Holds closed forms to the model engine where nothing contends.
#pragma once

#include <optional>
#include <string>

#include "libgccl/algorithms/algorithm.hpp"

namespace gccl::sim {

// A closed form may be off by this part of the simulated time: on one switch, from 2 to 64 ranks (powers of two), for
// 256 B, 64 KiB and 16 MiB.
constexpr double kCostTolerance = 0.15;

// Where the algorithm's closed form is off by more than that, most of all; nothing when it holds or there is none.
std::optional<std::string> wrong_cost(const Algorithm& algorithm);

}  // namespace gccl::sim
