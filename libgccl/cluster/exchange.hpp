// How messages of whole blocks pass where every member sends one to each other member.
#pragma once

#include "libgccl/cluster/link_loads.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {

constexpr std::size_t kInFlight = std::size_t(kStepsInFlight);

// How long they all take, by how long the busiest link has to carry them: 1 where it is never idle. In each group every
// member sends to each other one in the order of Turns over the nodes that begin there, a window of steps at a time.
// Where the messages of a turn share links unequally, members wait for each other, and meet at the next ones again
// (eight cards in pairs with a narrow link each: twice). Of many members the first turns are looked at, of more than
// 102 none: 1. Several channels at once are played where there are at most eight members.
LinkLoads::Stretch exchange_stretch(const Part& cluster, const Groups& groups, std::span<const Rank> begin);

// The same of each group's messages to its first member, which takes a window of them at a time, in their order: the
// busiest link may have its messages at the end. (Of 32 ranks of a torus, 1.4 times.)
double gather_stretch(const Part& cluster, const Groups& groups);

}  // namespace gccl
