// Closed forms on nodes of different sizes, on nodes of which few cards take part, and on parts of a torus that are no
// cuboid, against the flow engine.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/algorithms/machine.hpp"
#include "tests/support/wide.hpp"

using namespace gccl;
using gccl::test::Machine;

namespace {

// So many cards of each node, node by node or dealt out in turn.
std::vector<Card> on_nodes(Rank cards_per_node, const std::vector<Rank>& sizes, bool in_turn = false) {
  std::vector<Card> cards;
  for (Rank i = 0; in_turn && i < cards_per_node; ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k)
      if (i < sizes[k]) cards.push_back(Card(k) * cards_per_node + i);
  for (std::size_t k = 0; !in_turn && k < sizes.size(); ++k)
    for (Rank i = 0; i < sizes[k]; ++i) cards.push_back(Card(k) * cards_per_node + i);
  return cards;
}

struct Placed {
  const char* cluster;
  std::vector<Card> cards;
};

// Bytes as scenarios count them.
Call call_of(Collective kind, Count bytes, const Machine& machine) {
  return {.kind = kind, .count = bytes / 4 / (counts_blocks(kind) ? machine.cards.size() : 1)};
}

// How the planner would cut the call up, or whole.
void holds(Machine& machine, Collective kind, std::string_view algorithm, Count bytes, double low, double high,
           const std::optional<Slicing>& slicing = {}) {
  const Algorithm* const a = find_algorithm(kind, algorithm);
  REQUIRE(a);
  const Call call = call_of(kind, bytes, machine);
  const Plan plan = machine.plan(*a, call, slicing);
  const double predicted_ns = plan.predicted_ns, simulated_ns = machine.simulated_ns(call, plan);
  INFO(name(kind), " ", algorithm, " on ", machine.cards.size(), " ranks of ", machine.cluster->name(), ", ", bytes,
       " bytes in ", plan.slicing.shares, " chunks on ", plan.slicing.lanes, " channels: predicted ", predicted_ns,
       " ns, simulated ", simulated_ns, " ns");
  CHECK(predicted_ns >= low * simulated_ns);
  CHECK(predicted_ns <= high * simulated_ns);
}

// The time of the planner's choice by that of the fastest algorithm, each cut up as the planner would.
double regret(Machine& machine, Collective kind, Count bytes) {
  const Call call = call_of(kind, bytes, machine);
  const PlannedBy& by = machine.by(call);
  const double chosen = machine.simulated_ns(call, plan(call, machine.view(), by.models, by.tuning));
  double fastest = chosen;
  for (const Algorithm& a : algorithms())
    if (a.kind == kind && !a.variant && a.can(call, machine.view()))
      if (const Plan p = machine.plan(a, call); p.predicted_ns < 4 * chosen)
        fastest = std::min(fastest, machine.simulated_ns(call, p));
  return chosen / fastest;
}

}  // namespace

TEST_CASE("hierarchical algorithms know the fullest of nodes of different sizes, whatever the order of ranks") {
  const char* const dgx = "dgx-h100-superpod-2048";
  for (const Placed& p : {Placed{dgx, on_nodes(8, {2, 5, 6})}, Placed{dgx, on_nodes(8, {8, 8, 8, 1, 7})},
                          Placed{dgx, on_nodes(8, {8, 8, 8, 7, 8, 2})}, Placed{dgx, on_nodes(8, {8, 8, 8, 1}, true)},
                          Placed{"ethernet-cpu", on_nodes(4, {4, 1, 4, 3})}}) {
    Machine machine(p.cluster, p.cards);
    for (const Count bytes : {Count(64) << 10, Count(2) << 20, Count(256) << 20})
      for (const Collective kind : {Collective::allgather, Collective::allreduce}) {
        holds(machine, kind, "hierarchical", bytes, 0.65, 1.6);
        holds(machine, kind, "hierarchical", bytes, 0.65, 1.6, Slicing{});
      }
  }
}

