// Communicators made from communicators: their ranks agree on the members over the parent.
#pragma once

#include <span>

#include "libgccl/communicator/communicator_core.hpp"

namespace gccl {

// Both are collective over the parent, by one thread of each rank at a time. Null in *out where the rank is not in it.
// Ranks of one color (none: negative), in the order of key.
Status split_communicator(CommunicatorCore& parent, int color, int key, std::unique_ptr<CommunicatorCore>* out);
// Makes a communicator of the listed ranks, in that order.
Status create_from(CommunicatorCore& parent, std::span<const int> ranks, std::unique_ptr<CommunicatorCore>* out);

}  // namespace gccl
