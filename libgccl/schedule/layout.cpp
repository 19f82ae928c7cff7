#include "libgccl/schedule/layout.hpp"

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace gccl {
namespace {

Rank most_square_row(Rank n) {
  Rank best = 1;
  for (Rank d = 1; Count(d) * d <= n; ++d)
    if (n % d == 0) best = d;
  return n ? n / best : 1;
}

}  // namespace

Layout Layout::regular(Rank ranks, Rank per_node) {
  Layout l;
  l.ranks_ = ranks;
  l.per_node_ = std::max<Rank>(per_node, 1);
  l.nodes_ = (ranks + l.per_node_ - 1) / l.per_node_;
  l.rails_ = ranks % l.per_node_ ? ranks % l.per_node_ : std::min(ranks, l.per_node_);
  l.fullest_ = std::min(ranks, l.per_node_);
  l.columns_ = most_square_row(ranks);
  return l;
}

Layout Layout::of(std::span<const Rank> node_of) {
  const Rank n = Rank(node_of.size());
  std::unordered_map<Rank, Rank> renumber;
  std::vector<Rank> node(n), size;
  for (Rank r = 0; r < n; ++r) {
    const auto [it, fresh] = renumber.try_emplace(node_of[r], Rank(renumber.size()));
    if (fresh) size.push_back(0);
    node[r] = it->second;
    ++size[it->second];
  }
  const Rank per_node = n ? size[0] : 1;
  bool affine = true;
  for (Rank r = 0; r < n && affine; ++r) affine = node[r] == r / per_node;
  if (affine) return regular(n, per_node);

  Layout l;
  l.ranks_ = n;
  l.nodes_ = Rank(size.size());
  l.rails_ = *std::min_element(size.begin(), size.end());
  l.fullest_ = *std::max_element(size.begin(), size.end());
  l.columns_ = most_square_row(n);
  l.begin_.assign(l.nodes_ + 1, 0);
  for (Rank k = 0; k < l.nodes_; ++k) l.begin_[k + 1] = l.begin_[k] + size[k];
  l.place_.resize(n);
  l.members_.resize(n);
  std::vector<Rank> next(l.begin_.begin(), l.begin_.end() - 1);
  for (Rank r = 0; r < n; ++r) l.members_[l.place_[r] = next[node[r]]++] = r;
  l.rail_.resize(std::size_t(l.rails_) * l.nodes_);
  for (Rank j = 0; j < l.rails_; ++j)
    for (Rank k = 0; k < l.nodes_; ++k) l.rail_[std::size_t(j) * l.nodes_ + k] = l.members_[l.begin_[k] + j];
  l.by_node_ = std::is_sorted(node.begin(), node.end());
  l.node_ = std::move(node);
  return l;
}

Layout& Layout::orders(const std::vector<std::vector<Rank>>& given) {
  order_.clear();
  order_place_.assign(given.size() * ranks_, 0);
  for (std::size_t i = 0; i < given.size(); ++i) {
    assert(given[i].size() == ranks_);
    order_.insert(order_.end(), given[i].begin(), given[i].end());
    for (Rank place = 0; place < ranks_; ++place) order_place_[i * ranks_ + given[i][place]] = place;
  }
  return *this;
}

View Layout::view(Rank rank) const {
  assert(rank < ranks_);
  View v;
  v.all = {.size = ranks_, .rank = rank};
  v.nodes = nodes_;
  v.rails = rails_;
  v.fullest = fullest_;
  v.columns = columns_;
  v.per_node = per_node_;
  v.by_node = by_node_;
  v.wiring = wiring_;
  if (!order_.empty()) {
    v.order = order_.data();
    v.order_place = order_place_.data();
    v.orders = Rank(order_.size() / ranks_);
  }
  if (members_.empty()) {
    const Rank node = rank / per_node_, place = rank % per_node_, first = node * per_node_;
    v.node = {.size = std::min(per_node_, ranks_ - first), .rank = place, .first = first};
    v.rail = {.size = place < rails_ ? nodes_ : 0, .rank = node, .first = place, .stride = per_node_};
  } else {
    const Rank node = node_[rank], place = place_[rank] - begin_[node];
    v.members = members_.data();
    v.begin = begin_.data();
    v.index = place_.data();
    v.rail_members = rail_.data();
    v.node = {.size = begin_[node + 1] - begin_[node], .rank = place, .table = &members_[begin_[node]]};
    v.rail = {.size = place < rails_ ? nodes_ : 0, .rank = node};
    if (v.rail.size) v.rail.table = &rail_[std::size_t(place) * nodes_];
  }
  return v;
}

}  // namespace gccl
