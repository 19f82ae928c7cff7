// The planner: overrides, preferences of a transport, and the lowest prediction among the rows that fit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "libgccl/base/splitmix.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/transport_model.hpp"
#include "libgccl/schedule/layout.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/flow/cost_check.hpp"
#include "tests/cluster/described.hpp"

using namespace gccl;

namespace {

Schedule nothing(Call, View, Share) { co_return; }
bool even_ranks(const Call&, const View& v) { return v.all.size % 2 == 0; }
Cost flat(const Call&, const View&, const CostModel&) { return 100; }
Cost by_bytes(const Call& c, const View&, const CostModel& m) { return 10 + m.bytes(double(c.count)); }
Cost free_of_charge(const Call&, const View&, const CostModel&) { return 0; }

constexpr Algorithm kTable[] = {
    {.name = "flat", .kind = Collective::allreduce, .make = nothing, .cost = flat},
    {.name = "by_bytes", .kind = Collective::allreduce, .make = nothing, .cost = by_bytes},
    {.name = "same_as_flat", .kind = Collective::allreduce, .make = nothing, .cost = flat},
    {.name = "even_only", .kind = Collective::allreduce, .make = nothing, .fits = even_ranks, .cost = free_of_charge},
    {.name = "unpriced", .kind = Collective::allreduce, .make = nothing},
    {.name = "variant", .kind = Collective::allreduce, .make = nothing, .cost = free_of_charge, .variant = true},
    {.name = "elsewhere", .kind = Collective::barrier, .make = nothing, .cost = free_of_charge},
};

std::string_view chosen(Count count, Rank ranks) {
  const Layout layout = Layout::flat(ranks);
  CostModel model;
  model.element_bytes = 4;
  const Call call{.kind = Collective::allreduce, .count = count};
  const Algorithm* a = plan(call, layout.view(0), model, {}, {}, kTable).algorithm;
  return a ? a->name : "none";
}

}  // namespace

TEST_CASE("the cheapest closed form wins, and changes with the size") {
  CHECK(chosen(1, 3) == "by_bytes");
  CHECK(chosen(22, 3) == "by_bytes");  // 98 < 100
  CHECK(chosen(1000, 3) == "flat");
}

TEST_CASE("on a tie the earlier row of the table wins") {
  CHECK(chosen(1000, 3) == "flat");  // and not same_as_flat
}

TEST_CASE("what cannot serve the call, has no closed form or is a variant is never chosen") {
  CHECK(chosen(1000, 4) == "even_only");
  CHECK(chosen(1000, 3) != "even_only");
}

TEST_CASE("without any row there is no choice") {
  const Layout layout = Layout::flat(2);
  CHECK(plan({.kind = Collective::scatter, .count = 1}, layout.view(0), CostModel{}, {}, {}, kTable).algorithm ==
        nullptr);
}

TEST_CASE("from the real table the choice is the minimum over all rows, for every collective") {
  CostModel model;
  model.node = {1000, 0.01}, model.net = {5000, 0.02}, model.net_all = {5000, 0.1}, model.element_bytes = 4;
  static constexpr auto kCounts = [](const void*, Rank from, Rank to) { return Count(from + to); };
  for (std::size_t k = 0; k < collective_names().size(); ++k)
    for (const Rank ranks : {1u, 2u, 7u, 64u})
      for (const Count count : {Count(0), Count(1), Count(1000), Count(1) << 26}) {
        CAPTURE(collective_names()[k]);
        CAPTURE(ranks);
        CAPTURE(count);
        const Layout layout = Layout::regular(ranks, 8);
        const Call call{.kind = Collective(k), .count = count, .counts = kCounts};
        if (without_elements(call)) continue;
        double least = INFINITY;
        for (const Algorithm& a : algorithms())
          if (a.kind == call.kind && !a.variant && a.cost && a.can(call, layout.view(0)))
            least = std::min(least, a.cost(call, layout.view(0), model));
        const Algorithm* a = plan(call, layout.view(0), model).algorithm;
        REQUIRE(a != nullptr);
        CHECK(a->cost(call, layout.view(0), model) == least);
      }
}

