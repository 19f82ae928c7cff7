// A cluster with links that are faster or slower than they are: to see what would change, and what costs how much.
#pragma once

#include <array>

#include "libgccl/cluster/changed.hpp"

namespace gccl {

class Rescaled final : public ChangedCluster {
 public:
  using Factors = std::array<double, std::size_t(Tier::other) + 1>;
  // Each tier's bandwidths times its factor.
  Rescaled(const Cluster& whole, const Factors& bandwidth) : ChangedCluster(whole) {
    links_.change([&](Link& l) { l.bandwidth_GBps *= bandwidth[std::size_t(l.tier)]; });
  }
};

}  // namespace gccl
