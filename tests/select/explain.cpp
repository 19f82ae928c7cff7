// Explanations: what a predicted time consists of, and why the others lost.
#include "libgccl/select/explain.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cost/scaled.hpp"
#include "sim/flow/cost_check.hpp"
#include "tests/support/project.hpp"

using namespace gccl;

namespace {

std::shared_ptr<const Cluster> shipped(const std::string& name) {
  return load_cluster(test::kRoot / "topologies" / (name + ".json"));
}

const Candidate& of(const Explanation& e, std::string_view algorithm) {
  for (const Candidate& c : e.candidates)
    if (c.plan.algorithm->name == algorithm) return c;
  throw std::runtime_error("no candidate " + std::string(algorithm));
}

// Shares of a time by kind, by the formulas of a machine without routes: alpha, beta, gamma.
CostStairs flat_machine(double alpha, double beta, double gamma, double start) {
  using What = CostKind::What;
  constexpr double kLess = 1 - CostStairs::kLighter;
  CostModel m;
  m.node = m.net = m.net_all = {alpha, beta};
  m.combine_ns_per_byte = gamma;
  m.protocol.operation_ns = start;
  m.element_bytes = 4;
  CostStairs s;
  s.kinds = {{What::bandwidth, "node"}, {What::reduction}, {What::latency}, {What::start_up}};
  s.models = {{m}};
  for (const CostScale by : {CostScale{.inside = kLess, .between = kLess}, CostScale{.reduction = kLess},
                             CostScale{.latency = kLess}, CostScale{.start_up = kLess}})
    s.models.push_back({scaled(s.models.back()[0], by)});
  return s;
}

}  // namespace

TEST_CASE("the parts of a ring's time are those of its paper: Patarasuk, Yuan 2009") {
  const double alpha = 1500, beta = 0.02, gamma = 0.005, start = 4000, n = 12, bytes = 4.0 * 1200;
  const Layout layout = Layout::flat(Rank(n));
  const Explanation e = explain({.kind = Collective::allreduce, .count = 1200}, layout.view(0),
                                flat_machine(alpha, beta, gamma, start), {});
  const Candidate& ring = of(e, "ring");
  REQUIRE(ring.parts_ns.size() == 4);
  CHECK(ring.parts_ns[0] == doctest::Approx(2 * (n - 1) / n * bytes * beta).epsilon(1e-6));
  CHECK(ring.parts_ns[1] == doctest::Approx((n - 1) / n * bytes * gamma).epsilon(1e-6));
  CHECK(ring.parts_ns[2] == doctest::Approx(2 * (n - 1) * alpha).epsilon(1e-6));
  CHECK(ring.parts_ns[3] == doctest::Approx(start).epsilon(1e-6));
  CHECK(ring.path.messages == doctest::Approx(2 * (n - 1)));
  CHECK(ring.path.bytes == doctest::Approx(2 * (n - 1) / n * bytes));
}

TEST_CASE("the parts of every candidate add up to its predicted time, and none is negative") {
  for (const char* name : {"dgx-h100-superpod-2048", "polaris", "ethernet-cpu", "mixed", "host", "tpu-v4-4096",
                           "gb200-nvl72-576", "pcie-box"}) {
    const auto cluster = shipped(name);
    for (const Rank ranks : {1u, 2u, 7u, 24u, 64u}) {
      if (ranks > cluster->cards()) continue;
      const std::vector<Card> cards = sim::first_cards(ranks);
      const Layout layout = layout_of(*cluster, cards);
      const CostStairs stairs = cost_stairs(*cluster, cards, 4);
      const Tuning tuning = planned_by(*cluster, cards, 4).tuning;
      for (std::size_t k = 0; k < collective_names().size(); ++k) {
        if (has_counts(Collective(k))) continue;
        for (const Count count : {Count(0), Count(1), Count(5000), Count(1) << 24}) {
          CAPTURE(name);
          CAPTURE(ranks);
          CAPTURE(collective_names()[k]);
          CAPTURE(count);
          const Call call{.kind = Collective(k), .count = count};
          const Explanation e = explain(call, layout.view(0), stairs, tuning);
          REQUIRE(!e.candidates.empty());
          CHECK(e.candidates[0].plan.algorithm == e.plan.algorithm);
          for (const Candidate& c : e.candidates) {
            CAPTURE(c.plan.algorithm->name);
            const double sum = std::accumulate(c.parts_ns.begin(), c.parts_ns.end(), 0.0);
            CHECK(sum == doctest::Approx(c.predicted_ns).epsilon(1e-6));
            CHECK(c.predicted_ns == predicted(*c.plan.algorithm, call, layout.view(0),
                                              stairs.machine()[c.plan.protocol], c.plan.slicing, tuning));
            for (const Cost part : c.parts_ns) CHECK(part >= 0);
            CHECK(!c.why.empty());
          }
        }
      }
    }
  }
}