namespace {

const Algorithm* named(Collective kind, std::string_view name) { return find_algorithm(kind, name); }

Plan planned(Count bytes, Rank ranks, const Tuning& tuning, const Overrides& overrides = {}) {
  static constexpr auto kind = Collective::allreduce;
  CostModel model;
  model.node = {1000, 0.1}, model.net = {5000, 1}, model.net_all = {5000, 1};
  return plan({.kind = kind, .count = bytes}, Layout::regular(ranks, 1).view(0), model, tuning, {.named = overrides});
}

}  // namespace

TEST_CASE("the first preference that holds decides, and one that cannot serve the call does not") {
  Tuning tuning;
  tuning.preferences = {{.algorithm = named(Collective::broadcast, "chain")},
                        {.algorithm = named(Collective::allreduce, "direct"), .incast_bytes_max = 7000},
                        {.algorithm = named(Collective::allreduce, "swing"), .ranks_max = 8, .bytes_min = 5000},
                        {.algorithm = named(Collective::allreduce, "binomial_tree"), .ranks_max = 4}};
  CHECK(planned(1000, 8, tuning).algorithm->name == "direct");
  CHECK(planned(5000, 8, tuning).algorithm->name == "swing");
  CHECK(planned(2500, 4, tuning).algorithm->name == "binomial_tree");
  tuning.preferences = {{.algorithm = named(Collective::allreduce, "direct")},  // for few ranks alone
                        {.algorithm = named(Collective::allreduce, "swing")}};
  CHECK(planned(1, 8, tuning).algorithm->name == "direct");
  CHECK(planned(1, 1000, tuning).algorithm->name == "swing");
}

TEST_CASE("an override decides before that, unless it cannot serve the call") {
  Tuning tuning;
  tuning.preferences = {{.algorithm = named(Collective::allreduce, "swing")}};
  Overrides ring, direct;
  REQUIRE(Overrides::parse("allreduce=ring", &ring).ok());
  REQUIRE(Overrides::parse(" allreduce = direct , ", &direct).ok());
  CHECK(direct.text() == "allreduce=direct");
  CHECK(planned(1000, 8, tuning, ring).algorithm->name == "ring");
  const Plan p = planned(1000, 1000, tuning, direct);
  CHECK(p.algorithm->name == "swing");
  REQUIRE(p.refused != nullptr);
  CHECK(p.refused->name == "direct");
}

TEST_CASE("more than a switch keeps goes round instead") {
  const std::string_view best = planned(1 << 20, 6, {}).algorithm->name;
  Tuning tuning;
  tuning.incast = {{.algorithm = named(Collective::allreduce, best),
                    .fallback = named(Collective::allreduce, "binomial_tree"),
                    .bytes_max = 1 << 20}};
  CHECK(planned(1 << 20, 6, tuning).algorithm->name == best);
  CHECK(planned((1 << 20) + 1, 6, tuning).algorithm->name == "binomial_tree");

  // Without a fallback: the cheapest of the others, or nothing else where there is none.
  tuning.incast[0].fallback = nullptr;
  CHECK(planned(1 << 20, 6, tuning).algorithm->name == best);
  const Plan other = planned((1 << 20) + 1, 6, tuning);
  CHECK(other.algorithm->name != best);
  for (const Algorithm& a : algorithms()) {
    Overrides only;
    if (a.kind != Collective::allreduce || a.variant || a.in_switch || a.name == best) continue;
    REQUIRE(Overrides::parse(fmt::format("allreduce={}", a.name), &only).ok());
    CHECK(other.predicted_ns <= planned((1 << 20) + 1, 6, tuning, only).predicted_ns);
  }
  tuning.incast.clear();
  for (const Algorithm& a : algorithms())
    tuning.incast.push_back({.algorithm = &a, .fallback = nullptr, .bytes_max = -1});
  CHECK(planned(1 << 20, 6, tuning).algorithm->name == best);
}

TEST_CASE("of a reduce-scatter-v the rank with the largest block is what a switch keeps too little for") {
  CostModel model;
  model.node = {1000, 0.1}, model.net = {5000, 1}, model.net_all = {5000, 1};
  const View view = Layout::regular(8, 1).view(0);
  const auto best = [&](std::vector<Count> blocks, const Tuning& tuning) {
    Call call{.kind = Collective::reduce_scatterv, .count = 1 << 10};  // the mean block
    call.counts = [](const void* table, Rank, Rank to) { return (*static_cast<const std::vector<Count>*>(table))[to]; };
    call.table = &blocks;
    return plan(call, view, model, tuning, {}).algorithm->name;
  };
  const std::vector<Count> even(8, 1 << 10), one{1 << 13, 0, 0, 0, 0, 0, 0, 0};
  Tuning tuning;
  tuning.incast = {
      {.algorithm = named(Collective::reduce_scatterv, "pairwise"), .fallback = nullptr, .bytes_max = 7 << 10}};
  REQUIRE(best(one, {}) == "pairwise");
  CHECK(best(even, tuning) == best(even, {}));
  CHECK(best(one, tuning) == "ring");
}

