// Closed forms on clusters whose ranks share links, and what choosing by them costs there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "tests/algorithms/by_model.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// A fat tree of nodes with four cards and four NICs each, 16 ports below a leaf, `over` times as wide as its way up.
std::shared_ptr<const Cluster> tree(int over) {
  const std::string text =
      R"({"schema": "gccl/cluster/1", "name": "tree", "parameters": {"card": {"overhead_ns": 500, "combine_GBps": 200,
      "copy_GBps": 400}, "eager_bytes": 65536, "links": {"port": {"bandwidth_GBps": 50, "latency_ns": 500},
      "fast": {"bandwidth_GBps": 300, "latency_ns": 200}}}, "nodes": [{"count": 16, "cards": 4,
      "inside": {"kind": "switch", "link": "fast"}, "nics": {"count": 4, "bus": "fast", "port": "port"}}],
      "fabric": {"kind": "fat_tree", "leaf_size": 16, "link": "port", "oversubscription": )" +
      std::to_string(over) + "}}";
  return parse_cluster(text, "tree");
}

std::vector<Card> cards_of(const Cluster& c) { return first_cards(c.cards()); }

void check_point(Collective kind, std::string_view algorithm, const Cluster& cluster, const std::vector<Card>& cards,
                 Count bytes, double tolerance) {
  const auto p = cost_point(*find_algorithm(kind, algorithm), cluster, cards, bytes / 4);
  REQUIRE(p);
  INFO(name(kind), " ", algorithm, " on ", cluster.name(), ", ", cards.size(), " ranks, ", bytes, " bytes: predicted ",
       p->predicted_ns, " ns, simulated ", p->simulated_ns, " ns");
  CHECK(p->error(0) <= tolerance);
}

// By closed form: simulated time of the cheapest over that of the fastest; 0 where nothing can serve or nothing takes
// time. Calls each(algorithm, point).
template <class Each>
double regret(Collective kind, const Cluster& cluster, const std::vector<Card>& cards, Count bytes, Each each) {
  double cheapest = 1e300, chosen = 0, fastest = 1e300;
  for (const Algorithm& a : algorithms()) {
    if (a.kind != kind || a.variant) continue;
    const auto p = cost_point(a, cluster, cards, bytes / 4);
    if (!p) continue;
    if (p->predicted_ns < cheapest) cheapest = p->predicted_ns, chosen = p->simulated_ns;
    fastest = std::min(fastest, p->simulated_ns);
    each(a, *p);
  }
  return fastest > 1e299 || fastest == 0 ? 0 : chosen / fastest;
}

double regret(Collective kind, const Cluster& cluster, const std::vector<Card>& cards, Count bytes) {
  const double r = regret(kind, cluster, cards, bytes, [](const Algorithm&, const CostPoint&) {});
  REQUIRE(r > 0);
  return r;
}

}  // namespace

// Nodes of four cards (or eight) of which the last is not full. A form takes the slowest message of each step or level,
// and they need not follow each other on one rank.
TEST_CASE("calls whose messages all begin at once take as long as the farthest message") {
  for (const int cards : {2, 3, 4}) {
    const auto cluster = parse_cluster(
        R"({"schema": "gccl/cluster/1", "name": "far", "parameters": {"card": {"overhead_ns": 0, "combine_GBps": 0,
        "copy_GBps": 0}, "eager_bytes": "1GiB", "links": {"near": {"bandwidth_GBps": 300, "latency_ns": 50},
        "bus": {"bandwidth_GBps": 50, "latency_ns": 0}, "cable": {"bandwidth_GBps": 50, "latency_ns": 2500}}},
        "nodes": [{"count": 2, "cards": )" +
            std::to_string(cards) +
            R"(, "inside": {"kind": "switch", "link": "near"}, "nics": {"count": 2, "bus": "bus",
        "port": "cable"}}], "fabric": {"kind": "switch"}})",
        "far");
    check_point(Collective::barrier, "direct", *cluster, cards_of(*cluster), 0, 0.001);
    if (cards > 2) continue;  // more messages than a window holds
    check_point(Collective::allgather, "direct", *cluster, cards_of(*cluster), 64, 0.01);
    check_point(Collective::alltoall, "pairwise", *cluster, cards_of(*cluster), 64, 0.01);
  }
}

