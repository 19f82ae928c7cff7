// What the planner leaves out to be quick changes nothing, and needs no memory.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "libgccl/algorithms/table.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/select/plan.hpp"
#include "tests/support/project.hpp"
#include "tests/support/short_memory.hpp"

using namespace gccl;

namespace {

struct Machine {
  std::shared_ptr<const Cluster> cluster;
  std::vector<Card> cards;
  Layout layout;
  PlannedBy by;

  Machine(const char* name, Rank ranks)
      : Machine(load_cluster(test::kRoot / "topologies" / (std::string(name) + ".json")), ranks) {}
  Machine(std::shared_ptr<const Cluster> of, Rank ranks)
      : cluster(std::move(of)),
        cards(ranks),
        layout((std::iota(cards.begin(), cards.end(), 0), layout_of(*cluster, cards))),
        by(planned_by(*cluster, cards, 4)) {}
};

int asked = 0;  // closed forms of calls, since it was last set

template <const Algorithm& a>
Algorithm watched() {
  Algorithm w = a;
  w.cost = [](const Call& c, const View& v, const CostModel& m) {
    ++asked;
    return a.cost(c, v, m);
  };
  return w;
}

// The fewest chunks within 1 % of the best of all powers of two, each predicted on its own: plan.hpp.
Plan searched_all(const Algorithm& a, const Call& call, const View& view, const CostModel& m, const Tuning& tuning) {
  const double bytes = m.bytes(double(call.count)) * (counts_blocks(call.kind) ? view.all.size : 1);
  const Count most = a.runs ? 1 : std::min(kChunksMax, Count(std::max(1.0, bytes / (4 << 10))));
  std::vector<Slicing> all;
  const auto add = [&](Count first) {
    for (Count lanes = first; lanes <= std::min({most, tuning.channels_max, m.protocol.channels_max}); lanes *= 2)
      for (Count shares = lanes; shares <= most; shares *= 2) all.push_back({shares, lanes, tuning.window});
  };
  add(1);
  if (a.channels && m.rings && !std::has_single_bit(m.rings->back().channels)) add(m.rings->back().channels);
  Cost best = INFINITY;
  for (const Slicing& s : all) best = std::min(best, predicted(a, call, view, m, s, tuning));
  Plan p;
  for (const Slicing& s : all)
    if (const Cost ns = predicted(a, call, view, m, s, tuning);
        ns <= best * 1.01 && (!p.algorithm || s.shares < p.slicing.shares))
      p = {.algorithm = &a, .slicing = s, .predicted_ns = ns};
  return p;
}

}  // namespace

TEST_CASE("what bounds leave out would not have been chosen: the plan is that of all slicings of all algorithms") {
  std::size_t cut_up = 0;
  for (const auto& [name, ranks] :
       {std::pair("polaris", 24u), {"dgx-h100-superpod-2048", 64u}, {"gb200-nvl72-576", 100u}, {"pcie-box", 5u}}) {
    const Machine machine(name, ranks);
    const View view = machine.layout.view(0);
    for (const Collective kind :
         {Collective::allreduce, Collective::allgather, Collective::reduce, Collective::broadcast})
      for (const Count count : {Count(0), Count(1), Count(3000), Count(1) << 17, Count(5) << 20, Count(1) << 28}) {
        const Call call{.kind = kind, .count = counts_blocks(kind) ? std::max<Count>(1, count / ranks) : count};
        Cost best = INFINITY, second = INFINITY;
        Plan due;
        for (const Algorithm& a : algorithms()) {
          if (a.kind != kind || a.variant || !a.can(call, view)) continue;
          if (a.in_switch && !machine.by.models[0].node_switch) continue;
          Plan own;
          own.predicted_ns = INFINITY;
          for (const CostModel& m : machine.by.models)
            if (protocol_serves(m, a, call, view)) {
              const Plan p = searched_all(a, call, view, m, machine.by.tuning);
              if (p.predicted_ns < own.predicted_ns * (1 - kTie)) own = p;
            }
          second = std::min(second, std::max(best, own.predicted_ns));
          if (own.predicted_ns < best * (1 - kTie)) due = own;
          best = std::min(best, own.predicted_ns);
        }
        const auto of = name;  // clang 14 captures no parts of a pair
        CAPTURE(of);
        CAPTURE(gccl::name(kind));
        CAPTURE(count);
        const Plan p = plan(call, view, machine.by.models, machine.by.tuning);
        INFO(p.algorithm->name, " ", p.slicing.shares, "/", p.slicing.lanes, " and due ", due.algorithm->name, " ",
             due.slicing.shares, "/", due.slicing.lanes);
        CHECK(p.algorithm == due.algorithm);
        CHECK(p.slicing == due.slicing);
        CHECK(p.predicted_ns == due.predicted_ns);
        CHECK(p.second_ns == doctest::Approx(second).epsilon(1e-8));
        cut_up += p.slicing.shares > 1;
      }
  }
  CHECK(cut_up > 20);
}