TEST_CASE("a call without elements takes its start alone, by every algorithm") {
  CostModel model;
  model.node = {1000, 0.1}, model.net = {5000, 1}, model.net_all = {5000, 1};
  model.protocol.operation_ns = 77;
  const View view = Layout::regular(12, 4).view(0);
  for (const Algorithm& a : algorithms()) {
    const Call call{.kind = a.kind};
    if (a.cost && a.can(call, view) && a.kind != Collective::barrier && !has_counts(a.kind))
      CHECK_MESSAGE(predicted(a, call, view, model, {}) == 77, a.name);
  }
}

TEST_CASE("no plan has more channels than what carries it out, by all authorities") {
  TuningTable table;
  table.entries = {{.algorithm = named(Collective::allreduce, "ring"), .chunks = 16, .channels = 16}};
  Authorities authorities;
  authorities.entries = PreparedTable(table, 8, 8);
  const Layout layout = Layout::regular(8, 1);
  const auto lanes = [&](const Tuning& tuning) {
    CostModel model;
    model.node = {1000, 0.1}, model.net = {5000, 1}, model.net_all = {5000, 1};
    return plan({.kind = Collective::allreduce, .count = 1 << 24}, layout.view(0), model, tuning, authorities)
        .slicing.lanes;
  };
  Tuning tuning;
  CHECK(lanes(tuning) == 16);
  tuning.channels_limit = 4;
  CHECK(lanes(tuning) == 4);
  authorities = {};
  tuning.channels_max = 64;
  tuning.chunks = {{.kind = Collective::allreduce, .bytes = 1000}};
  CHECK(lanes(tuning) == 4);
  tuning.search = true;
  CHECK(lanes(tuning) <= 4);
}

TEST_CASE("chunks are as long as the first entry that matches has it, over no more channels than there are chunks") {
  Tuning tuning;
  tuning.channels_max = 4, tuning.window = 5;
  tuning.preferences = {{.algorithm = named(Collective::allreduce, "ring")}};
  tuning.chunks = {{.kind = Collective::allreduce, .algorithm = named(Collective::allreduce, "swing"), .bytes = 10},
                   {.kind = Collective::allreduce, .ranks_min = 9, .bytes = 0},
                   {.kind = Collective::allreduce, .bytes = 1000}};
  const Slicing few = planned(3500, 8, tuning).slicing, many = planned(9000, 8, tuning).slicing;
  CHECK(few == Slicing{3, 3, 5});
  CHECK(many == Slicing{9, 4, 5});
  CHECK(planned(9000, 9, tuning).slicing == Slicing{1, 1, 5});
  CHECK(planned(9000, 1, tuning).slicing == Slicing{1, 1, 5});
  CHECK(planned(1u << 31, 8, tuning).slicing.shares == 4096);
}

// By hand: a chain of n ranks takes (n - 1) hops for the first chunk, and each further one an interval more.
TEST_CASE("a chain's prediction is its pipeline's") {
  CostModel model;
  model.net = model.net_all = model.node = {1000, 2};
  const Algorithm& chain = *named(Collective::broadcast, "chain");
  const Layout layout = Layout::regular(5, 1);
  const Call call{.kind = Collective::broadcast, .count = 8000};
  const View v = layout.view(0);
  CHECK(predicted(chain, call, v, model, {1, 1, 8}) == doctest::Approx(4 * (1000 + 2 * 8000)));
  CHECK(predicted(chain, call, v, model, {8, 1, 8}) == doctest::Approx(4 * (1000 + 2 * 1000) + 7 * 2 * 1000));
  Tuning tuning;
  tuning.rates = {{.algorithm = &chain, .fraction = 0.5}};
  CHECK(predicted(chain, call, v, model, {8, 1, 8}, tuning) == doctest::Approx(4 * 3000 + 7 * 2 * 2000));
  tuning.chunks_overlap = false;
  CHECK(predicted(chain, call, v, model, {8, 1, 8}, tuning) == predicted(chain, call, v, model, {1, 1, 8}));
  CHECK(std::isnan(predicted(kTable[4], call, v, model, {1, 1, 8})));
}

