// A drawing of a cluster: its kinds of nodes from the inside, and the layers of its fabric.
#pragma once

#include <string>

#include "libgccl/cluster/cluster.hpp"

namespace gccl::sim {

// A whole SVG document on a light background, without outside references. What repeats is drawn a few times and
// counted. Clusters that did not come from a description get their tiers listed, without a picture of the inside.
std::string topology_svg(const Cluster& cluster);

}  // namespace gccl::sim
