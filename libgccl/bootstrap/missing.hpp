// The sentence about ranks that did not come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl {

// "rank 3 of 8", "ranks 3, 5-7 of 8"; of many ranges the first dozen, and how many ranks more. Requires an ascending
// list that is not empty.
std::string ranks_text(const std::vector<Rank>& ranks, Rank size);
// "60 s", "1.5 s", "200 ms".
std::string duration_text(std::int64_t ms);
// "ranks 3, 5-7 of 8 did not come within 60 s".
std::string missing_text(const std::vector<Rank>& ranks, Rank size, std::int64_t ms);

}  // namespace gccl
