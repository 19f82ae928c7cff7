// Plans around pairs of ranks with slow links.
#include "libgccl/select/detours.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/schedule/channel.hpp"
#include "libgccl/select/plan.hpp"

using namespace gccl;

namespace {

using Pairs = std::set<std::pair<Rank, Rank>>;

std::vector<SlowPair> slow(const Pairs& pairs) {
  std::vector<SlowPair> all;
  for (const auto& [a, b] : pairs) all.push_back({a, b, 20});
  return all;
}

int side_by_side(const std::vector<Rank>& cycle, const Pairs& pairs) {
  int found = 0;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Rank a = cycle[i], b = cycle[(i + 1) % cycle.size()];
    found += int(pairs.count({std::min(a, b), std::max(a, b)}));
  }
  return found;
}

// The fewest in any cycle, by trying all of them.
int fewest(Rank ranks, const Pairs& pairs) {
  std::vector<Rank> cycle(ranks);
  for (Rank r = 0; r < ranks; ++r) cycle[r] = r;
  int best = int(ranks);
  do best = std::min(best, side_by_side(cycle, pairs));
  while (best > 0 && std::next_permutation(cycle.begin() + 1, cycle.end()));
  return best;
}

int node_changes(const std::vector<Rank>& cycle, Rank per_node) {
  int changes = 0;
  for (std::size_t i = 0; i < cycle.size(); ++i)
    changes += cycle[i] / per_node != cycle[(i + 1) % cycle.size()] / per_node;
  return changes;
}

// What each rank sends to each other one, from the schedules of all lanes.
Count bytes_between(const Plan& p, const Call& call, const Layout& layout, Rank a, Rank b) {
  Count bytes = 0;
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
    for (Count lane = 0; lane < p.slicing.lanes; ++lane) {
      Schedule s = sliced(p.algorithm, call, layout.view(from), p.slicing.shares, lane, p.slicing.lanes);
      while (const Step* const step = s.next())
        if (step->op == Op::send && step->peer == to) bytes += 4 * step->from.count;
    }
  return bytes;
}

}  // namespace

TEST_CASE(
    "orders around slow pairs are permutations with as few of them side by side as there can be of one, and few of "
    "several") {
  std::mt19937 random(3);
  for (Rank n = 1; n <= 8; ++n)
    for (int round = 0; round < 60; ++round) {
      Pairs pairs;
      for (int i = round % 3; i >= 0 && n > 1; --i) {
        const Rank a = random() % n, b = random() % n;
        if (a != b) pairs.insert({std::min(a, b), std::max(a, b)});
      }
      for (const Rank per_node : {Rank(1), Rank(2), n}) {
        const Layout layout = Layout::regular(n, per_node);
        const auto orders = orders_around(layout, slow(pairs));
        REQUIRE(orders.size() == ChannelOrder::different(layout.view(0)));
        for (std::size_t c = 0; c < orders.size(); ++c) {
          CAPTURE(n);
          CAPTURE(per_node);
          CAPTURE(round);
          const std::vector<Rank>& order = orders[c];
          CHECK(std::set<Rank>(order.begin(), order.end()).size() == n);
          View v = layout.view(0);
          v.channel = Rank(c);
          CHECK(order[0] == ChannelOrder(v)[0]);
          if (n < 2) continue;
          if (pairs.size() <= 1) CHECK(side_by_side(order, pairs) == fewest(n, pairs));
          // Where two or three pairs are slow no single reversal may help, though some order has fewer: never more than
          // one is left then.
          CHECK(side_by_side(order, pairs) <= fewest(n, pairs) + 1);
        }
      }
    }
}

TEST_CASE("the ranks of a node stay together where that can be") {
  for (const auto& size : {std::pair<Rank, Rank>{8, 4}, {16, 4}, {24, 8}, {6, 3}}) {
    const Rank n = size.first, g = size.second;
    const Layout layout = Layout::regular(n, g);
    View v = layout.view(0);
    std::vector<Rank> natural;
    for (Rank i = 0; i < n; ++i) natural.push_back(ChannelOrder(v)[i]);
    for (std::size_t i = 0; i < natural.size(); ++i) {
      const Rank a = natural[i], b = natural[(i + 1) % n];
      const Pairs pair{{std::min(a, b), std::max(a, b)}};
      const std::vector<Rank> turned = orders_around(layout, slow(pair))[0];
      CAPTURE(n);
      CAPTURE(i);
      CHECK(side_by_side(turned, pair) == 0);
      CHECK(node_changes(turned, g) == node_changes(natural, g));
    }
  }
}

