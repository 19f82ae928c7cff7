// A parameter set's "corrections".
#pragma once

#include <string_view>
#include <vector>

#include "libgccl/cost/correction.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

// Throws json::InputError, also where two are for the same operations, and where one is for a protocol that the set,
// whose protocols have these names, does not have.
Corrections read_corrections(const json::Node& list, const std::vector<std::string_view>& protocols);

}  // namespace gccl
