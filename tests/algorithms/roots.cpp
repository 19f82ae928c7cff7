// Calls with a root: trees cross nodes no more often from one rank than from another, and the planner knows the root.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/algorithms/machine.hpp"

using namespace gccl;
using gccl::test::Machine;
using gccl::test::Off;

namespace roots {

constexpr const char* kTrees[] = {"binomial", "double_binary_tree", "scatter_allgather", "rabenseifner"};

// Rank r on node_of[r].
Count between_nodes(const Algorithm& a, const std::vector<Rank>& node_of, Rank root) {
  const Layout layout = Layout::of(node_of);
  const Call call{.kind = a.kind, .count = 4 * node_of.size(), .root = root};
  Count messages = 0;
  for (Rank r = 0; r < node_of.size(); ++r) {
    Schedule s = a.make(call, layout.view(r), {});
    while (const Step* step = s.next())
      messages += step->op == Op::send && !step->idle() && node_of[step->peer] != node_of[r];
  }
  return messages;
}

std::vector<Rank> blocks(Rank nodes, Rank per_node) {
  std::vector<Rank> node_of(nodes * per_node);
  for (Rank r = 0; r < node_of.size(); ++r) node_of[r] = r / per_node;
  return node_of;
}
std::vector<Rank> round_robin(Rank nodes, Rank per_node) {
  std::vector<Rank> node_of(nodes * per_node);
  for (Rank r = 0; r < node_of.size(); ++r) node_of[r] = r % nodes;
  return node_of;
}

std::vector<Card> dealt_cards(Rank ranks, Rank nodes) {
  std::vector<Card> cards(ranks);
  for (Rank r = 0; r < ranks; ++r) cards[r] = r % nodes * (ranks / nodes) + r / nodes;
  return cards;
}

}  // namespace roots
using namespace roots;

TEST_CASE("the order from a root is all ranks, the root first, its node's ranks before others where nodes differ") {
  for (const auto& node_of : {blocks(1, 8), blocks(1, 7), blocks(4, 8), blocks(3, 5), blocks(7, 1), round_robin(4, 8),
                              round_robin(3, 5), std::vector<Rank>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2},
                              std::vector<Rank>{0, 0, 1, 2, 2, 2, 1, 0, 3}, std::vector<Rank>{0}}) {
    const Layout layout = Layout::of(node_of);
    const Rank n = Rank(node_of.size());
    for (Rank root = 0; root < n; ++root) {
      CAPTURE(root);
      const RootOrder order(layout.view(0), root);
      std::vector<Rank> ranks(n);
      for (Rank i = 0; i < n; ++i) {
        ranks[i] = order[i];
        REQUIRE(order.position(ranks[i]) == i);
      }
      CHECK(ranks[0] == root);
      const auto elsewhere = [&](Rank r) { return node_of[r] != node_of[root]; };
      if (std::ranges::is_sorted(node_of) || std::has_single_bit(n))
        CHECK(std::ranges::is_sorted(ranks, {}, elsewhere));
      else
        CHECK(ranks[1 % n] == (root + 1) % n);  // by their numbers
      std::ranges::sort(ranks);
      for (Rank r = 0; r < n; ++r) REQUIRE(ranks[r] == r);
    }
  }
}

// A node's ranks stay together wherever the root is and, of a power of two, however ranks were dealt out to nodes.
TEST_CASE("trees have as many messages between nodes from any root as from rank 0, and with ranks dealt out in turn") {
  for (const auto& shape : {std::pair{2u, 4u}, {4u, 8u}, {3u, 6u}, {5u, 3u}, {8u, 2u}, {6u, 1u}, {1u, 6u}}) {
    const Rank nodes = shape.first, per_node = shape.second;
    CAPTURE(nodes);
    CAPTURE(per_node);
    for (const Collective kind : {Collective::broadcast, Collective::reduce})
      for (const char* name : kTrees) {
        const Algorithm* const a = find_algorithm(kind, name);
        if (!a) continue;
        CAPTURE(name);
        const Count usual = between_nodes(*a, blocks(nodes, per_node), 0);
        for (Rank root = 0; root < nodes * per_node; ++root) {
          CAPTURE(root);
          CHECK(between_nodes(*a, blocks(nodes, per_node), root) == usual);
          if (std::has_single_bit(nodes * per_node))
            CHECK(between_nodes(*a, round_robin(nodes, per_node), root) == usual);
        }
        if (std::string_view(name) == "binomial" && per_node == 8) CHECK(usual == nodes - 1);
      }
  }
}