// Each of four ranks has eight blocks to exchange with the other node, by a NIC that two of them share.
TEST_CASE("a pairwise all-to-all keeps the NICs of the smaller node busy") {
  Machine machine("aws-p4de", on_nodes(8, {8, 4}));
  const Count block = 1 << 20;  // of 4 bytes
  const Call call{.kind = Collective::alltoall, .count = block};
  const Plan plan = machine.plan(*find_algorithm(Collective::alltoall, "pairwise"), call);
  const double carried_ns = 16 * 4 * double(block) / 10.45;
  CHECK(machine.simulated_ns(call, plan) < 1.05 * carried_ns);
  CHECK(plan.predicted_ns == doctest::Approx(machine.simulated_ns(call, plan)).epsilon(0.02));
}

// The first rail has more blocks to send than the others, and no NIC of its own.
TEST_CASE("the hierarchical all-gather knows that a node's ranks share its NIC") {
  for (const std::vector<Rank>& sizes : {std::vector<Rank>{4, 3}, {4, 4, 3}, {4, 4, 4, 4, 4, 4, 3}}) {
    Machine machine("ethernet-cpu", on_nodes(4, sizes));
    for (const Count bytes : {Count(256) << 10, Count(4) << 20, Count(64) << 20}) {
      holds(machine, Collective::allgather, "hierarchical", bytes, 0.9, 1.2);
      // On seven nodes the choice loses less than that without knowing it (8 % of 4 MiB), and takes 15 s to play.
      if (sizes.size() <= 3 || test::wide()) CHECK(regret(machine, Collective::allgather, bytes) <= 1.1);
    }
  }
}

TEST_CASE("on nodes of different sizes the choice by closed forms is near the fastest") {
  for (const std::vector<Card>& cards :
       {on_nodes(8, {8, 8, 8, 1, 7}), on_nodes(8, {8, 8, 8, 1}, true), on_nodes(8, {3, 5, 1})}) {
    Machine machine("dgx-h100-superpod-2048", cards);
    for (const Count bytes : {Count(64) << 10, Count(2) << 20, Count(256) << 20})
      for (const Collective kind : {Collective::allgather, Collective::allreduce}) {
        if (!test::wide() && (bytes == 2 << 20) != (kind == Collective::allreduce)) continue;
        INFO(name(kind), " on ", cards.size(), " ranks, ", bytes, " bytes");
        CHECK(regret(machine, kind, bytes) <= 1.3);
      }
  }
}

// The smallest node's one rank leaves one rail, whose member on a node of eight takes what seven others send, and hands
// over to them what comes.
TEST_CASE("the hierarchical all-to-all knows that the fullest node's ranks share few rails") {
  for (const Placed& p :
       {Placed{"dgx-h100-superpod-2048", on_nodes(8, {8, 7, 1})},
        Placed{"deepseek-v3-h800-2048", on_nodes(8, {8, 1, 1})}, Placed{"ethernet-cpu", on_nodes(4, {4, 2, 4, 1})}}) {
    Machine machine(p.cluster, p.cards);
    for (const Count bytes : {Count(64) << 10, Count(16) << 20})
      holds(machine, Collective::alltoall, "hierarchical", bytes, 0.8, 1.15, Slicing{});
    holds(machine, Collective::alltoall, "hierarchical", 64 << 10, 0.8, 1.15);
    CHECK(regret(machine, Collective::alltoall, 64 << 10) <= 1.1);
  }
}

// Rank 0 of a node of its own folds onto rank 1; guests of a rail leave their vectors there.
TEST_CASE("chunks that come to be folded do not share links with those that go back") {
  const Count bytes = 16 << 20;
  Machine machine("dgx-h100-superpod-2048", on_nodes(8, {1, 8}));
  for (const char* const algorithm : {"recursive_doubling", "swing"})
    holds(machine, Collective::allreduce, algorithm, bytes, 0.85, 1.2);
  holds(machine, Collective::allreduce, "hierarchical", bytes, 0.85, 1.15, Slicing{64, 16, 8});
}

