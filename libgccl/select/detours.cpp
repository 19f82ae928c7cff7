#include "libgccl/select/detours.hpp"

#include <algorithm>
#include <utility>

#include "libgccl/schedule/channel.hpp"

namespace gccl {
namespace {

class Orders {
 public:
  Orders(const Layout& layout, std::span<const SlowPair> pairs) : pairs_(pairs) {
    for (Rank r = 0; r < layout.ranks(); ++r) node_.push_back(layout.view(r).rail.rank);
  }

  // Reverses parts of it, beginning behind its first rank, until that helps no more.
  void turn(std::vector<Rank>& order) const {
    for (bool better = true; better;) {
      better = false;
      for (std::size_t i = 0; i < order.size() && !better; ++i)
        better = slow(order[i], order[(i + 1) % order.size()]) && part(order, i);
    }
  }

 private:
  bool slow(Rank a, Rank b) const {
    return std::ranges::any_of(pairs_,
                               [&](const SlowPair& p) { return (p.a == a && p.b == b) || (p.a == b && p.b == a); });
  }
  // Pairs that are slow, then changes of the node.
  std::pair<int, int> hops(Rank a, Rank b, Rank c, Rank d) const {
    return {slow(a, b) + slow(c, d), (node_[a] != node_[b]) + (node_[c] != node_[d])};
  }
  // The ranks at i and i + 1: the part that begins there, and ends with j, is reversed.
  bool part(std::vector<Rank>& order, std::size_t i) const {
    const std::size_t n = order.size();
    const auto at = [&](std::size_t k) { return order[k % n]; };
    std::size_t chosen = 0;
    std::pair<int, int> best;
    for (std::size_t j = i + 2; j + 1 < i + n; ++j) {
      const int before = hops(at(i), at(i + 1), at(j), at(j + 1)).first;
      const auto after = hops(at(i), at(j), at(i + 1), at(j + 1));
      const auto change = std::pair(after.first - before, after.second);
      if (change.first < 0 && (chosen == 0 || change < best)) chosen = j, best = change;
    }
    if (chosen == 0) return false;
    const auto first = order[0];
    std::rotate(order.begin(), order.begin() + std::ptrdiff_t((i + 1) % n), order.end());
    std::reverse(order.begin(), order.begin() + std::ptrdiff_t(chosen - i));
    std::rotate(order.begin(), std::ranges::find(order, first), order.end());
    return true;
  }

  std::span<const SlowPair> pairs_;
  std::vector<Rank> node_;
};

// Elements that a rank sends to another.
Count sent(const Algorithm& algorithm, const Call& call, const View& from, Rank to, Count lanes) {
  Count elements = 0;
  for (Count lane = 0; lane < lanes; ++lane) {
    Schedule steps = sliced(&algorithm, call, from, lanes, lane, lanes);
    while (const Step* const s = steps.next())
      if (s->op == Op::send && s->peer == to && s->from.buffer() != Buffer::none) elements += s->from.count;
  }
  return elements;
}

}  // namespace

std::vector<std::vector<Rank>> orders_around(const Layout& layout, std::span<const SlowPair> pairs) {
  const Orders orders(layout, pairs);
  std::vector<std::vector<Rank>> all(ChannelOrder::different(layout.view(0)));
  for (std::size_t channel = 0; channel < all.size(); ++channel) {
    View v = layout.view(0);
    v.channel = Rank(channel);
    const ChannelOrder order(v);
    for (Rank i = 0; i < order.size; ++i) all[channel].push_back(order[i]);
    orders.turn(all[channel]);
  }
  return all;
}

Layout around(const Layout& layout, std::span<const SlowPair> pairs) {
  Layout turned = layout;
  turned.orders({});
  if (!pairs.empty()) turned.orders(orders_around(turned, pairs));
  return turned;
}

Cost Detours::added_ns(const Algorithm& algorithm, const Call& call, Count lanes, double element_bytes) const {
  Cost most = 0;
  if (has_counts(call.kind)) return most;
  for (const SlowPair& p : pairs_) {
    const Count elements = std::max(sent(algorithm, call, layout_->view(p.a), p.b, lanes),
                                    sent(algorithm, call, layout_->view(p.b), p.a, lanes));
    most = std::max(most, double(elements) * element_bytes * p.more_ns_per_byte);
  }
  return most;
}

}  // namespace gccl
