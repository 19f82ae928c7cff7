// f16 and bf16 combined eight at a time where the processor converts them itself.
#pragma once

#include "libgccl/elements/reduction.hpp"

namespace gccl {

// Combines as many leading elements as whole vectors hold and returns their number; 0 where the processor or the
// compiler has no such instructions. Same results as combine(), bit for bit, and same requirements. `type` must be f16
// or bf16.
Count combine_half_vectors(Dtype type, Reduction op, std::uint16_t* to, const std::uint16_t* from,
                           const std::uint16_t* message, Count count);

}  // namespace gccl