TEST_CASE("a ring of short calls loses by latency: 2 (n - 1) messages one after the other against log2 n") {
  const auto cluster = shipped("dgx-h100-superpod-2048");
  const std::vector<Card> cards = sim::first_cards(512);
  const Layout layout = layout_of(*cluster, cards);
  const Explanation e = explain({.kind = Collective::allreduce, .count = 64}, layout.view(0),
                                cost_stairs(*cluster, cards, 4), planned_by(*cluster, cards, 4).tuning);
  CHECK(e.plan.algorithm->name == "recursive_doubling");
  const std::string& why = of(e, "ring").why;
  CAPTURE(why);
  CHECK(why.find("slower: latency takes") != std::string::npos);
  CHECK(why.find("(1022 messages one after the other, 9)") != std::string::npos);
  CHECK(why.find("bandwidth") == std::string::npos);
  CHECK(e.decided.starts_with("the lowest predicted time of "));
}

TEST_CASE("recursive doubling of long calls loses by bandwidth: log2 n times the vector against 2 (n - 1) / n") {
  const Layout layout = Layout::flat(64);
  const Explanation e = explain({.kind = Collective::allreduce, .count = Count(1) << 26}, layout.view(0),
                                flat_machine(1000, 0.02, 0, 0), {});
  const std::string& why = of(e, "recursive_doubling").why;
  CAPTURE(why);
  CHECK(why.find("slower: bandwidth (node) takes") != std::string::npos);
  CHECK(why.find("it sends 6 times the call's bytes one after the other") != std::string::npos);
  CHECK(why.find(" 1.97 times)") != std::string::npos);
  CHECK(why.find("latency takes") == std::string::npos);
}

TEST_CASE("what was not compared says why: ranks, switches, protocols") {
  const auto cluster = shipped("dgx-h100-superpod-2048");
  const std::vector<Card> cards = sim::first_cards(64);
  const Layout layout = layout_of(*cluster, cards);
  const Explanation e = explain({.kind = Collective::allreduce, .count = Count(1) << 28}, layout.view(0),
                                cost_stairs(*cluster, cards, 4), planned_by(*cluster, cards, 4).tuning);
  const auto why = [&](std::string_view algorithm, std::string_view protocol) {
    for (const Excluded& x : e.excluded)
      if (x.algorithm->name == algorithm &&
          (x.protocol ? cluster->protocols()[*x.protocol].name : std::string()) == protocol)
        return x.why;
    return std::string("compared");
  };
  CHECK(why("direct", "") == "cannot serve this call: it is for at most 32 ranks");
  CHECK(why("nvls_tree", "LL").find("LL") != std::string::npos);
  const auto box = shipped("pcie-box");
  const std::vector<Card> eight = sim::first_cards(8);
  const Layout flat = layout_of(*box, eight);
  const Explanation none = explain({.kind = Collective::allreduce, .count = 1024}, flat.view(0),
                                   cost_stairs(*box, eight, 4), planned_by(*box, eight, 4).tuning);
  const auto nvls = std::ranges::find_if(none.excluded, [](const Excluded& x) { return x.algorithm->name == "nvls"; });
  REQUIRE(nvls != none.excluded.end());
  CHECK(nvls->why.starts_with("needs switches that multicast and reduce"));
}

