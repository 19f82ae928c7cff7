// The time of a binomial tree's messages, from its root to all members and back.
#pragma once

#include "libgccl/cost/paths.hpp"

namespace gccl {

// What a message for (or from) a subtree of so many members carries: a vector, or a block for each of them.
struct Carried {
  double vector = 0, block = 0;
  double operator()(Count members) const { return vector + double(members) * block; }
};

// Of p.channels() channels at once, each of which carries so many bytes, until the last one ends: their messages to a
// child leave together, and pass the next level while others arrive (bunch.hpp).
//
// Position 0 of n has what all get. Each member passes on to the farthest position of its subtree first; subtrees whose
// end is cut off are smaller, not slower. O(log^2 n), of a few additions each.
Cost binomial_down(Rank n, Carried bytes, const Paths& p);
// Every position has what position 0 gets. Each member takes what comes from the nearest position first; `combines`:
// and adds it to its own.
Cost binomial_up(Rank n, Carried bytes, bool combines, const Paths& p);

// What the root is busy with for each chunk: a message with each of its children. Those that share a
// link follow each other there; ports of their own (into the node and out of it) are busy at the same time. Each keeps
// the root itself busy for `overhead_ns`. No less than all levels' messages keep the busiest link busy: where nodes are
// no whole subtrees another rank may have more that leave the node.
Cost binomial_interval(Rank n, Carried bytes, Cost overhead_ns, Tree way, const Paths& p);
// On the way up, for each chunk: what a rank between the root and the leaves takes to combine its children's messages
// and send the sum, where the next chunk's sums go to the same scratch. 0 where there is no such rank.
Cost binomial_cycle(Rank n, double bytes, const Paths& p);

}  // namespace gccl
