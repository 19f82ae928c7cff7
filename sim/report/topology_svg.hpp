// A drawing of a cluster: its kinds of nodes from the inside, and the layers of its fabric.
#pragma once

#include <string>
#include <vector>

#include "libgccl/cluster/cluster.hpp"
#include "sim/report/channel_rings.hpp"

namespace gccl::sim {

// A whole SVG document on a light background, without outside references. What repeats is drawn a few times and
// counted. Clusters that did not come from a description get their tiers listed, without a picture of the inside.
// Below it the rings of channels, where there are some: node by node, with the NICs by which they come and leave.
std::string topology_svg(const Cluster& cluster, const std::vector<ChannelRing>& rings = {});

}  // namespace gccl::sim