TEST_CASE("trees take as long however ranks are dealt out to a cluster's nodes") {
  for (const char* name : {"ethernet-cpu", "dgx-h100-superpod-2048"}) {
    const Machine whole(name, 32), in_turn(name, dealt_cards(32, whole.view().nodes));
    REQUIRE(!in_turn.view().by_node);
    for (const Rank root : {0u, 5u, 31u})
      for (const Collective kind : {Collective::broadcast, Collective::reduce})
        for (const char* tree : kTrees)
          if (const Algorithm* const a = find_algorithm(kind, tree)) {
            CAPTURE(tree);
            CAPTURE(root);
            const Call call{.kind = kind, .count = 1 << 18, .root = root};
            Call same = call;  // the root on the same card
            same.root = in_turn.cards[root];
            CHECK(in_turn.simulated_ns(call, {.algorithm = a, .slicing = {}}) ==
                  whole.simulated_ns(same, {.algorithm = a, .slicing = {}}));
          }
  }
}

// Of ranks dealt out in turn the root's nearest subtrees are those that other nodes' blocks come to.
TEST_CASE("a lane's chunks of a gather follow each other as the slowest inner rank lets them") {
  const Algorithm& binomial = *find_algorithm(Collective::gather, "binomial");
  for (const char* const cluster : {"alps-gh200-2048", "marenostrum5-acc", "dgx-h100-superpod-2048"}) {
    const Rank nodes = 4, ranks = nodes * Machine(cluster, 32).view().rails;  // whole nodes
    Machine machine(cluster, dealt_cards(ranks, nodes));
    for (const Rank root : {0u, ranks / 2})
      for (const Count shares : {4u, 16u, 64u}) {
        const Call call{.kind = Collective::gather, .count = (Count(1) << 22) / ranks, .root = root};
        const PlannedBy& by = machine.by(call);
        const Plan plan{.algorithm = &binomial, .slicing = {shares, 1, by.tuning.window}};
        const double ratio = predicted(binomial, call, machine.view(), by.models[0], plan.slicing, by.tuning) /
                             machine.simulated_ns(call, plan);
        INFO(cluster, ", root ", root, ", ", shares, " chunks: predicted ", ratio, " of what was simulated");
        CHECK(std::abs(ratio - 1) <= 0.15);
      }
  }
}

// What one call takes as planned, against the fastest of all algorithms, each cut up as the planner has it; on rank
// counts that leave a node with fewer ranks than others, from every root.
TEST_CASE("the planner's choice for calls with a root is near the fastest, wherever the root is") {
  struct Limit {
    Collective kind;
    double mean, worst;
  };
  for (const Limit& limit : {Limit{Collective::broadcast, 0.004, 0.15},
                             {Collective::reduce, 0.017, 0.45},
                             {Collective::gather, 0.005, 0.15},
                             {Collective::scatter, 0.005, 0.12}}) {
    Off off;
    for (const auto& [cluster, ranks] : {std::pair("ethernet-cpu", 7u),
                                         {"polaris", 6u},
                                         {"l40s-box", 5u},
                                         {"dgx-h100-superpod-2048", 9u},
                                         {"leonardo", 10u},
                                         {"custom-fabric", 13u}}) {
      Machine machine(cluster, ranks);
      const View view = machine.view();
      for (Rank root = 0; root < ranks; ++root) {
        for (Count count = Count(1) << 10; count <= Count(1) << 22; count <<= 4) {
          const Call call{.kind = limit.kind, .count = counts_blocks(limit.kind) ? count / ranks : count, .root = root};
          const PlannedBy& by = machine.by(call);
          const Plan chosen = plan(call, view, by.models, by.tuning);
          double best = machine.simulated_ns(call, chosen);
          const double own = best;
          for (const Algorithm& a : algorithms())
            if (a.kind == limit.kind && !a.variant && a.cost && a.can(call, view) && &a != chosen.algorithm)
              best = std::min(best, machine.simulated_ns(call, plan_of(a, call, view, by.models, by.tuning)));
          off.add(own / best, fmt::format("{} on {} ranks of {}, {} elements from rank {}", chosen.algorithm->name,
                                          ranks, cluster, count, root));
        }
      }
    }
    INFO(std::string(name(limit.kind)), ": ", off.mean(), " in the mean, ", off.worst, " for ", off.where);
    CHECK(off.mean() <= limit.mean);
    CHECK(off.worst <= limit.worst);
  }
}
