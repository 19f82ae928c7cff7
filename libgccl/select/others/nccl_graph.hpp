// Which channels NCCL finds on a machine, by a rule in place of its search through the machine's graph.
#pragma once

#include "libgccl/select/others/nccl_model.hpp"

namespace gccl {

// One node's links as NCCL counts them: nominal GB/s (NVLinks times 20 or 20.6, a NIC's line rate).
struct NcclLinks {
  NcclArchitecture architecture{};
  unsigned nodes = 1;
  unsigned cards = 1;    // of a node that take part
  unsigned nics = 0;     // that they use
  double card_GBps = 0;  // from one card to the others of its node, in one direction
  double nic_GBps = 0;   // in one direction
};

// NCCL tries a list of bandwidths for a channel, the highest first, and keeps the one whose channels carry most
// together; once it has one it does not try those below 0.49 of it. A NIC carries whole channels; so does a card, of
// whose channels one in so many as there are cards leaves it by its NIC. A channel of 25 GB/s or more becomes two of
// half of it, but from Hopper on not where there are more than 4 below 50 GB/s.
//
// The rules give the channels that NCCL 2.28.9 finds on machines of 1 to 8 cards that NVLinks join, with a NIC a card
// (tests/select/nccl_recorded.txt). They know neither where NICs are plugged in nor PCIe switches: machines over PCIe
// may get fewer.
NcclGraph nccl_ring_graph(const NcclLinks& links);
// As many channels as rings have, with as much between nodes; what one carries inside a node grows in steps as long as
// the cards' links do and it is less than twice that.
NcclGraph nccl_tree_graph(const NcclLinks& links, const NcclGraph& rings);
// The channels of multicast: one for each card, or for each NIC where there are several nodes.
NcclGraph nccl_nvls_graph(const NcclLinks& links);

}  // namespace gccl