// By hand: 4 hops of 10 + 2 ns a byte plus a launch of 100; or 4 hops of 1000 + 0.5 ns a byte plus one of 300.
TEST_CASE("the protocol with the lowest prediction is taken, of those for calls of that length") {
  CostModel models[2];
  models[0].net = models[0].net_all = models[0].node = {10, 2};
  models[0].protocol = {.name = "short", .operation_ns = 100};
  models[1].net = models[1].net_all = models[1].node = {1000, 0.5};
  models[1].protocol = {.name = "long", .operation_ns = 300};
  const Algorithm& chain = *named(Collective::broadcast, "chain");
  const Layout layout = Layout::regular(5, 1);
  const auto planned = [&](Count count) {
    return plan_of(chain, {.kind = Collective::broadcast, .count = count}, layout.view(0), models, {});
  };
  CHECK(predicted(chain, {.kind = Collective::broadcast, .count = 50}, layout.view(0), models[0], {1, 1, 8}) ==
        100 + 4 * (10 + 2 * 50));
  // 4 x 990 + 200 = 4 x 1.5 x count at 693.3 bytes.
  CHECK(planned(693).protocol == 0);
  CHECK(planned(694).protocol == 1);
  models[0].protocol.bytes_max = 600;
  CHECK(planned(600).protocol == 0);
  CHECK(planned(601).protocol == 1);
  CHECK(plan({.kind = Collective::broadcast, .count = 8}, layout.view(0), models).protocol == 0);
  CHECK(plan({.kind = Collective::broadcast, .count = 1 << 20}, layout.view(0), models).protocol == 1);
  // What one channel sends at most: 4 hops of 1000 + 10 ns a byte.
  models[1].protocol.channel_GBps = 0.1;
  CHECK(predicted(chain, {.kind = Collective::broadcast, .count = 1000}, layout.view(0), models[1], {1, 1, 8}) ==
        doctest::Approx(300 + 4 * (1000 + 0.5 + 10 * 1000)));
}

// Four cards behind a switch that multicasts and reduces.
TEST_CASE("an algorithm of steps for a switch has a protocol whose messages the switch can carry") {
  CostModel models[2];
  for (CostModel& m : models) m.net = m.net_all = m.node = {1000, 1}, m.node_switch = {1000, 1};
  models[0].protocol = {.name = "flags", .in_switch = false};
  models[1].protocol = {.name = "plain", .operation_ns = 5000};
  const Layout layout = Layout::regular(4, 4);
  const Call call{.kind = Collective::allreduce, .count = 64};
  const auto protocol = [&](std::string_view algorithm) {
    return plan_of(*named(Collective::allreduce, algorithm), call, layout.view(0), models, {}).protocol;
  };
  CHECK(protocol("ring") == 0);
  CHECK(protocol("nvls") == 1);
  models[0].protocol.in_switch = true;
  CHECK(protocol("nvls") == 0);
  models[0].protocol.in_switch = false;
  for (CostModel& m : models) m.node_switch.reset();  // plain messages
  CHECK(protocol("nvls") == 0);
  // Where it is stated, there is no choice.
  CHECK(plan_of(*named(Collective::allreduce, "nvls"), call, layout.view(0), CostModels(models, 1), {}).protocol == 0);
}

TEST_CASE("calls on several nodes have a protocol that the network carries") {
  CostModel models[2];
  for (CostModel& m : models) m.net = m.net_all = m.node = {1000, 1};
  models[0].protocol = {.name = "flags", .between_nodes = false};
  models[1].protocol = {.name = "plain", .operation_ns = 5000};
  const Call call{.kind = Collective::allreduce, .count = 64};
  const Layout node = Layout::regular(4, 4), nodes = Layout::regular(8, 4);
  CHECK(plan(call, node.view(0), models).protocol == 0);
  CHECK(plan(call, nodes.view(0), models).protocol == 1);
  models[0].protocol.between_nodes = true;
  CHECK(plan(call, nodes.view(0), models).protocol == 0);
}

