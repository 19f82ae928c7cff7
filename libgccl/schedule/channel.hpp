// The rank orders of channels. A channel takes the ranks node by node, and begins on each node at a rank of its own, so
// that channels enter and leave nodes by different NICs. It is arithmetic, the same on every rank, and needs no table.
#pragma once

#include "libgccl/schedule/group.hpp"

namespace gccl {

// The ranks of a communicator in the order of one channel, a cycle. On every second node the order is reversed, so that
// a ring leaves node k at the place at which it enters node k+1: the hop stays on one rail. With an odd number of nodes
// the hop that closes the ring changes rail.
//
// With View::Wiring::mesh, where each pair of a node's ranks has links of its own, paths through even nodes zigzag:
// those of g channels use every pair once in each direction (Walecki; Lucas, "Recreations mathematiques" II, 1892), and
// on a communicator of one node the cycles of 2 (g-1) channels use every pair twice (once for odd g and g-1 channels).
class ChannelOrder {
 public:
  Rank size, rank;  // `rank` is this rank's position

  explicit ChannelOrder(const View& v);
  // How many channels have different orders, before they come round again.
  static Rank different(const View& v);

  // The rank at that position, cyclically: any position from -2^62 to 2^62.
  Rank operator[](std::int64_t position) const {
    const Rank i = Rank(position >= 0 && position < size ? position : positions().wrap(position));
    return kind_ == Kind::ranks ? i : at(i);
  }
  // Where a rank stands. O(log nodes) on nodes of different sizes.
  Rank position(Rank r) const { return kind_ == Kind::ranks ? r : place_of(r); }
  Rank ahead(Rank k) const { return positions().ahead(k); }
  Rank behind(Rank k) const { return positions().behind(k); }

 private:
  enum class Kind : std::uint8_t { ranks, turned, zigzag, cycle, cycle_back, given };
  struct Node {
    Rank index, begin, size;
  };
  Group positions() const { return {.size = size, .rank = rank}; }
  static Kind kind_of(const View&);
  Node node_with(Rank member) const;
  Rank at(Rank position) const;
  Rank place_of(Rank r) const;

  Kind kind_;
  Rank first_ = 0;  // place, on every node, at which the order begins
  Rank nodes_, per_node_;
  const Rank *members_, *begin_, *index_;  // as in View; given: members_ and index_ are the order and the places
};

// This rank's node as a chain in the order of its channel, whose first member is at the same place on all nodes.
struct ChannelChain {
  Rank size = 0, rank = 0;    // `rank` is this rank's position
  Rank next = 0, before = 0;  // the ranks beside it; of no meaning at the ends
  Group heads;                // the first member of every node's chain; `rank` is this node
  explicit ChannelChain(const View& v);
  bool head() const { return rank == 0; }
  bool tail() const { return rank + 1 == size; }
};

}  // namespace gccl
