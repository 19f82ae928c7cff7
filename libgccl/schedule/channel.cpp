#include "libgccl/schedule/channel.hpp"

#include <bit>

namespace gccl {
namespace {

// 0, n/2, n/4, 3n/4, ...: the first of them are far apart, because neighbours may share a NIC. A permutation of 0 ..
// n-1.
Rank spread(Rank i, Rank n) {
  const unsigned bits = unsigned(std::bit_width(n - 1));
  for (Rank k = 0;; ++k) {
    Rank reversed = 0;
    for (unsigned b = 0; b < bits; ++b) reversed |= (k >> b & 1) << (bits - 1 - b);
    if (reversed < n && i-- == 0) return reversed;
  }
}

// 0, 1, -1, 2, -2, ... modulo n, from `first`; and its inverse.
Rank zigzag(Rank first, Rank i, Rank n) { return (first + (i % 2 ? (i + 1) / 2 : n - i / 2)) % n; }
Rank zigzag_inverse(Rank first, Rank place, Rank n) {
  const Rank d = (place + n - first) % n;
  return d == 0 ? 0 : 2 * d <= n ? 2 * d - 1 : 2 * (n - d);
}

// The way through the g members of a node, from place to place, and its inverse.
Rank way(bool mesh, Rank first, Rank i, Rank g) {
  if (mesh) return zigzag(first, i, g);
  return first + i < g ? first + i : first + i - g;
}
Rank way_inverse(bool mesh, Rank first, Rank place, Rank g) {
  if (mesh) return zigzag_inverse(first, place, g);
  return place >= first ? place - first : place + g - first;
}

Rank first_place(const View& v) { return spread(v.channel % v.rails, v.rails); }

// Through the members of a communicator of one node: the last of them, then a zigzag through the others.
Rank cycles(Rank g) { return g % 2 ? (g - 1) / 2 : g - 1; }

}  // namespace

ChannelOrder::Kind ChannelOrder::kind_of(const View& v) {
  if (v.order) return Kind::given;
  if (v.wiring == View::Wiring::unknown || v.all.size < 3 || v.nodes == v.all.size) return Kind::ranks;
  const bool mesh = v.wiring == View::Wiring::mesh;
  if (v.nodes > 1) return mesh ? Kind::zigzag : Kind::turned;
  if (!mesh) return Kind::ranks;
  return v.channel / cycles(v.all.size) % 2 ? Kind::cycle_back : Kind::cycle;
}

Rank ChannelOrder::different(const View& v) {
  if (v.order) return v.orders;
  if (kind_of(v) == Kind::ranks) return 1;
  return v.nodes > 1 ? v.rails : 2 * cycles(v.all.size);
}

ChannelOrder::ChannelOrder(const View& v)
    : size(v.all.size),
      rank(v.all.rank),
      kind_(kind_of(v)),
      nodes_(v.nodes),
      per_node_(v.per_node),
      members_(v.members),
      begin_(v.begin),
      index_(v.index) {
  if (kind_ == Kind::ranks) return;
  if (kind_ == Kind::given) {
    const std::size_t table = std::size_t(v.channel % v.orders) * size;
    members_ = v.order + table;
    index_ = v.order_place + table;
    rank = index_[v.all.rank];
    return;
  }
  first_ = nodes_ == 1 ? v.channel % cycles(size) : first_place(v);
  rank = place_of(v.all.rank);
}

ChannelOrder::Node ChannelOrder::node_with(Rank member) const {
  if (!begin_) {
    const Rank k = member / per_node_, begin = k * per_node_;
    return {k, begin, std::min(per_node_, size - begin)};
  }
  const Rank k = Rank(std::upper_bound(begin_, begin_ + nodes_ + 1, member) - begin_) - 1;
  return {k, begin_[k], begin_[k + 1] - begin_[k]};
}

Rank ChannelOrder::at(Rank position) const {
  if (kind_ == Kind::given) return members_[position];
  if (nodes_ == 1) {
    if (kind_ == Kind::cycle_back && position) position = size - position;
    return position == 0 ? size - 1 : zigzag(first_, position - 1, size - 1);
  }
  const Node n = node_with(position);
  const Rank i = position - n.begin;
  const Rank member = n.begin + way(kind_ == Kind::zigzag, first_, n.index % 2 ? n.size - 1 - i : i, n.size);
  return members_ ? members_[member] : member;
}

Rank ChannelOrder::place_of(Rank r) const {
  if (kind_ == Kind::given) return index_[r];
  if (nodes_ == 1) {
    const Rank i = r == size - 1 ? 0 : 1 + zigzag_inverse(first_, r, size - 1);
    return kind_ == Kind::cycle_back && i ? size - i : i;
  }
  const Rank member = index_ ? index_[r] : r;
  const Node n = node_with(member);
  const Rank i = way_inverse(kind_ == Kind::zigzag, first_, member - n.begin, n.size);
  return n.begin + (n.index % 2 ? n.size - 1 - i : i);
}

ChannelChain::ChannelChain(const View& v) : size(v.node.size) {
  const bool mesh = v.wiring == View::Wiring::mesh;
  const Rank first = v.wiring == View::Wiring::unknown ? 0 : first_place(v);
  rank = way_inverse(mesh, first, v.node.rank, size);
  if (!tail()) next = v.node[way(mesh, first, rank + 1, size)];
  if (!head()) before = v.node[way(mesh, first, rank - 1, size)];
  heads = {.size = v.nodes, .rank = v.rail.rank, .first = first, .stride = v.per_node};
  if (v.members) heads.table = v.rail_members + std::size_t(first) * v.nodes;
}

}  // namespace gccl