// Rank 15's only message goes to a card of its neighbour's node whose rail is another's: both leave by one NIC.
TEST_CASE("a binomial tree's messages up and down may share a NIC") {
  const Slicing slicing{256, 32, 8};
  Machine rails("dgx-h100-superpod-2048", on_nodes(8, {8, 7, 1}));
  holds(rails, Collective::allreduce, "binomial_tree", Count(16) << 20, 0.95, 1.3, slicing);
  Machine shared("ethernet-cpu", on_nodes(4, {4, 1, 3, 4, 1}));
  holds(shared, Collective::allreduce, "binomial_tree", Count(16) << 20, 0.95, 1.3, slicing);
}

// A node of 72 hands round the 72 blocks of its only rail one after the other, more than a window holds.
TEST_CASE("the hierarchical all-gather knows that a last node of one rank leaves the others one rail") {
  for (const std::vector<Rank>& sizes : {std::vector<Rank>{72, 1}, {72, 2}}) {
    Machine machine("gb200-nvl72-576", on_nodes(72, sizes));
    for (const Count bytes : {Count(64) << 10, Count(16) << 20})
      holds(machine, Collective::allgather, "hierarchical", bytes, 0.7, 1.6, Slicing{});
  }
}

TEST_CASE("NVLS tree knows that of nodes of different sizes as many cards are roots as the smallest has") {
  for (const std::vector<Rank>& sizes : {std::vector<Rank>{8, 1}, {8, 2}, {8, 8, 8, 2}}) {
    Machine machine("dgx-h100-superpod-2048", on_nodes(8, sizes));
    for (const Count bytes : {Count(16) << 20, Count(256) << 20})
      holds(machine, Collective::allreduce, "nvls_tree", bytes, 0.75, 1.35);
  }
  // Six roots on each of two nodes share no NIC.
  Machine machine("dgx-h100-superpod-2048", on_nodes(8, {8, 6}));
  holds(machine, Collective::allreduce, "nvls_tree", Count(256) << 20, 0.9, 1.15, Slicing{256, 16, 8});
}

TEST_CASE("the tree of few lanes knows cycles that are as long as what is busiest takes") {
  Machine machine("aws-p4de", on_nodes(8, {8, 4}));
  holds(machine, Collective::allreduce, "tree", Count(256) << 20, 0.85, 1.15, Slicing{512, 4, 8});
}

// Each rank's port carries both of its children's halves, and a lane's receive waits for them.
TEST_CASE("the double binary tree's broadcast knows the one port of a node with one rank") {
  for (const Rank nodes : {3u, 4u, 6u, 9u, 12u, 17u}) {
    Machine machine("dgx-h100-superpod-2048", on_nodes(8, std::vector<Rank>(nodes, 1)));
    for (const Count bytes : {Count(64) << 20, Count(512) << 20}) {
      holds(machine, Collective::broadcast, "double_binary_tree", bytes, 0.65, 1.3);
      holds(machine, Collective::broadcast, "double_binary_tree", bytes, 0.7, 1.3, Slicing{64, 1, 8});
    }
    CHECK(regret(machine, Collective::broadcast, Count(512) << 20) <= 1.35);
  }
}

TEST_CASE("on chips of a torus that are no cuboid forms count what all steps put on the links") {
  for (const Rank ranks : {7u, 24u}) {
    Machine machine("tpu-v4-4096", ranks);
    for (const Count bytes : {Count(4) << 20, Count(64) << 20})
      for (const Slicing& s : {Slicing{1, 1, 8}, {8, 8, 8}, {32, 32, 8}}) {
        holds(machine, Collective::allgather, "pat", bytes, 0.8, 1.15, s);
        holds(machine, Collective::allgather, "bruck", bytes, 0.9, 1.15, s);
        holds(machine, Collective::alltoall, "bruck", bytes, 0.9, 1.15, s);
      }
  }
  Machine machine("tpu-v4-4096", 24);
  holds(machine, Collective::allgather, "hierarchical", 512 << 10, 0.7, 1.7);
}

