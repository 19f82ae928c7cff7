// The rings of channels (libgccl/schedule/channel.hpp) on a cluster's first ranks: which way each takes, and through
// which NICs.
#pragma once

#include <string>
#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl::sim {

struct RingStop {  // a rank in the order of a channel
  Rank rank, node;
  // Where the message from the rank before comes into the node, and where the one to the next leaves it: "nic3", or
  // empty where it stays on the node or there are no NICs.
  std::string in, out;
};

using ChannelRing = std::vector<RingStop>;

// The rings of ranks on cards 0 .. ranks-1: one for each channel that has an order of its own.
std::vector<ChannelRing> rings_of_channels(const Cluster& cluster, Rank ranks);

// A line for each channel: node by node, the NIC by which it comes, the ranks, the NIC by which it leaves. At most so
// many nodes of each.
std::string ring_lines(const std::vector<ChannelRing>& rings, std::size_t nodes_max);

}  // namespace gccl::sim
