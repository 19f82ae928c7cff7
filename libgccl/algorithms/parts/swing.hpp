// Whom ranks meet in the all-reduce swing (De Sensi et al., NSDI 2024, section 3), for the algorithm and for routes.
#pragma once

#include "libgccl/schedule/types.hpp"

namespace gccl {

// The distance of step s: sum of (-2)^i for i <= s.
inline std::int64_t swing_distance(unsigned s) {
  const std::int64_t power = std::int64_t(2) << s;
  return (1 - (s % 2 ? power : -power)) / 3;
}

// Whom `rank` meets in step s: even ranks go that far up, odd ones down. Requires n = a power of two.
inline Rank swing_partner(Rank n, Rank rank, unsigned s) {
  return Rank(std::int64_t(rank) + (rank % 2 ? -swing_distance(s) : swing_distance(s))) & (n - 1);
}

}  // namespace gccl