TEST_CASE("where measurements of a transport decide, the explanation says so and blames no prediction") {
  const auto host = shipped("host");
  const std::vector<Card> cards = sim::first_cards(4);
  const Layout layout = layout_of(*host, cards);
  const PlannedBy by = planned_by(*host, cards, 4);
  const CostStairs stairs = cost_stairs(*host, cards, 4);
  bool preferred = false;
  for (std::size_t k = 0; k < collective_names().size(); ++k) {
    if (has_counts(Collective(k))) continue;
    for (Count count = 1; count < Count(1) << 24; count *= 8) {
      const Call call{.kind = Collective(k), .count = count};
      const Explanation e = explain(call, layout.view(0), stairs, by.tuning);
      const bool holds = std::ranges::any_of(by.tuning.preferences, [&](const Tuning::Preference& p) {
        return p.algorithm == e.plan.algorithm && p.holds(call, 4, double(count) * 4);
      });
      preferred = preferred || holds;
      CHECK(e.decided.starts_with("measurements of the transport prefer") == holds);
      if (!holds) continue;
      for (std::size_t i = 1; i < e.candidates.size(); ++i)
        if (e.candidates[i].predicted_ns < e.candidates[0].predicted_ns * (1 - 1e-9))
          CHECK(e.candidates[i].why.find("prediction did not decide") != std::string::npos);
    }
  }
  CHECK(preferred);
}

TEST_CASE("of a list of which nothing can serve the call the explanation names no algorithm that the list excludes") {
  const auto cluster = shipped("dgx-h100-superpod-2048");
  const std::vector<Card> cards = sim::first_cards(64);
  const Layout layout = layout_of(*cluster, cards);
  std::string others;  // all but "direct", which is for 32 ranks
  for (const Algorithm& a : algorithms())
    if (a.kind == Collective::allreduce && !a.variant && a.name != "direct")
      others += (others.empty() ? "" : ",") + std::string(a.name);
  Authorities authorities;
  REQUIRE(AlgorithmLists::parse("allreduce:^" + others, &authorities.lists).ok());
  const Explanation e =
      explain({.kind = Collective::allreduce, .count = 1 << 14}, layout.view(0), cost_stairs(*cluster, cards, 4),
              planned_by(*cluster, cards, 4).tuning, authorities.on(64, 8));
  CHECK(e.decided.starts_with("what GCCL_ALGO allows cannot serve this call; "));
}

TEST_CASE("a cross-over is where the plan changes, to the element") {
  const auto cluster = shipped("polaris");
  const std::vector<Card> cards = sim::first_cards(64);
  const Layout layout = layout_of(*cluster, cards);
  const PlannedBy by = planned_by(*cluster, cards, 4);
  const Call call{.kind = Collective::allgather};
  const auto at = [&](Count count) {
    Call c = call;
    c.count = count;
    const Plan p = plan(c, layout.view(0), by.models, by.tuning);
    return std::pair(p.algorithm, p.protocol);
  };
  const auto all = crossovers(call, layout.view(0), by.models, by.tuning, Count(1) << 22);
  REQUIRE(all.size() > 2);
  CHECK(all[0].count == 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].count);
    CHECK(at(all[i].count) == std::pair(all[i].plan.algorithm, all[i].plan.protocol));
    if (i > 0) CHECK(at(all[i].count - 1) != at(all[i].count));
    if (i > 0) CHECK(all[i].count > all[i - 1].count);
  }
}

TEST_CASE("the size that is asked for is planned as the cross-overs around it say") {
  // What holds for less than an octave is not looked for elsewhere: swing, rabenseifner and swing again.
  const auto cluster = shipped("polaris");
  const std::vector<Card> cards = sim::first_cards(16);
  const Layout layout = layout_of(*cluster, cards);
  const PlannedBy by = planned_by(*cluster, cards, 4);
  for (Count count = 1500; count < 11'800; count = count * 21 / 20) {
    CAPTURE(count);
    const Call call{.kind = Collective::allreduce, .count = count};
    const Plan asked = plan(call, layout.view(0), by.models, by.tuning);
    const auto all = crossovers(call, layout.view(0), by.models, by.tuning, Count(1) << 22);
    const auto after = std::ranges::find_if(all, [&](const Crossover& c) { return c.count > count; });
    REQUIRE(after != all.begin());
    CHECK(after[-1].plan.algorithm == asked.algorithm);
    CHECK(after[-1].plan.protocol == asked.protocol);
  }
}