TEST_CASE("circulant rounds of several channels take no less than a tapered leaf's way up carries") {
  Machine machine("ethernet-cpu", on_nodes(4, std::vector<Rank>(27, 1)));
  for (const Count bytes : {Count(256) << 10, Count(4) << 20}) {
    for (const Count channels : {1u, 4u, 16u})
      holds(machine, Collective::allreduce, "rabenseifner", bytes, 0.7, 1.25, Slicing{channels, channels, 8});
    CHECK(regret(machine, Collective::allreduce, bytes) <= 1.35);  // torus2d is predicted 1.24 times too slow
  }
}

// Off powers of two its distances are none: 5, 3, 2 and 1 of nine ranks. The one rank of a node takes all rounds'
// messages at once from ranks that wait for nobody, and sends on what came first when all has come.
TEST_CASE("recursive halving off powers of two knows its own distances, and who waits behind a narrow port") {
  for (const Placed& p :
       {Placed{"deepseek-v3-h800-2048", on_nodes(8, {8, 1})}, Placed{"ethernet-cpu", on_nodes(4, {4, 4, 3})},
        Placed{"aws-p5", on_nodes(8, {8, 8, 8})}, Placed{"tpu-v4-4096", sim::first_cards(12)}}) {
    Machine machine(p.cluster, p.cards);
    for (const Count bytes : {Count(4) << 10, Count(16) << 20})
      holds(machine, Collective::reduce_scatter, "recursive_halving", bytes, 0.9, 1.2, Slicing{});
  }
}

// Three nodes are one level deep, and five and six two; chunks of channels that begin at once wait for no other.
TEST_CASE("the tree knows how deep it is, and what its channels' first chunks wait for") {
  for (const Rank nodes : {3u, 5u, 6u}) {
    Machine machine("dgx-h100-superpod-2048", on_nodes(8, std::vector<Rank>(nodes, 8)));
    for (const Count bytes : {Count(64) << 10, Count(16) << 20}) {
      holds(machine, Collective::allreduce, "tree", bytes, 0.95, 1.05, Slicing{});
      holds(machine, Collective::allreduce, "tree", bytes, 0.85, 1.15, Slicing{4, 4, 8});
    }
  }
}

// The smaller node takes most, and has few to hand it to.
TEST_CASE("the hierarchical all-gather knows which node is done last") {
  for (const Placed& p : {Placed{"marenostrum5-acc", on_nodes(4, {4, 1})}, Placed{"aws-p5", on_nodes(8, {8, 4})}}) {
    Machine machine(p.cluster, p.cards);
    for (const Count bytes : {Count(1) << 20, Count(16) << 20})
      holds(machine, Collective::allgather, "hierarchical", bytes, 0.9, 1.1, Slicing{});
  }
}

// A block's longest way round is all hops but one, not the mean of as many, and where inside a node it is faster than
// the NIC it waits for that. Four and one have two slow hops of five.
TEST_CASE("a ring's longest way has all slow hops, and leaves out a fast one") {
  for (const Placed& p :
       {Placed{"ethernet-cpu", on_nodes(4, {4, 1})}, Placed{"ethernet-cpu", on_nodes(4, {4, 3})},
        Placed{"ethernet-cpu", on_nodes(4, {4, 4, 3})}, Placed{"marenostrum5-acc", on_nodes(4, {4, 1})}}) {
    Machine machine(p.cluster, p.cards);
    for (const Count bytes : {Count(4) << 10, Count(64) << 10, Count(1) << 20})
      for (const Collective kind : {Collective::allgather, Collective::reduce_scatter})
        holds(machine, kind, "ring", bytes, 0.97, 1.05, Slicing{});
  }
}
