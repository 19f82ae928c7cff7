// In which order trees over all ranks take them from a root on.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "libgccl/schedule/call.hpp"

namespace gccl {

// All ranks, a root first, so that trees over them cross nodes as seldom as from rank 0: node by node. Where nodes hold
// equally many, position i is rank i with its place exchanged for the root's by xor, as far as there are such ones, and
// its node by xor, where those are a power of two, else by rotation: what is near, or on one rail, stays so. Where they
// hold different numbers the root's node comes before the others. But ranks that do not follow each other node by node,
// and are no power of two, are taken by their numbers: what halves by rounds (halving.hpp) sends most to the farthest
// then, and those are on its node.
class RootOrder {
 public:
  RootOrder() = default;
  RootOrder(const View& v, Rank root) {
    const bool nodes = by_node(v);
    if (nodes) members_ = v.members, index_ = v.index;
    const Rank at = index_ ? index_[root] : root;
    if (!nodes || v.nodes <= 1 || v.uniform()) {
      nodes_ = std::max<Rank>(nodes ? v.nodes : v.all.size, 1), on_node_ = std::max<Rank>(v.all.size / nodes_, 1);
      node_ = at / on_node_, place_ = at % on_node_;
      return;
    }
    if (index_) {
      const Rank* const end = std::upper_bound(v.begin, v.begin + v.nodes, at);
      begin_ = end[-1], on_node_ = *end - begin_;
    } else {
      begin_ = at / v.per_node * v.per_node, on_node_ = std::min(v.per_node, v.all.size - begin_);
    }
    place_ = at - begin_;
  }

  static bool by_node(const View& v) { return v.by_node || std::has_single_bit(v.all.size); }

  // The rank at position i.
  Rank operator[](Rank i) const {
    const Rank at = alike()        ? turned(i / on_node_) * on_node_ + exchanged(i % on_node_, place_, on_node_)
                    : i < on_node_ ? begin_ + exchanged(i, place_, on_node_)
                    : i < begin_ + on_node_ ? i - on_node_
                                            : i;
    return members_ ? members_[at] : at;
  }
  Rank position(Rank r) const {
    const Rank at = index_ ? index_[r] : r;
    if (alike()) return back(at / on_node_) * on_node_ + exchanged(at % on_node_, place_, on_node_);
    if (at >= begin_ + on_node_) return at;
    return at < begin_ ? at + on_node_ : exchanged(at - begin_, place_, on_node_);
  }

 private:
  // Its own inverse on 0 .. n-1, and of 0 it is x.
  static Rank exchanged(Rank i, Rank x, Rank n) { return (i ^ x) < n ? i ^ x : i; }
  Rank turned(Rank k) const {
    return std::has_single_bit(nodes_) ? k ^ node_ : k < nodes_ - node_ ? k + node_ : k - (nodes_ - node_);
  }
  Rank back(Rank k) const {
    return std::has_single_bit(nodes_) ? k ^ node_ : k >= node_ ? k - node_ : k + (nodes_ - node_);
  }
  bool alike() const { return nodes_ > 0; }

  const Rank *members_ = nullptr, *index_ = nullptr;  // as in View
  Rank nodes_ = 0;                                    // 0: of different sizes
  Rank node_ = 0, place_ = 0;                         // the root's
  Rank begin_ = 0, on_node_ = 1;                      // its node's part of members
};

// The ranks in the order in which the algorithms of such a call take them; empty where it is that of their numbers.
std::vector<Rank> order_from_root(const Call& call, const View& v);

}  // namespace gccl
