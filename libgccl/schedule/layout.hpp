// From "which node is each rank on" to the View of every rank.
#pragma once

#include <vector>

#include "libgccl/schedule/group.hpp"

namespace gccl {

// Owns the tables that the views' groups point to; it must outlive the schedules made from them. Regular placements
// (rank r on node r / k) need no table.
class Layout {
 public:
  // Every rank on one node.
  static Layout flat(Rank ranks) { return regular(ranks, ranks); }
  // Rank r on node r / per_node; the last node may hold fewer. Requires per_node > 0 when ranks > 0.
  static Layout regular(Rank ranks, Rank per_node);
  // node_of[r]: any number that identifies rank r's node. Nodes are ordered by their lowest rank.
  static Layout of(std::span<const Rank> node_of);

  // Sets the rank grid's row length (see View::columns); without it ranks divided by its largest divisor up to
  // the square root, so that rows are at least as long as columns.
  Layout& columns(Rank c) {
    columns_ = c;
    return *this;
  }

  Layout& wiring(View::Wiring w) {
    wiring_ = w;
    return *this;
  }

  // Orders for channels (View::order): permutations of all ranks. None: those that follow from the nodes.
  Layout& orders(const std::vector<std::vector<Rank>>& given);

  Rank ranks() const { return ranks_; }
  View view(Rank rank) const;

 private:
  Rank ranks_ = 0, per_node_ = 1, nodes_ = 0, rails_ = 0, fullest_ = 0, columns_ = 1;
  bool by_node_ = true;
  View::Wiring wiring_ = View::Wiring::crossbar;
  std::vector<Rank> order_, order_place_;  // as in View
  // Irregular placements only:
  std::vector<Rank> place_;    // place_[r]: position of rank r in members_
  std::vector<Rank> members_;  // the ranks, node by node
  std::vector<Rank> begin_;    // begin_[k] .. begin_[k+1]: node k's part of members_
  std::vector<Rank> node_;     // node_[r]: the node of rank r, renumbered
  std::vector<Rank> rail_;     // rail_[j * nodes + k]: place j of node k, j < rails
};

}  // namespace gccl