TEST_CASE("ranges of a table and of GCCL_ALGO that are far shorter than a doubling are among the cross-overs") {
  const auto cluster = shipped("dgx-h100-superpod-2048");
  const std::vector<Card> cards = sim::first_cards(64);
  const Layout layout = layout_of(*cluster, cards);
  const PlannedBy by = planned_by(*cluster, cards, 2);
  const Algorithm* const ring = find_algorithm(Collective::allreduce, "ring");
  const auto rings = [&](const Authorities& a, Collective kind) {
    std::vector<std::pair<Count, Count>> all;  // from, to
    const auto found =
        crossovers({.kind = kind, .count = 1 << 19}, layout.view(0), by.models, by.tuning, Count(1) << 27, a.on(64, 8));
    for (std::size_t i = 0; i + 1 < found.size(); ++i)
      if (found[i].plan.algorithm->name == "ring") all.emplace_back(found[i].count, found[i + 1].count);
    return all;
  };
  using Ranges = std::vector<std::pair<Count, Count>>;
  REQUIRE(rings({}, Collective::allreduce).empty());
  Authorities lists, table;
  REQUIRE(AlgorithmLists::parse("allreduce:70000-70201:ring", &lists.lists).ok());
  CHECK(rings(lists, Collective::allreduce) == Ranges{{35000, 35101}});
  auto entries = std::make_shared<TuningTable>();
  entries->entries = {{.from_bytes = 70001, .to_bytes = 70200, .algorithm = ring, .protocol = "LL"},
                      {.from_bytes = 100 << 20, .to_bytes = 101 << 20, .algorithm = ring, .protocol = "Simple"}};
  table.table = entries;
  CHECK(rings(table, Collective::allreduce) == Ranges{{35001, 35100}, {50 << 20, 101 << 19}});
}

TEST_CASE("a machine with half of the latency saves half of the latency's part while the plan stays") {
  const auto cluster = shipped("ethernet-cpu");
  const std::vector<Card> cards = sim::first_cards(16);
  const Layout layout = layout_of(*cluster, cards);
  const CostStairs stairs = cost_stairs(*cluster, cards, 4);
  const Tuning tuning = planned_by(*cluster, cards, 4).tuning;
  const Call call{.kind = Collective::allreduce, .count = 2};
  const Explanation e = explain(call, layout.view(0), stairs, tuning);
  for (const Better& b : better_machines(*cluster, cards, 4)) {
    if (b.what != "half the latency of messages") continue;
    const Plan p = plan(call, layout.view(0), b.models, tuning);
    REQUIRE(p.algorithm == e.plan.algorithm);
    double latency = 0;
    for (std::size_t i = 0; i < stairs.kinds.size(); ++i)
      if (stairs.kinds[i].what == CostKind::What::latency) latency = e.candidates[0].parts_ns[i];
    CHECK(latency > 0);
    CHECK(predicted(*p.algorithm, call, layout.view(0), b.models[p.protocol], p.slicing, tuning) ==
          doctest::Approx(e.candidates[0].predicted_ns - latency / 2));
    return;
  }
  FAIL("no such machine");
}

// Who waits for whom in an exchange may get worse on faster links.
TEST_CASE("a machine with faster links makes no exchange slower") {
  for (const char* name : {"lumi-g", "atlas-900-a2", "leonardo", "alps-gh200-2048"}) {
    CAPTURE(name);
    const auto cluster = shipped(name);
    const std::vector<Card> cards = sim::first_cards(13);
    const Layout layout = layout_of(*cluster, cards);
    const PlannedBy now = planned_by(*cluster, cards, 4);
    for (const Count bytes : {Count(128) << 10, Count(64) << 20}) {
      const Call call{.kind = Collective::alltoall, .count = bytes / 4 / 13};
      const Algorithm& pairwise = *find_algorithm(call.kind, "pairwise");
      const auto takes = [&](const CostModel& m) {
        return predicted(pairwise, call, layout.view(0), m, {}, now.tuning);
      };
      for (const Better& b : better_machines(*cluster, cards, 4)) {
        CAPTURE(b.what);
        CHECK(takes(b.models[0]) <= takes(now.models[0]) * (1 + 1e-9));
      }
    }
  }
}

// Its links join the cards of one node as they join those of two, and there are no others.
TEST_CASE("a torus of cards has no network between nodes to make faster") {
  const auto links_made_faster = [](const char* name, std::size_t ranks) {
    std::vector<std::string> what;
    for (const Better& b : better_machines(*shipped(name), sim::first_cards(ranks), 4))
      if (b.what.ends_with("twice as fast") && !b.what.starts_with("reductions")) what.push_back(b.what);
    return what;
  };
  CHECK(links_made_faster("tpu-v4-4096", 64) == std::vector<std::string>{"links between cards twice as fast"});
  CHECK(links_made_faster("leonardo", 64) ==
        std::vector<std::string>{"links inside nodes twice as fast", "the network between nodes twice as fast"});
}