TEST_CASE("off powers of two and with a last node that is not full, closed forms and the choice by them hold") {
  double sum = 0, worst = 0;
  int points = 0;
  std::string where;
  for (const char* file : {"ethernet-cpu", "polaris", "leonardo", "custom-fabric", "dgx-a100-superpod"}) {
    const auto c = load_cluster(std::string(GCCL_SOURCE_DIR "/topologies/") + file + ".json");
    for (const Rank ranks : {3u, 5u, 7u, 9u, 13u, 23u}) {
      const std::vector<Card> cards = first_cards(ranks);
      for (std::size_t k = 0; k < collective_names().size(); ++k)
        for (const Count count : {Count(16), Count(1) << 14, Count(1) << 20}) {
          const double r = regret(Collective(k), *c, cards, 4 * count, [&](const Algorithm& a, const CostPoint& p) {
            INFO(name(a.kind), " ", a.name, " on ", file, ", ", ranks, " ranks, ", 4 * count, " bytes: predicted ",
                 p.predicted_ns, " ns, simulated ", p.simulated_ns, " ns");
            CHECK(p.predicted_ns <= 2 * p.simulated_ns);
            CHECK(p.simulated_ns <= 2 * p.predicted_ns);
          });
          if (r == 0) continue;
          ++points;
          sum += r;
          if (r > worst) {
            worst = r;
            where = std::string(collective_names()[k]) + " on " + file + ", " + std::to_string(ranks) + " ranks, " +
                    std::to_string(4 * count) + " bytes";
          }
        }
    }
  }
  MESSAGE("mean regret " << sum / points << ", worst " << worst << ": " << where);
  CHECK(sum / points <= 1.02);
  CHECK_MESSAGE(worst <= 1.6, where);
}

TEST_CASE("closed forms know the taper of a fat tree when all cards send far, and that neighbours do not meet it") {
  const auto full = tree(1), tapered = tree(2);
  const std::vector<Card> cards = cards_of(*tapered);
  for (const auto& c : {full, tapered}) {
    for (const char* a : {"rabenseifner", "recursive_doubling", "hierarchical"})
      for (const Count bytes : {Count(64) << 10, Count(4) << 20, Count(64) << 20})
        check_point(Collective::allreduce, a, *c, cards, bytes, 0.25);
    for (const char* a : {"ring", "torus2d"}) check_point(Collective::allreduce, a, *c, cards, 64 << 20, 0.25);
    check_point(Collective::alltoall, "pairwise", *c, cards, 1 << 20, 0.25);
    check_point(Collective::reduce_scatter, "recursive_halving", *c, cards, 1 << 20, 0.25);
  }
  const CostModel wide = cost_model(*full, cards, 4), narrow = cost_model(*tapered, cards, 4);
  CHECK(narrow.rail.shifts->plain.back().beta_ns_per_byte == doctest::Approx(1 / 25.0));
  CHECK(wide.rail.shifts->plain.back().beta_ns_per_byte == doctest::Approx(1 / 50.0));
  CHECK(narrow.all.shifts->plain[0].beta_ns_per_byte == doctest::Approx(1 / 50.0));
  // Pairs of nodes below one leaf (four nodes) do not use the spine.
  CHECK(narrow.rail.exchange->at(1).beta_ns_per_byte == doctest::Approx(1 / 50.0));
  CHECK(narrow.rail.exchange->at(2).beta_ns_per_byte == doctest::Approx(1 / 25.0));
}

TEST_CASE("closed forms know what a random placement does to a tapered tree") {
  const auto c = tree(2);
  std::vector<Card> cards = cards_of(*c);
  std::shuffle(cards.begin(), cards.end(), std::mt19937_64(7));
  for (const char* a : {"ring", "rabenseifner", "hierarchical"})
    check_point(Collective::allreduce, a, *c, cards, 4 << 20, 0.35);
  CHECK(regret(Collective::allreduce, *c, cards, 4 << 20) <= 1.1);
}

TEST_CASE("closed forms know that a root with many NICs uses all of them") {
  const auto c = load_cluster(GCCL_SOURCE_DIR "/topologies/dgx-h100-superpod-2048.json");
  const std::vector<Card> cards = first_cards(64);
  for (const Count bytes : {Count(1) << 20, Count(16) << 20}) {
    check_point(Collective::broadcast, "direct", *c, cards, bytes, 0.3);
    check_point(Collective::scatter, "linear", *c, cards, bytes, 0.3);
  }
}

