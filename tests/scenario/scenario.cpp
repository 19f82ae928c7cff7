// Scenarios: reading sizes, groups, placements and counts, and planning of points.
#include "tests/support/scenario.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "libgccl/schedule/definition.hpp"
#include "sim/scenario/read/sizes.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

TEST_CASE("sizes are a number, a list or a range") {
  const auto sizes = [](const Json& j) { return read_sizes(json::Node::parse(j.dump(), "f")); };
  CHECK(sizes("1KiB") == std::vector<Count>{1024});
  CHECK(sizes({8, "1MB"}) == std::vector<Count>{8, 1000000});
  CHECK(sizes({{"from", 8}, {"to", 64}}) == std::vector<Count>{8, 16, 32, 64});
  CHECK(sizes({{"from", 8}, {"to", 100}, {"factor", 4}}) == std::vector<Count>{8, 32});
  CHECK(sizes({{"from", 1}, {"to", 3}, {"factor", 1.2}}) ==
        std::vector<Count>{1, 2, 3});  // 1 1.2 1.44 1.73 2.07 2.49 2.99
  CHECK_THROWS_AS(sizes({8, 8}), json::InputError);
  CHECK_THROWS_AS(sizes(Json::array()), json::InputError);
  CHECK_THROWS_AS(sizes({{"from", 0}, {"to", 3}}), json::InputError);
  CHECK_THROWS_AS(sizes({{"from", 9}, {"to", 3}}), json::InputError);
  CHECK_THROWS_AS(sizes({{"from", 1}, {"to", "1PB"}, {"factor", 1.01}}), json::InputError);
  CHECK_THROWS_AS(sizes(-8), json::InputError);
}

TEST_CASE("elements are rounded up, and bytes count as nccl-tests counts them") {
  CHECK(elements(Collective::allreduce, 9, 100, 4) == 3);
  CHECK(total_bytes(Collective::allreduce, 3, 100, 4) == 12);
  CHECK(elements(Collective::allgather, 9, 100, 4) == 1);
  CHECK(total_bytes(Collective::allgather, 1, 100, 4) == 400);
  CHECK(elements(Collective::alltoall, 0, 100, 4) == 0);
  CHECK(elements(Collective::barrier, 64, 100, 4) == 0);
  CHECK(bus_factor(Collective::allreduce, 4) == doctest::Approx(1.5));
  CHECK(bus_factor(Collective::reduce_scatter, 4) == doctest::Approx(0.75));
  CHECK(bus_factor(Collective::broadcast, 4) == 1);
  CHECK(bus_factor(Collective::barrier, 4) == 0);
}