// Each row's prediction, off by up to two units in the last place: what another compiler's rounding may do to it.
template <std::size_t I>
Cost rounded_otherwise(const Call& c, const View& v, const CostModel& m) {
  const Cost cost = algorithms()[I].cost(c, v, m);
  const std::uint64_t h = (c.count * 31 + v.all.size) * splitmix::kGolden ^ I * 0xd1342543de82ef95;
  return cost * (1 + double(int(h >> 61) - 4) * 1.2e-16);
}
template <std::size_t... I>
std::vector<Algorithm> rounded_otherwise(std::index_sequence<I...>) {
  std::vector<Algorithm> rows(algorithms().begin(), algorithms().end());
  using Formula = decltype(Algorithm::cost);
  const auto put = [&](std::size_t i, Formula cost) {
    if (i < rows.size() && rows[i].cost) rows[i].cost = cost;
  };
  (put(I, rounded_otherwise<I>), ...);
  return rows;
}

TEST_CASE("rounding decides nothing: ranks whose libraries another compiler made plan alike") {
  constexpr std::size_t kRows = 128;
  REQUIRE(algorithms().size() <= kRows);
  const std::vector<Algorithm> rows = rounded_otherwise(std::make_index_sequence<kRows>());
  int differ = 0, plans = 0;
  for (const char* transport : {"tcp", "tcp-loopback", "shared-memory", "mpi"})
    for (Rank ranks = 2; ranks <= 33; ++ranks)
      for (Rank per_node : {Rank(1), Rank(4), ranks}) {
        const Layout layout = Layout::regular(ranks, per_node);
        const TransportModel& t = transport_model(transport);
        const CostModel costs = t.costs_on(layout.view(0), 4);
        for (const Algorithm& a : algorithms())
          for (Count count : {1, 3, 10, 129, 4097, 17506, 31292, 100003, 3333333}) {
            const Call call{.kind = a.kind, .count = count, .counts = [](const void*, Rank, Rank) { return Count(9); }};
            const Plan one = plan(call, layout.view(0), costs, t.tuning);
            const Plan other = plan(call, layout.view(0), costs, t.tuning, {}, rows);
            REQUIRE(one.algorithm);
            differ += one.algorithm->name != other.algorithm->name || one.slicing.shares != other.slicing.shares;
            ++plans;
          }
      }
  CHECK(plans > 100000);
  CHECK(differ == 0);
}

TEST_CASE("over TCP no reduction of long blocks is planned by an algorithm in which all ranks send to one at once") {
  for (const std::string_view transport : {"tcp", "tcp-loopback"})
    for (const Rank ranks : {3, 4, 8, 13}) {
      const Layout layout = Layout::regular(ranks, transport == "tcp" ? 1 : ranks);
      const TransportModel& t = transport_model(transport);
      for (const Collective kind : {Collective::allreduce, Collective::reduce_scatter, Collective::reduce_scatterv}) {
        const Count count = 1 << 20;
        const Call call{.kind = kind,
                        .count = count,
                        .counts = [](const void* each, Rank, Rank) { return *static_cast<const Count*>(each); },
                        .table = &count};
        const Plan p = plan(call, layout.view(0), t.costs_on(layout.view(0), 4), t.tuning);
        CAPTURE(transport);
        CAPTURE(ranks);
        CAPTURE(name(kind));
        CHECK(p.algorithm->name != "pairwise");
        CHECK(p.algorithm->name != "direct");
      }
    }
}

// Nodes of 8 cards with a NIC of 40 GB/s each. Chunks of few elements of each block were taken for their latencies.
TEST_CASE("on so many cards that their routes are not looked at, no call is faster than its nodes' NICs") {
  const auto cluster = test::make(test::switched(8192, 8, 8), R"({"kind": "switch"})");
  const std::vector<Card> cards = sim::first_cards(65536);
  const Layout layout = layout_of(*cluster, cards);
  const PlannedBy by = planned_by(*cluster, cards, 4);
  const double ranks = 65536, others = ranks - 8, node_GBps = 8 * 40;
  for (const Count count : {2, 64, 4096}) {  // of a block
    CAPTURE(count);
    const double block = 4.0 * double(count);
    const auto takes = [&](Collective kind) {
      return plan({.kind = kind, .count = count}, layout.view(0), by.models, by.tuning).predicted_ns;
    };
    CHECK(takes(Collective::alltoall) >= 8 * others * block / node_GBps);
    CHECK(takes(Collective::allgather) >= others * block / node_GBps);
    CHECK(takes(Collective::reduce_scatter) >= others * block / node_GBps);
  }
}
