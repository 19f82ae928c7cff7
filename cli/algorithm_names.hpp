// Names of algorithms as users type them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "libgccl/schedule/call.hpp"

namespace gccl {

// Of one collective or of all, each name once.
std::vector<std::string_view> algorithm_names(std::optional<Collective> kind = std::nullopt);

}  // namespace gccl