TEST_CASE("channels take the orders that a layout is given, one after the other") {
  Layout layout = Layout::regular(6, 2);
  const std::vector<std::vector<Rank>> given{{0, 5, 1, 4, 2, 3}, {3, 0, 1, 2, 4, 5}};
  layout.orders(given);
  for (Rank r = 0; r < 6; ++r)
    for (Rank channel = 0; channel < 5; ++channel) {
      View v = layout.view(r);
      CHECK(ChannelOrder::different(v) == 2);
      v.channel = channel;
      const ChannelOrder order(v);
      const std::vector<Rank>& due = given[channel % 2];
      CHECK(order.size == 6);
      CHECK(due[order.rank] == r);
      for (Rank i = 0; i < 6; ++i) {
        CHECK(order[i] == due[i]);
        CHECK(order[std::int64_t(i) - 6] == due[i]);
        CHECK(order.position(due[i]) == i);
      }
    }
  layout.orders({});
  CHECK(layout.view(1).order == nullptr);
}

TEST_CASE("no plan for four ranks or more sends anything between two whose link is slow, and others stay as they are") {
  for (const Rank n : {4, 5, 6, 8, 12})
    for (const Rank per_node : {Rank(1), n})
      for (const Collective kind :
           {Collective::allreduce, Collective::allgather, Collective::reduce_scatter, Collective::broadcast})
        for (const Count bytes : {Count(1) << 20, Count(64) << 20})
          for (Rank b = 1; b < n; ++b) {
            const Rank a = (b * 7) % b;
            const TransportModel& t = transport_model(per_node == 1 ? "tcp" : "tcp-loopback");
            Layout layout = Layout::regular(n, per_node);
            const CostModel costs = t.costs_on(layout.view(0), 4);
            const Call call{.kind = kind, .count = bytes / 4 / (counts_blocks(kind) ? n : 1)};
            const Plan before = plan(call, layout.view(0), costs, t.tuning);
            const Count crossed = bytes_between(before, call, layout, a, b);
            layout.orders(orders_around(layout, slow({{a, b}})));
            const Detours detours(layout, slow({{a, b}}));
            const Plan p =
                plan(call, layout.view(0), CostModels(&costs, 1), t.tuning, {}, algorithms(), nullptr, &detours);
            CAPTURE(n);
            CAPTURE(per_node);
            CAPTURE(name(kind));
            CAPTURE(a);
            CAPTURE(b);
            REQUIRE(p.algorithm);
            CHECK(bytes_between(p, call, layout, a, b) == 0);
            if (crossed == 0) CHECK(p.algorithm == before.algorithm);
          }
}

TEST_CASE("a slow pair adds what its busier direction carries, and of several the one that adds most counts") {
  const Layout layout = Layout::flat(4);
  const Call call{.kind = Collective::allreduce, .count = 4000};
  const Algorithm& ring = *find_algorithm(Collective::allreduce, "ring");
  // 6 steps of 1000 elements of 4 bytes, from each to the next.
  CHECK(Detours(layout, {{0, 1, 3}}).added_ns(ring, call, 1, 4) == doctest::Approx(6 * 4000 * 3));
  CHECK(Detours(layout, {{0, 1, 3}}).added_ns(ring, call, 2, 4) == doctest::Approx(6 * 4000 * 3));
  CHECK(Detours(layout, {{0, 2, 3}}).added_ns(ring, call, 1, 4) == 0);
  CHECK(Detours(layout, {{0, 1, 3}, {1, 2, 5}, {0, 2, 90}}).added_ns(ring, call, 1, 4) ==
        doctest::Approx(6 * 4000 * 5));
  const Call blocks{.kind = Collective::alltoallv, .count = 4000};
  CHECK(Detours(layout, {{0, 1, 3}}).added_ns(*find_algorithm(Collective::alltoallv, "pairwise"), blocks, 1, 4) == 0);
}
