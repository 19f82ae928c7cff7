// Whom a rank talks to first: the connections that are made while the ranks are still meeting.
#pragma once

#include <cstdint>
#include <vector>

#include "gccl/backend.h"

namespace gccl::tcp {

// Among more ranks than this most pairs never talk.
constexpr std::uint32_t kAllPairsMax = 16;

// Peers on other nodes, in ascending order: all of them in small communicators; else those at distances of powers of
// two (rings, dissemination, binomial trees), those that differ in one bit (recursive doubling), and the same two among
// the ranks with this one's place in their nodes (hierarchical algorithms). Some 4 log2(size) of them. Rank a is among
// b's exactly when b is among a's.
std::vector<std::uint32_t> first_peers(const GCCL_Port_spec& spec);

}  // namespace gccl::tcp
