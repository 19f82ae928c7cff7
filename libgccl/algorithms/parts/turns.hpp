// The order in which every rank meets every other one where their messages do not depend on each other.
#pragma once

#include "libgccl/schedule/group.hpp"

namespace gccl {

// Step s < size: every rank has one peer to send to and another to receive from, so no two messages of a step are for
// one rank. Step 0 is the rank itself.
//
// For nodes of g consecutive ranks each: s = place * nodes + node, where the peer's node is `node` further on and its
// place on that node `place` further on, both cyclically. So all ranks stay on their node in the same steps, one of
// each `nodes`, while their messages to other nodes are on the way. Were the peer s ranks further on, the last ranks of
// each node would cross to the next one in steps in which the first ones stay on theirs and are done at once, and all
// ranks of a node would soon send to the same rank of the next one (64 ranks, 1 MiB blocks, model engine: leonardo 7.7
// ms instead of 5.8, marenostrum5 3.8 instead of 2.6). NCCL's point-to-point schedule turns likewise.
class Turns {
 public:
  struct Turn {
    Rank to, from;  // positions
  };

  // Over all ranks, which are their own positions; one after the other where nodes have different sizes or their ranks
  // are not consecutive.
  explicit Turns(const View& v) : Turns(v.by_node && v.uniform() ? v.nodes : 1, v.all.size, v.all.rank) {}
  // Over a group whose members are all one kind of hop apart.
  explicit Turns(const Group& g) : Turns(1, g.size, g.rank) {}
  // Requires that size is a multiple of nodes.
  Turns(Rank nodes, Rank size, Rank rank)
      : nodes_(nodes), size_(size), per_node_(size / nodes), node_(rank / per_node_), place_(rank % per_node_) {}

  Rank size() const { return size_; }
  Turn operator[](Rank s) const {
    const Rank a = s % nodes_, b = s / nodes_;
    return {(node_ + a) % nodes_ * per_node_ + (place_ + b) % per_node_,
            (node_ + nodes_ - a) % nodes_ * per_node_ + (place_ + per_node_ - b) % per_node_};
  }

 private:
  Rank nodes_, size_, per_node_, node_, place_;
};

}  // namespace gccl