TEST_CASE("groups cut the world as they say") {
  const auto members = [](const Json& groups) {
    const Campaign plan = plan_of(with(kRing, {{"groups", groups}}));
    std::vector<std::vector<Rank>> all;
    for (const SimulatedCommunicator& c : *plan.points[0].part().communicators) all.push_back(c.members);
    return all;
  };
  using Lists = std::vector<std::vector<Rank>>;
  CHECK(members({{"size", 4}}) == Lists{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(members({{"stride", 2}}) == Lists{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(members({{"size", 2}, {"stride", 2}}) == Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(members({{5, 1}, {2, 0, 7}}) == Lists{{5, 1}, {2, 0, 7}});
  CHECK(complaint(with(kRing, {{"groups", {{"size", 3}}}})).starts_with("/runs/0/groups: 8 ranks cannot be cut"));
  CHECK(complaint(with(kRing, {{"groups", {{"stride", 5}}}})).starts_with("/runs/0/groups: 8 ranks cannot be dealt"));
  CHECK(complaint(with(kRing, {{"groups", {{1, 2}, {2}}}})) == "/runs/0/groups/1/0: rank 2 appears twice");
  CHECK(complaint(with(kRing, {{"groups", {{1, 8}}}})).find("expected one below 8") != std::string::npos);
}

TEST_CASE("placements put each rank on a card of its own") {
  const auto cards = [](const Json& placement, Rank ranks = 16) {
    return plan_of(
               Json::array({kRing}),
               {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", ranks}, {"placement", placement}})
        .worlds[0]
        .cards;
  };
  CHECK(cards("packed", 3) == std::vector<Card>{0, 1, 2});
  CHECK(cards("round_robin", 3) == std::vector<Card>{0, 8, 16});
  CHECK(cards("round_robin", 257)[256] == 1);
  CHECK(cards({{"cards", {9, 3, 5}}}, 3) == std::vector<Card>{9, 3, 5});
  const auto drawn = cards({{"random", 7}}, 2048);
  CHECK(std::set<Card>(drawn.begin(), drawn.end()).size() == 2048);
  CHECK(drawn == cards({{"random", 7}}, 2048));
  CHECK(drawn != cards({{"random", 8}}, 2048));
  CHECK(complaint(Json::array({kRing}), {{"placement", 2}})
            .find("/placement: found 2, expected \"packed\", \"round_robin\", \"random\" or an object") !=
        std::string::npos);
  CHECK(complaint(Json::array({kRing}), {{"placement", {{"cards", {1, 8}}}}}).find("has only 8 cards") !=
        std::string::npos);
  CHECK(complaint(Json::array({kRing}), {{"ranks", 3}, {"placement", {{"cards", {1, 2}}}}})
            .find("lists 2 cards for 3 ranks") != std::string::npos);
}

TEST_CASE("distributions of counts keep the mean, and symmetry in place") {
  const Rank n = 50;
  for (const char* kind : {"uniform", "random", "skewed"}) {
    CAPTURE(kind);
    const Distribution d = read_distribution(json::Node::parse(Json{{"distribution", kind}}.dump(), "f"));
    const CountTable table(d, 1000, n, false, 5);
    double total = 0, most = 0;
    for (Rank from = 0; from < n; ++from)
      for (Rank to = 0; to < n; ++to) total += double(table(from, to)), most = std::max(most, double(table(from, to)));
    CHECK(total / n / n == doctest::Approx(1000).epsilon(0.05));
    CHECK(most == doctest::Approx(std::string(kind) == "uniform"  ? 1000
                                  : std::string(kind) == "random" ? 2000
                                                                  : 11113)
                      .epsilon(0.01));
  }
  for (const Distribution::Kind kind : {Distribution::Kind::random, Distribution::Kind::skewed})
    for (const double max : {1.0, 1.3, 4.0}) {
      CAPTURE(int(kind));
      CAPTURE(max);
      const CountTable table({.kind = kind, .seed = {}, .max = max}, 100000, n, false, 5);
      double total = 0;
      std::vector<double> seen;
      for (Rank from = 0; from < n; ++from)
        for (Rank to = 0; to < n; ++to) total += double(table(from, to)), seen.push_back(double(table(from, to)));
      CHECK(total / n / n == doctest::Approx(100000).epsilon(0.01));
      std::ranges::sort(seen, std::greater<>());
      CHECK(seen[0] <= std::min(max, kind == Distribution::Kind::random ? 2 : max) * 100000 + 1);
      // Those that are not as long as may be are as popular to each other as without the limit: the last two of 50.
      if (kind == Distribution::Kind::skewed && max > 1)
        CHECK(seen[seen.size() - 1] / seen[seen.size() - 51] == doctest::Approx(49. / 50).epsilon(1e-3));
    }
  const CountTable symmetric({.kind = Distribution::Kind::random, .seed = {}}, 1000, n, true, 5);
  for (Rank from = 0; from < n; ++from)
    for (Rank to = 0; to < n; ++to) CHECK(symmetric(from, to) == symmetric(to, from));
}

TEST_CASE("points come by run, world, engine, size and algorithm") {
  const Campaign plan = plan_of({{{"collective", "allreduce"},
                                  {"bytes", {8, 16}},
                                  {"algorithms", {"ring", "binomial_tree"}},
                                  {"engine", {"simgrid", "model"}}},
                                 {{"collective", "barrier"}, {"algorithms", "tree"}}},
                                {{"ranks", {8, 2}}});
  std::vector<std::string> found;
  for (const Point& p : plan.points)
    found.push_back(fmt::format("{} {} {} {} {}", p.run, plan.worlds[p.world].ranks(), name(p.engine), p.part().bytes,
                                p.part().algorithm()));
  std::vector<std::string> expected;
  for (const char* ranks : {"8", "2"})
    for (const char* engine : {"simgrid", "model"})
      for (const char* bytes : {"8", "16"})
        for (const char* algorithm : {"ring", "binomial_tree"})
          expected.push_back(fmt::format("0 {} {} {} {}", ranks, engine, bytes, algorithm));
  expected.insert(expected.end(), {"1 8 model 0 tree", "1 2 model 0 tree"});
  CHECK(found == expected);
}

TEST_CASE("runs are alike that differ only in what may be compared") {
  const Json whole_box = {{"collective", "allreduce"}, {"bytes", 64}, {"algorithms", "ring"}};
  Json cut = whole_box, apart = whole_box, slowed = whole_box;
  cut.update({{"label", "cut"}, {"bytes", 128}, {"algorithms", "tree"}, {"chunks", 4}, {"engine", "flow"}});
  cut.update({{"expect", {{"max_time_us", 1e6}}}});
  apart["groups"] = {{"size", 4}};
  slowed["stragglers"] = {{{"rank", 1}, {"slowdown", 5}}};
  const Campaign plan = plan_of({whole_box, apart, cut, slowed, apart});
  std::vector<std::size_t> like;
  for (const ScenarioRun& run : plan.scenario->runs) like.push_back(run.like);
  CHECK(like == std::vector<std::size_t>{0, 1, 0, 3, 1});
  for (const Json& head : row_heads(plan)) CHECK(head["like_run"] == like[head["run"].get<std::size_t>()]);
}

TEST_CASE("\"all\" takes every fitting algorithm once, \"auto\" marks one of them") {
  std::size_t rows = 0;
  for (const Algorithm& a : algorithms()) rows += a.kind == Collective::allreduce && !a.variant && !a.in_switch;
  const Campaign plan = plan_of(with(kRing, {{"algorithms", {"auto", "ring", "all"}}}));
  CHECK(plan.points.size() == rows);
  CHECK(std::count_if(plan.points.begin(), plan.points.end(), [](const Point& p) { return p.automatic; }) == 1);
  CHECK(plan_of(with(kRing, {{"algorithms", "auto"}})).points.size() == 1);
  CHECK(plan_of(with(kRing, {{"algorithms", "auto"}})).points[0].automatic);
}

TEST_CASE("by a protocol that switches do not sum, \"all\" leaves out what needs them, and naming it is wrong input") {
  const Json more = {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 8}};
  const auto nvls = [&](const char* protocol) {
    const Json run = {{"collective", "allreduce"}, {"bytes", 64}, {"algorithms", "all"}, {"protocol", protocol}};
    std::size_t rows = 0;
    for (const Point& p : plan_of(Json::array({run}), more).points) rows += p.part().algorithm().starts_with("nvls");
    return rows;
  };
  CHECK(nvls("LL") == 0);
  CHECK(nvls("LL128") == 0);
  CHECK(nvls("Simple") == 2);
  CHECK(nvls("auto") == 2);
  const Json named = {{"collective", "allreduce"}, {"bytes", 64}, {"algorithms", {"ring", "nvls"}}, {"protocol", "LL"}};
  CHECK(complaint(Json::array({named}), more) ==
        "/runs/0/algorithms/1: \"nvls\" leaves summing to switches, which do not sum by protocol \"LL\" (its "
        "\"in_switch\" is false); expected another protocol, or \"auto\"");
  // A group of one rank has no switch, and nothing to sum.
  const Json alone = {{"collective", "allreduce"},
                      {"bytes", 64},
                      {"algorithms", "nvls"},
                      {"protocol", "Simple"},
                      {"groups", {{0, 1, 2, 3, 4, 5, 6}, {7}}}};
  CHECK(plan_of(Json::array({alone}), more).points.size() == 1);
}

TEST_CASE("a protocol that is for calls inside one node is wrong input for others, and nothing chooses it for them") {
  const auto run = [](const char* protocol, const char* planner) {
    return Json::array({{{"collective", "allreduce"}, {"bytes", 64}, {"protocol", protocol}, {"planner", planner}}});
  };
  const auto chosen = [](const Campaign& c) {
    return c.worlds[0].cluster->protocols()[c.points[0].part().plan().protocol].name;
  };
  const Json one = {{"cluster", "../topologies/polaris.json"}, {"ranks", 4}};
  Json two = one;
  two["ranks"] = 8;
  CHECK(chosen(plan_of(run("LL128", "gccl"), one)) == "LL128");
  CHECK(
      complaint(run("LL128", "gccl"), two) ==
      "/runs/0/protocol: \"LL128\" is for calls inside one node (its \"network\" is false in polaris); expected one of "
      "auto, LL, Simple");
  for (const char* planner : {"gccl", "nccl"})
    for (Count bytes = 64; bytes <= 1 << 26; bytes *= 2) {
      Json calls = run("auto", planner);
      calls[0]["bytes"] = bytes;
      CAPTURE(bytes);
      CHECK(chosen(plan_of(calls, two)) != "LL128");
    }
}

TEST_CASE("sizes that round to the same elements are simulated once") {
  const Campaign plan = plan_of({{{"collective", "allgather"},
                                  {"bytes", {1, 32, 33}},
                                  {"algorithms", "ring"},
                                  {"expect", {{"bytes", 32}, {"max_time_us", 1}}}}});
  REQUIRE(plan.points.size() == 2);  // 8 ranks of one f32 are 32 bytes
  CHECK(plan.points[0].asked == std::vector<Count>{1, 32});
  CHECK(plan.points[1].asked == std::vector<Count>{33});
}

TEST_CASE("another engine replaces the scenario's, and expectations about others are left out") {
  const Json run = with(kRing, {{"engine", {"model", "simgrid"}},
                                {"expect",
                                 {{{"engine", "model"}, {"max_time_us", 1}},
                                  {{"engine", "simgrid"}, {"max_time_us", 1}},
                                  {{"max_time_us", 1}}}}});
  const Campaign plan = make_campaign(scenario_of(whole(run)), {.engine = Engine::simgrid, .seed = 9});
  REQUIRE(plan.points.size() == 1);
  CHECK(plan.points[0].engine == Engine::simgrid);
  CHECK(plan.scenario->runs[0].expectations.size() == 2);
  CHECK(plan.seed == 9);
}
