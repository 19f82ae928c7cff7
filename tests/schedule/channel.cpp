// The rank orders of channels: permutations whose hops use rails and links evenly.
#include "libgccl/schedule/channel.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libgccl/schedule/layout.hpp"

using namespace gccl;

namespace {

View view_of(const Layout& layout, Rank rank, Rank channel) {
  View v = layout.view(rank);
  v.channel = channel;
  return v;
}

std::vector<Rank> order_of(const Layout& layout, Rank channel) {
  const ChannelOrder order(view_of(layout, 0, channel));
  std::vector<Rank> ranks;
  for (Rank i = 0; i < order.size; ++i) ranks.push_back(order[i]);
  return ranks;
}

using Hops = std::map<std::pair<Rank, Rank>, int>;

// How often each hop between two places of one node is taken by so many channels' rings.
Hops hops_inside(const Layout& layout, Rank per_node, Rank channels) {
  Hops hops;
  for (Rank c = 0; c < channels; ++c) {
    const std::vector<Rank> order = order_of(layout, c);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Rank a = order[i], b = order[(i + 1) % order.size()];
      if (a / per_node == b / per_node) ++hops[{a, b}];
    }
  }
  return hops;
}

}  // namespace

TEST_CASE("every channel's order is a permutation, the same on all ranks, and knows positions") {
  std::vector<Layout> layouts;
  for (const Rank n : {1, 2, 3, 7, 8, 24, 33}) layouts.push_back(Layout::flat(n));
  for (const auto& [n, g] : {std::pair<Rank, Rank>{2, 1}, {6, 2}, {12, 4}, {15, 5}, {22, 8}, {64, 8}, {144, 72}})
    layouts.push_back(Layout::regular(n, g));
  layouts.push_back(Layout::of(std::vector<Rank>{0, 1, 2, 0, 1, 2, 0, 0, 1}));
  layouts.push_back(Layout::of(std::vector<Rank>{5, 5, 5, 9, 9, 2, 2, 2, 2}));
  layouts.push_back(Layout::of(std::vector<Rank>{0, 1, 0, 1, 0, 1, 0, 1}));
  for (Layout& layout : layouts)
    for (const auto wiring : {View::Wiring::unknown, View::Wiring::crossbar, View::Wiring::mesh}) {
      layout.wiring(wiring);
      const Rank different = ChannelOrder::different(layout.view(0));
      CHECK(order_of(layout, different) == order_of(layout, 0));
      for (Rank channel = 1; channel < different; ++channel) CHECK(order_of(layout, channel) != order_of(layout, 0));
      for (const Rank channel : {0, 1, 2, 3, 5, 13, 31, 100}) {
        CAPTURE(layout.ranks());
        CAPTURE(int(wiring));
        CAPTURE(channel);
        const std::vector<Rank> order = order_of(layout, channel);
        CHECK(std::set<Rank>(order.begin(), order.end()).size() == layout.ranks());
        CHECK(*std::max_element(order.begin(), order.end()) == layout.ranks() - 1);
        for (Rank r = 0; r < layout.ranks(); ++r) {
          const ChannelOrder mine(view_of(layout, r, channel));
          REQUIRE(mine.rank < order.size());
          CHECK(order[mine.rank] == r);
          CHECK(mine.position(order[(r * 7) % order.size()]) == (r * 7) % order.size());
          CHECK(mine[std::int64_t(mine.rank) - 1] == order[(mine.rank + order.size() - 1) % order.size()]);
        }
      }
    }
}

TEST_CASE("the ranks of a node follow each other, also where they are spread over the ranks") {
  const std::vector<Rank> node_of{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2};
  const Layout layout = Layout::of(node_of);
  for (Rank channel = 0; channel < 8; ++channel) {
    const std::vector<Rank> order = order_of(layout, channel);
    int changes = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      changes += node_of[order[i]] != node_of[order[(i + 1) % order.size()]];
    CHECK(changes == 3);
  }
}