// Where taking a message costs more than sending one, PAT's latency is that of a bunch of blocks, and a broadcast's
// root handles nothing that arrives.
TEST_CASE("bounds leave out no algorithm that is the fastest as one chunk, whatever messages cost") {
  const auto cluster = [](unsigned cards, unsigned receive_overhead_ns) {
    return parse_cluster(fmt::format(R"({{"schema": "gccl/cluster/1", "name": "one",
                         "parameters": {{"name": "p", "eager_bytes": 0,
                                         "card": {{"overhead_ns": 0, "receive_overhead_ns": {},
                                                   "combine_GBps": 100, "copy_GBps": 1}}}},
                         "nodes": [{{"count": 1, "cards": {},
                                     "inside": {{"kind": "switch",
                                                 "link": {{"bandwidth_GBps": 12, "latency_ns": 300}}}}}}]}})",
                                     receive_overhead_ns, cards),
                         "one");
  };
  for (const unsigned ranks : {3u, 5u, 8u, 13u})
    for (const unsigned receive_overhead_ns : {0u, 1000u}) {
      const Machine machine(cluster(ranks, receive_overhead_ns), ranks);
      const View view = machine.layout.view(0);
      for (std::size_t kind = 0; kind < std::size(kDefinitions); ++kind)
        for (const Count count : {1u, 14u, 43u, 3000u}) {
          if (has_counts(Collective(kind))) continue;
          const Call call{.kind = Collective(kind), .count = count};
          CAPTURE(name(call.kind));
          CAPTURE(ranks);
          CAPTURE(count);
          const Plan p = plan(call, view, machine.by.models, machine.by.tuning);
          REQUIRE(p.algorithm);
          for (const Algorithm& a : algorithms()) {
            if (a.kind != call.kind || a.variant || a.in_switch || !a.cost || !a.can(call, view)) continue;
            const Cost whole = predicted(a, call, view, machine.by.models[0], {}, machine.by.tuning);
            CHECK_MESSAGE(p.predicted_ns <= whole * 1.0101, p.algorithm->name, " although ", a.name);
          }
        }
    }
}

// A form takes 0.1 to 1 us: the planner's time is how often it asks for one.
TEST_CASE("a call that is too short for chunks asks each closed form once for each protocol") {
  const Machine machine("dgx-h100-superpod-2048", 64);
  const std::vector<Algorithm> table{watched<allreduce_ring>(), watched<allreduce_recursive_doubling>(),
                                     watched<allreduce_rabenseifner>(), watched<allreduce_swing>()};
  REQUIRE(machine.by.models.size() == 3);
  const auto forms = [&](Count count) {
    asked = 0;
    const Call call{.kind = Collective::allreduce, .count = count};
    CHECK(plan(call, machine.layout.view(0), machine.by.models, machine.by.tuning, {}, table).algorithm);
    return asked;
  };
  CHECK(forms(2) == 3 * 4);
  CHECK(forms(1000) == 3 * 4);
}

TEST_CASE("a lookup, a plan by a table and a plan by a model whose loads are worked out ask for no memory") {
  const Machine machine("polaris", 16);
  const View view = machine.layout.view(0);
  TuningTable table{.file = "t.json",
                    .name = "t",
                    .machine = {.cluster = "polaris", .nodes = 4, .cards_per_node = 4},
                    .entries = {{.to_bytes = 4096, .algorithm = find_algorithm(Collective::allreduce, "ring")},
                                {.from_bytes = 4096,
                                 .algorithm = find_algorithm(Collective::allreduce, "swing"),
                                 .protocol = "LL",
                                 .chunks = 4,
                                 .channels = 2}}};
  Authorities authorities;
  authorities.table = std::make_shared<const TuningTable>(table);
  authorities = authorities.on(16, view.nodes);
  const auto plan_all = [&] {
    std::size_t plans = 0;
    for (std::size_t kind = 0; kind < std::size(kDefinitions); ++kind)
      for (Count count = 1; !has_counts(Collective(kind)) && count <= Count(1) << 24; count *= 16) {
        const Call call{.kind = Collective(kind), .count = count};
        plans += plan(call, view, machine.by.models, machine.by.tuning).algorithm != nullptr;
        plans += plan(call, view, machine.by.models, machine.by.tuning, authorities).algorithm != nullptr;
        plans += authorities.entries.find(Collective(kind), count) != nullptr;
      }
    return plans;
  };
  plan_all();  // works them out
  denied = {.left = 0, .lasting = true};
  const std::size_t plans = plan_all();
  const bool asked = denied.met;
  denied = {};
  CHECK_FALSE(asked);
  CHECK(plans > 100);
}

// Neighbours' all-gather sends each chunk of a block by itself: a rank handles n - 1 of them for each.
TEST_CASE("a prediction is not below what handling the messages of all chunks takes") {
  for (const Rank ranks : {2u, 4u, 6u}) {
    const Machine machine("ethernet-cpu", ranks);
    const CostModel& m = machine.by.models[0];
    const Algorithm* const a = find_algorithm(Collective::allgather, "neighbor_exchange");
    REQUIRE(a);
    REQUIRE(m.overhead_ns > 0);
    const Call call{.kind = Collective::allgather, .count = (Count(256) << 10) / 4 / ranks};
    for (const Count lanes : {8u, 32u}) {
      CAPTURE(ranks);
      CAPTURE(lanes);
      CHECK(predicted(*a, call, machine.layout.view(0), m, {32, lanes, 8}, {}) >= 32 * (ranks - 1) * m.overhead_ns);
    }
  }
}

// Its first two steps go one way after the other, whatever the channels: four ranks have no others, and wires of their
// own to both neighbours.
TEST_CASE("channels of neighbours' all-gather are in step at first") {
  const Machine machine("lumi-g", 4);
  const Algorithm* const a = find_algorithm(Collective::allgather, "neighbor_exchange");
  REQUIRE(a);
  const Call call{.kind = Collective::allgather, .count = Count(4) << 20};
  const View view = machine.layout.view(0);
  for (const CostModel& m : machine.by.models)
    for (const Count lanes : {2u, 8u})
      CHECK(predicted(*a, call, view, m, {lanes, lanes, 8}, {}) >= 0.95 * predicted(*a, call, view, m, {}, {}));
}