// Of 5 ranks the power of two that goes on is ranks 0, 2, 3, 4: their pairs are further apart than in 4 ranks.
TEST_CASE("recursive doubling's and swing's closed forms know how far apart the ranks are that go on") {
  const auto c = load_cluster(GCCL_SOURCE_DIR "/topologies/ethernet-cpu.json");  // four cards and one NIC to a node
  for (const Rank ranks : {5u, 6u, 7u, 12u}) {
    const std::vector<Card> cards = first_cards(ranks);
    check_point(Collective::allgather, "recursive_doubling", *c, cards, (1 << 20) / ranks, 0.7);
    for (const char* a : {"recursive_doubling", "swing"})
      for (const Count bytes : {Count(1) << 10, Count(1) << 20})
        check_point(Collective::allreduce, a, *c, cards, bytes, 0.7);
    CHECK(regret(Collective::allreduce, *c, cards, 1 << 10) <= 1.5);
    CHECK(regret(Collective::allgather, *c, cards, (1 << 20) / ranks / 4 * 4) <= 1.5);
  }
}

TEST_CASE("a ring's closed form on a torus takes the links between neighbours") {
  const auto c = load_cluster(GCCL_SOURCE_DIR "/topologies/tpu-v4-4096.json");
  const std::vector<Card> cards = first_cards(64);
  for (const Count bytes : {Count(64) << 10, Count(16) << 20}) {
    check_point(Collective::allreduce, "ring", *c, cards, bytes, 0.2);
    check_point(Collective::allgather, "ring", *c, cards, bytes / 64, 0.2);
  }
}

TEST_CASE("on a box without NVLink the closed forms see that all pairs share its bridges") {
  const auto c = load_cluster(GCCL_SOURCE_DIR "/topologies/pcie-box.json");
  for (const Count bytes : {Count(1) << 20, Count(64) << 20}) {
    CHECK(regret(Collective::allreduce, *c, cards_of(*c), bytes) <= 1.35);
    CHECK(regret(Collective::reduce_scatter, *c, cards_of(*c), bytes / 8) <= 1.35);
  }
}

// The last ranks of a node must not cross to the next one while the first stay on theirs
// (libgccl/algorithms/parts/turns.hpp).
TEST_CASE("an all-to-all over nodes of four cards keeps its NICs busy, and its closed form says so") {
  for (const char* name : {"leonardo", "marenostrum5-acc", "alps-gh200-2048", "atlas-900-a2"}) {
    const auto c = load_cluster(std::string(GCCL_SOURCE_DIR "/topologies/") + name + ".json");
    const std::vector<Card> cards = first_cards(64);
    for (const Count bytes : {Count(64) << 10, Count(1) << 20}) {
      CAPTURE(name);
      CAPTURE(bytes);
      check_point(Collective::alltoall, "pairwise", *c, cards, bytes, 0.25);
      CHECK(regret(Collective::alltoall, *c, cards, bytes) <= 1.1);
    }
  }
}

// Receiver r gets a block proportional to 1 / (r + 1) from each rank.
// Four of five exchanges are in flight; the fifth has all to itself, and so takes as long as they.
TEST_CASE("where each pair has a link of its own, the last exchange of an all-to-all is waited for once") {
  const auto mesh = load_cluster(GCCL_SOURCE_DIR "/topologies/atlas-900-a2.json");
  for (const Count bytes : {Count(1) << 20, Count(16) << 20})
    check_point(Collective::alltoall, "pairwise", *mesh, first_cards(6), bytes, 0.02);
}

TEST_CASE("the closed forms of an all-to-all-v know that its most popular receiver gets most") {
  static constexpr auto popular = [](const void* first, Rank, Rank to) {
    return *static_cast<const Count*>(first) / (to + 1);
  };
  const Star star(32, kGBps, kLatency, kCosts);
  const auto c = load_cluster(GCCL_SOURCE_DIR "/topologies/dgx-h100-superpod-2048.json");
  for (const Cluster* cluster : {static_cast<const Cluster*>(&star), c.get()})
    for (const Count first : {Count(1) << 18, Count(1) << 22}) {
      const Algorithm& a = *find_algorithm(Collective::alltoallv, "pairwise");
      const Call call{.kind = a.kind, .count = first / 8, .counts = popular, .table = &first};
      const std::vector<Card> cards = first_cards(32);
      const double s = simulated_ns(a, *cluster, 32, call, {}),
                   p = a.cost(call, layout_of(*cluster, cards).view(0), cost_model(*cluster, cards, 4));
      CAPTURE(cluster->name());
      CAPTURE(first);
      CAPTURE(p);
      CAPTURE(s);
      CHECK(std::abs(p - s) <= 0.35 * s);
    }
}

TEST_CASE("on a dragonfly the choice for a reduce-scatter knows the exchanges that share global cables") {
  const auto c = load_cluster(GCCL_SOURCE_DIR "/topologies/alps-gh200-2048.json");
  const std::vector<Card> cards = first_cards(256);
  CHECK(regret(Collective::reduce_scatter, *c, cards, (1 << 20) / 256) <= 1.15);
}
