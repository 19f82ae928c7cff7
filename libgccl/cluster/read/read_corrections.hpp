// A parameter set's "corrections".
#pragma once

#include "libgccl/cost/correction.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl {

// Throws json::InputError, also where two are for the same operations.
Corrections read_corrections(const json::Node& list);

}  // namespace gccl
