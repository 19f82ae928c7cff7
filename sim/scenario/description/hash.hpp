// The hash for seeded choices.
#pragma once

#include "libgccl/base/splitmix.hpp"

namespace gccl::sim {

using splitmix::hash;
constexpr std::uint64_t hash(std::uint64_t a, std::uint64_t b) { return hash(hash(a) ^ b); }

}  // namespace gccl::sim
