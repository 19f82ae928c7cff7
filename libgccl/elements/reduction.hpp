// Reduction operations and their names.
#pragma once

#include "libgccl/elements/dtype.hpp"

namespace gccl {

// Numbered as ncclRedOp_t (nccl.h).
enum class Reduction : std::uint8_t {
  sum = 0,
  prod = 1,
  max = 2,
  min = 3,
  avg = 4,  // a sum, and one division by the number of ranks at the very end
};

// The names users type, in the order of the enumeration.
std::span<const std::string_view> reduction_names();
std::string_view name(Reduction);
std::optional<Reduction> reduction_named(std::string_view name);

}  // namespace gccl