TEST_CASE("rings of as many channels as rails use each rail once between any two nodes") {
  for (const auto& [nodes, g] : {std::pair<Rank, Rank>{2, 8}, {4, 8}, {6, 4}, {8, 3}, {4, 2}})
    for (const auto wiring : {View::Wiring::crossbar, View::Wiring::mesh}) {
      const Layout layout = std::move(Layout::regular(nodes * g, g).wiring(wiring));
      std::map<std::pair<Rank, Rank>, int> used;  // rail and node that it is left on
      for (Rank c = 0; c < g; ++c) {
        const std::vector<Rank> order = order_of(layout, c);
        for (std::size_t i = 0; i < order.size(); ++i) {
          const Rank a = order[i], b = order[(i + 1) % order.size()];
          if (a / g == b / g) continue;
          CHECK(a % g == b % g);
          ++used[{a % g, a / g}];
        }
      }
      CHECK(used.size() == nodes * g);
      for (const auto& [where, times] : used) CHECK(times == 1);
    }
}

TEST_CASE("the first channels begin far apart") {
  const Layout layout = Layout::regular(32, 8);
  std::set<Rank> halves, all;
  for (Rank c = 0; c < 2; ++c) halves.insert(order_of(layout, c)[0] / 4);
  for (Rank c = 0; c < 8; ++c) all.insert(order_of(layout, c)[0]);
  CHECK(halves.size() == 2);
  CHECK(all.size() == 8);
}

TEST_CASE("where cards are joined pairwise, channels use every pair's links alike") {
  for (const Rank g : {4, 6, 8, 16}) {
    const Hops hops = hops_inside(std::move(Layout::regular(4 * g, g).wiring(View::Wiring::mesh)), g, g);
    CHECK(hops.size() == std::size_t(4 * g * (g - 1)));
    for (const auto& [pair, times] : hops) CHECK(times == 1);
  }
  for (const Rank g : {3, 4, 5, 7, 8}) {  // one node: closed cycles
    const Rank channels = g % 2 ? g - 1 : 2 * (g - 1);
    const Hops hops = hops_inside(std::move(Layout::flat(g).wiring(View::Wiring::mesh)), g, channels);
    CHECK(hops.size() == std::size_t(g * (g - 1)));
    for (const auto& [pair, times] : hops) CHECK(times == (g % 2 ? 1 : 2));
  }
}

TEST_CASE("chains begin at one place on all nodes and hold every rank of theirs once") {
  for (const auto wiring : {View::Wiring::unknown, View::Wiring::crossbar, View::Wiring::mesh})
    for (Layout layout : {Layout::regular(24, 8), Layout::regular(11, 4), Layout::flat(6), Layout::regular(3, 1),
                          Layout::of(std::vector<Rank>{0, 1, 1, 0, 1, 2, 2, 2})}) {
      layout.wiring(wiring);
      for (Rank channel = 0; channel < 9; ++channel) {
        std::map<Rank, std::set<Rank>> positions;  // by node
        std::set<Rank> places;
        for (Rank r = 0; r < layout.ranks(); ++r) {
          const View v = view_of(layout, r, channel);
          const ChannelChain chain(v);
          positions[v.rail.rank].insert(chain.rank);
          if (chain.head()) {
            places.insert(v.node.rank);
            CHECK(chain.heads[v.rail.rank] == r);
          }
          if (!chain.tail()) {
            const ChannelChain next(view_of(layout, chain.next, channel));
            CHECK(next.rank == chain.rank + 1);
            CHECK(next.before == r);
            CHECK(layout.view(chain.next).rail.rank == v.rail.rank);
          }
        }
        CHECK(places.size() == 1);
        for (Rank r = 0; r < layout.ranks(); ++r)
          CHECK(positions[layout.view(r).rail.rank].size() == layout.view(r).node.size);
      }
    }
}
