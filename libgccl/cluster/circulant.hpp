// Recursive halving off powers of two, whose rounds are shifts, and the same backwards (algorithms/parts/halving.hpp).
#pragma once

#include "libgccl/cluster/link_loads.hpp"

namespace gccl {

// While all members of the largest groups send: of each round alpha is what it adds to the longest way of those before
// it that bring what it passes on; beta is the busiest link's share of a byte, by as much more or less as all rounds'
// bytes together take where links are shared fairly. They take more where a member behind a narrow port takes an
// earlier round's message while members that wait for nobody send it those of later rounds, and all that it sends waits
// for the first; and less where rounds keep different links busy. That is played for at most 48 members. Empty for
// powers of two.
std::vector<Hop> circulant_halving(const Part& cluster, const Groups& groups);
// The same of the rounds backwards, of what they add once members have their sums: some have them early.
std::vector<Hop> circulant_doubling(const Part& cluster, const Groups& groups);

}  // namespace gccl
