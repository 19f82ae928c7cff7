// The elements that `gccl bench` sends, and those it must find: whole numbers so small that every type holds every
// result exactly, whatever the order of reduction. By the collective's definition (definition.hpp) alone.
#pragma once

#include <cstddef>
#include <vector>

#include "libgccl/elements/reduction.hpp"
#include "libgccl/schedule/call.hpp"

namespace gccl::bench {

// Writes rank `rank`'s input of the call to `at`, input_of(call).count elements. Each salt gives other elements.
void fill_input(const Call& call, Dtype dtype, Reduction op, Rank ranks, Rank rank, std::byte* at,
                std::uint64_t salt = 0);

// Elements at `at`, output_of(call).count of them, that are not rank `rank`'s result.
Count count_wrong(const Call& call, Dtype dtype, Reduction op, Rank ranks, Rank rank, const std::byte* at,
                  std::uint64_t salt = 0);

}  // namespace gccl::bench
