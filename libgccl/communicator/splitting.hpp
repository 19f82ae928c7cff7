// Communicators made from communicators.
#pragma once

#include <span>

#include "libgccl/communicator/communicator_core.hpp"

namespace gccl {

// Both are collective over the parent, by one thread of each rank at a time: its ranks agree on the members over it.
// Null in *out where the rank is not in it.
// Ranks of one color (none: negative), in the order of key.
Status split_communicator(CommunicatorCore& parent, int color, int key, std::unique_ptr<CommunicatorCore>* out);
// Makes a communicator of the listed ranks, in that order.
Status create_from(CommunicatorCore& parent, std::span<const int> ranks, std::unique_ptr<CommunicatorCore>* out);
// Collective over the listed ranks alone, which know that already and say to each other over `exchange` what they must.
// `id` is the same on each, and no other communicator's. Any thread; several may do so at once with one parent.
Status create_apart(const CommunicatorCore& parent, std::span<const int> ranks, std::uint64_t id, Exchange& exchange,
                    std::unique_ptr<CommunicatorCore>* out);

}  // namespace gccl
