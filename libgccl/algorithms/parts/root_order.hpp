// In which order trees over all ranks take them from a root on.
#pragma once

#include <algorithm>
#include <vector>

#include "libgccl/schedule/call.hpp"

namespace gccl {

// All ranks node by node, a root first, so that trees over it cross nodes as seldom as from rank 0. Where nodes hold
// equally many, position i is rank i with node and place each exchanged by xor for the root's, as far as there are such
// ones: what is near, or on one rail, or below one switch, stays so. Else the root's node comes before the others.
class RootOrder {
 public:
  RootOrder() = default;
  RootOrder(const View& v, Rank root) : members_(v.members), index_(v.index) {
    const Rank at = index_ ? index_[root] : root;
    if (v.nodes <= 1 || v.uniform()) {
      nodes_ = std::max<Rank>(v.nodes, 1), on_node_ = v.all.size / nodes_;
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

  // The rank at position i.
  Rank operator[](Rank i) const {
    const Rank at = alike()                 ? turned(i)
                    : i < on_node_          ? begin_ + exchanged(i, place_, on_node_)
                    : i < begin_ + on_node_ ? i - on_node_
                                            : i;
    return members_ ? members_[at] : at;
  }
  Rank position(Rank r) const {
    const Rank at = index_ ? index_[r] : r;
    if (alike()) return turned(at);
    if (at >= begin_ + on_node_) return at;
    return at < begin_ ? at + on_node_ : exchanged(at - begin_, place_, on_node_);
  }

 private:
  // Its own inverse on 0 .. n-1, and of 0 it is x.
  static Rank exchanged(Rank i, Rank x, Rank n) { return (i ^ x) < n ? i ^ x : i; }
  Rank turned(Rank i) const {
    return exchanged(i / on_node_, node_, nodes_) * on_node_ + exchanged(i % on_node_, place_, on_node_);
  }
  bool alike() const { return nodes_ > 0; }

  const Rank *members_ = nullptr, *index_ = nullptr;  // as in View
  Rank nodes_ = 0;                                    // 0: of different sizes
  Rank node_ = 0, place_ = 0;                         // the root's
  Rank begin_ = 0, on_node_ = 0;                      // its node's part of members
};

// The ranks in the order in which the algorithms of such a call take them; empty where it is that of their numbers.
std::vector<Rank> order_from_root(const Call& call, const View& v);

}  // namespace gccl
