// Scenarios: reading, and planning of points.
#include "tests/support/scenario.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "libgccl/schedule/definition.hpp"
#include "sim/scenario/judge/check.hpp"
#include "sim/scenario/read/sizes.hpp"
#include "tests/support/json_schema.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// The refusal without the file.
std::string complaint(const Json& runs, const Json& more = Json::object()) {
  const std::string text = refusal(runs, more);
  const std::size_t at = text.find("test.json: ");
  return at == std::string::npos ? text : text.substr(at + 11);
}

}  // namespace

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

TEST_CASE("mistakes are reported with their place") {
  const std::pair<Json, std::string> kCases[] = {
      {with(kRing, {{"byts", 8}}), "/runs/0: unknown key \"byts\"; did you mean \"bytes\"?"},
      {with(kRing, {{"bytes", true}}), "/runs/0/bytes: found true"},
      {with(kRing, {{"groups", 4}}), "/runs/0/groups: found 4, expected an object, or lists of ranks"},
      {with(kRing, {{"bytes", -5}}), "/runs/0/bytes: found -5"},
      {with(kRing, {{"collective", "allreduc"}}),
       "/runs/0/collective: found \"allreduc\"; did you mean \"allreduce\"?"},
      {with(kRing, {{"algorithms", "rng"}}),
       "/runs/0/algorithms: allreduce has no algorithm \"rng\"; did you mean \"ring\"?"},
      {with(kRing, {{"algorithms", {"ring", "bruck"}}}),
       "/runs/0/algorithms/1: allreduce has no algorithm \"bruck\" (it is one of a"},
      {with(kRing, {{"algorithms", {"ring", "ring"}}}), "/runs/0/algorithms/1: algorithm \"ring\" appears twice"},
      {with(kRing, {{"algorithms", Json::array()}}), "/runs/0/algorithms: has 0 elements"},
      {with(kRing, {{"dtype", "f31"}}), "/runs/0/dtype: found \"f31\"; did you mean \"f3"},
      {with(kRing, {{"root", 0}}), "/runs/0/root: allreduce has no \"root\""},
      {with(kRing, {{"counts", {{"distribution", "random"}}}}), "/runs/0/counts: allreduce has no \"counts\""},
      {with(kRing, {{"lanes", 4}, {"chunks", 2}}), "/runs/0/lanes: 4 channels for 2 chunks"},
      {with(kRing, {{"channels", 4}, {"shares", 2}}), "/runs/0/channels: 4 channels for 2 chunks"},
      {with(kRing, {{"chunks", 4}, {"shares", 4}}), "/runs/0/shares: is \"chunks\" by its old name"},
      {with(kRing, {{"window", 33}}), "/runs/0/window: found 33"},
      {with(kRing, {{"protocol", "LL128"}}),
       "/runs/0/protocol: pcie-box has no protocol \"LL128\"; expected one of auto, LL, Simple"},
      {with(kRing, {{"engine", "simgrd"}}), "/runs/0/engine: found \"simgrd\"; did you mean \"simgrid\"?"},
      {with(kRing, {{"engine", {"model", "model"}}}), "/runs/0/engine/1: \"model\" appears twice"},
      {with(kRing, {{"algorithm", "ring"}}), "/runs/0: unknown key \"algorithm\"; did you mean \"algorithms\"?"},
      {with(kRing, {{"stragglers", {{{"rank", 8}}}}}), "/runs/0/stragglers/0/rank: found rank 8, expected one below 8"},
      {with(kRing, {{"stragglers", {{{"rank", 1}, {"start_us", -1}}}}}), "/runs/0/stragglers/0/start_us: found -1"},
      {with(kRing, {{"payload", "verify"}, {"bytes", "8GiB"}}), "/runs/0: checking the payload"},
      {with(kRing, {{"shares", 4096}, {"bytes", "1GiB"}, {"sequence", Json::array()}}), "/runs/0: unknown key"},
      {{{{"collective", "broadcast"}, {"bytes", 8}, {"root", 8}}},
       "/runs/0/root: found rank 8, but the communicator has only 8 ranks"},
      {{{{"collective", "barrier"}, {"bytes", 8}}}, "/runs/0/bytes: a barrier moves no bytes"},
      {{{{"collective", "allreduce"}}}, "/runs/0: key \"bytes\" is missing"},
      {{{{"bytes", 8}}}, "/runs/0: key \"collective\" is missing"},
      {{{{"sequence", Json::array()}}}, "/runs/0/sequence: has 0 elements"},
      {{{{"sequence", {{{"collective", "allreduce"}, {"bytes", {8, 16}}}}}}}, "/runs/0/sequence/0/bytes: found [8,16]"},
      {{{{"sequence", {{{"collective", "allreduce"}, {"bytes", 8}, {"algorithm", "all"}}}}}},
       "/runs/0/sequence/0/algorithm: allreduce has no"},
      {{{{"sequence", {{{"collective", "barrier"}}}}, {"bytes", 8}}}, "/runs/0: unknown key \"bytes\""},
      {{{{"collective", "alltoallv"}, {"bytes", 8}, {"in_place", true}, {"counts", {{"distribution", "skewed"}}}}},
       "/runs/0/counts: skewed counts"},
      {Json::array(), "/runs: has 0 elements"},
      {with(kRing, {{"expect", Json::object()}}), "/runs/0/expect: states no check"},
      {with(kRing, {{"expect", {{"fastest", "swing"}}}}),
       "/runs/0/expect/fastest: \"swing\" is not among the algorithms of this run"},
      {with(kRing, {{"expect", {{"fastest", "ring"}, {"bytes", 8}}}}),
       "/runs/0/expect/bytes: 8 B is not a size of this run"},
      {with(kRing, {{"expect", {{"max_time_us", 1}, {"ranks", 4}}}}),
       "/runs/0/expect/ranks: found 4; expected one of 8"},
      {with(kRing, {{"expect", {{"max_time_us", 1}, {"cluster", "x"}}}}),
       "/runs/0/expect/cluster: found \"x\"; expected one of "},
      {with(kRing, {{"expect", {{"max_time_us", 1e308}}}}),
       "/runs/0/expect/max_time_us: found 1e+308, expected a time below 9e9 s (285 years)"},
      {with(kRing, {{"expect", {{"max_time_us", -1}}}}),
       "/runs/0/expect/max_time_us: found -1, expected a time of at least 0"},
      {with(kRing, {{"stragglers", {{{"rank", 1}, {"start_us", 9.3e15}}}}}),
       "/runs/0/stragglers/0/start_us: found 9.3e+15, expected a time below"},
      {with(kRing, {{"dtype", ""}}), "/runs/0/dtype: found \"\"; expected one of i8"},
      {with(kRing, {{"algorithms", {"all", "all"}}}), "/runs/0/algorithms/1: \"all\" appears twice"},
      {with(kRing, {{"algorithms", {"auto", "ring", "auto"}}}), "/runs/0/algorithms/2: \"auto\" appears twice"},
      {with(kRing, {{"expect", {{"max_time_us", 1}, {"engine", "simgrid"}}}}),
       "/runs/0/expect/engine: engine \"simgrid\" is not used"},
      {with(kRing, {{"expect", {{"correct", true}}}}), "/runs/0/expect/correct: the run does not check"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"algorithm", "best"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of: compares the automatic"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of: expected exactly one of \"algorithm\", \"run\" and \"result\""},
      {with(kRing, {{"expect", {{"within_percent_of", {{"run", "a"}, {"result", "b"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of: expected exactly one of"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"run", "a"}}}}}}),
       "/runs/0/expect/within_percent_of: key \"percent\" is missing"},
      {with(kRing, {{"label", "healthy"}, {"expect", {{"within_percent_of", {{"run", "helthy"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of/run: no run has the label \"helthy\"; did you mean \"healthy\"?"},
      {with(kRing, {{"label", "healthy"}, {"expect", {{"within_percent_of", {{"run", "healthy"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of/run: is the label of this run itself"},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    with(kRing, {{"label", "x"}})[0], with(kRing, {{"label", "x"}})[0]}),
       "/runs/0/expect/within_percent_of/run: several runs have the label \"x\""},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    {{"label", "x"}, {"collective", "barrier"}}}),
       "/runs/0/expect/within_percent_of/run: found a run of barrier, expected one of allreduce as here"},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    {{"label", "x"}, {"sequence", {{{"collective", "barrier"}}}}}}),
       "/runs/0/expect/within_percent_of/run: found a run of several collectives, expected one of allreduce"},
      {Json::array({with(kRing, {{"expect", {{"within_percent_of", {{"run", "x"}, {"percent", 5}}}}}})[0],
                    with(kRing, {{"label", "x"}, {"bytes", 128}})[0]}),
       "/runs/0/expect/within_percent_of/run: the run \"x\" has no result for allreduce ring, 64 B, 8 ranks of "
       "pcie-box "
       "(model)"},
      {with(kRing, {{"expect", {{"within_percent_of", {{"result", "../topologies/pcie-bx.json"}, {"percent", 5}}}}}}),
       "/runs/0/expect/within_percent_of/result: there is no file "},
      {with(kRing, {{"expect", {{"within_percent_of", {{"result", "../topologies/pcie-box.json"}, {"percent", 5}}}}}}),
       (kRoot / "topologies/pcie-box.json").string() +
           ": /schema: found \"gccl/cluster/1\", expected \"gccl/result/1\""},
      {{{{"sequence", {{{"collective", "barrier"}}}},
         {"expect", {{"within_percent_of", {{"algorithm", "best"}, {"percent", 5}}}}}}},
       "/runs/0/expect/within_percent_of: is about a single collective; a run of several can be compared with a "
       "\"run\" or a \"result\""},
      {{{{"sequence", {{{"collective", "barrier"}}}}, {"expect", {{"fastest", "tree"}}}}},
       "/runs/0/expect/fastest: is about a single"},
  };
  for (const auto& row : kCases) {
    const auto& runs = row.first;
    const auto& expected = row.second;
    const std::string found = complaint(runs);
    CAPTURE(runs.dump());
    CAPTURE(found);
    CAPTURE(expected);
    CHECK(found.starts_with(expected));
    CHECK(found.find('\n') == std::string::npos);
  }
  CHECK(complaint(Json::array({kRing}), {{"ranks", 0}}) == "/ranks: found 0, expected an integer from 1 to 1048576");
  CHECK(complaint(Json::array({kRing}), {{"ranks", {2, 9}}}).starts_with("/ranks/1: found 9 ranks, but "));
  CHECK(complaint(Json::array({kRing}), {{"cluster", "../topologies/pcie-bx.json"}})
            .find("did you mean \"pcie-box.json\"?") != std::string::npos);
  CHECK(complaint(Json::array({kRing}), {{"schema", "gccl/scenario/2"}})
            .starts_with("/schema: found \"gccl/scenario/2\""));
}

TEST_CASE("of the files beside one that is missing, those of its kind are offered") {
  const Folder folder;
  folder.write("parameters.json", R"({"name": "p", "schema": "gccl/parameters/1"})");
  folder.write("cluster.json", R"({"of": {"schema": "gccl/result/1"}, "all": [{}, []], "schema": "gccl/cluster/1")");
  folder.write("result.json", R"({"runs": [{"schema": "gccl/cluster/1"}], "schema": "gccl/result/1"})");
  folder.write("scenario.json", R"({"schema": "gccl/scenario/1"})");
  folder.write("number.json", R"({"schema": 1})");
  folder.write("array.json", R"([{"schema": "gccl/cluster/1"}, "schema", "gccl/cluster/1"])");
  folder.write("text.json", "schema gccl/cluster/1");
  folder.write("empty.json", "");
  std::filesystem::create_directory(folder.path / "folder.json");
  const std::string missing = (folder.path / "zzzzzzzzzzzzzzzz.json").string();
  CHECK(complaint(Json::array({kRing}), {{"cluster", missing}}) ==
        "/cluster: there is no file " + missing + "; expected one of cluster.json");
  const Json expect = {{"within_percent_of", {{"result", missing}, {"percent", 1}}}};
  CHECK(complaint(with(kRing, {{"expect", expect}})) ==
        "/runs/0/expect/within_percent_of/result: there is no file " + missing + "; expected one of result.json");
  const std::filesystem::path mine = folder.write(
      "mine.json", R"({"schema": "gccl/cluster/1", "name": "c", "parameters": "zzzzzzzz/zzzzzzzz.json", "nodes": []})");
  std::filesystem::create_directory(folder.path / "zzzzzzzz");
  folder.write("zzzzzzzz/p.json", R"({"schema": "gccl/parameters/1"})");
  folder.write("zzzzzzzz/c.json", R"({"schema": "gccl/cluster/1"})");
  const std::string found = complaint(Json::array({kRing}), {{"cluster", mine.string()}});
  CHECK_MESSAGE(found.ends_with("; expected one of p.json"), found);
}

TEST_CASE("absurd work is refused with its size") {
  const Json big = {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}};
  CHECK(complaint({{{"collective", "allreduce"}, {"bytes", "4GiB"}, {"algorithms", "ring"}, {"shares", 4096}}}, big)
            .find("would send about 3.4e+10 messages, more than 2e+09") != std::string::npos);
  // Few messages, but each rank copies every block several times.
  CHECK(complaint({{{"collective", "alltoall"}, {"bytes", "4GiB"}, {"algorithms", "bruck"}, {"shares", 4096}}}, big)
            .find("steps, more than 4e+09") != std::string::npos);
  // 2 * 2047 steps of 2048 ranks are 8.4e6 messages.
  CHECK(complaint({{{"collective", "allreduce"},
                    {"bytes", "8MiB"},
                    {"algorithms", "ring"},
                    {"chunks", 1},
                    {"channels", 1},
                    {"repeats", 1000}}},
                  big) ==
        "/runs/0: ring of 8 MiB, done 1000 times, would send about 8.4e+09 messages, more than 2e+09");
  // Three times 2048 ranks with 64 channels each, 1000 times.
  const Json many = {
      {"collective", "broadcast"}, {"bytes", 4}, {"algorithm", "binomial"}, {"chunks", 64}, {"channels", 64}};
  CHECK(complaint({{{"sequence", {many, many, many}}, {"repeats", 1000}}}, big) ==
        "/runs/0: binomial of 4 B, done 1000 times, would need about 3.9e+08 channels of its ranks, more than "
        "2.7e+08");
  // A root in the middle does as much as rank 0.
  for (const int root : {0, 7})
    for (const auto& [kind, algorithm] :
         {std::pair{"gather", "linear"}, std::pair{"reduce", "direct"}, std::pair{"broadcast", "direct"}}) {
      const char* const collective = kind;
      CHECK_MESSAGE(complaint({{{"collective", collective},
                                {"bytes", "64GiB"},
                                {"algorithms", algorithm},
                                {"root", root},
                                {"chunks", 4096},
                                {"repeats", 1000}}},
                              big)
                            .find(" messages, more than 2e+09") != std::string::npos,
                    collective, " from ", root);
    }
  Json sizes = Json::array();
  for (int i = 1; i <= 256; ++i) sizes.push_back(i * 4);
  Json runs = Json::array();
  for (int i = 0; i < 40; ++i)
    runs.push_back({{"collective", "allreduce"}, {"bytes", sizes}, {"algorithms", "recursive_doubling"}});
  CHECK(complaint(runs).find("more than 10000 points") != std::string::npos);
}

TEST_CASE("schema and reader judge every changed document alike") {
  const test::JsonSchema schema(read_json(kRoot / "sim/scenario/scenario.schema.json"));
  Json original = Json::parse(R"({
    "schema": "gccl/scenario/1", "name": "n", "description": "d", "cluster": ["../topologies/pcie-box.json"], "ranks": [8],
    "placement": "packed", "seed": 1,
    "runs": [
      { "label": "l", "collective": "allreduce", "bytes": {"from": 8, "to": 64, "factor": 2}, "dtype": "f32", "op": "sum",
        "in_place": false, "algorithms": ["all", "auto"], "chunks": 4, "channels": 1, "window": 8, "protocol": "auto", "groups": {"size": 4, "stride": 2},
        "engine": ["model"], "payload": "verify", "stragglers": [{"rank": 1, "start_us": 5, "slowdown": 2}],
        "expect": [{"bytes": 8, "engine": "model", "ranks": 8, "algorithm": "auto", "max_time_us": 1, "min_time_us": 1, "min_busbw_GBps": 1,
                    "correct": true, "within_percent_of": {"algorithm": "best", "percent": 3}},
                   {"bytes": 8, "within_percent_of": {"run": "m", "percent": 3}},
                   {"bytes": 8, "within_percent_of": {"result": "FILE", "percent": 3}}] },
      { "label": "m", "collective": "allreduce", "bytes": 8 },
      { "sequence": [{"collective": "alltoallv", "bytes": 64, "dtype": "f32", "in_place": false, "algorithm": "auto", "shares": 2,
                      "lanes": 1, "window": 2, "protocol": "auto", "groups": {"stride": 2}, "counts": {"distribution": "random", "seed": 4}}],
        "engine": "model", "payload": "none" },
      { "concurrent": [[{"collective": "broadcast", "bytes": 64, "root": 1}], [{"collective": "barrier"}]] } ] })");
  const Folder folder;
  const std::filesystem::path stored = folder.write("stored.json", R"({"schema":"gccl/result/1","runs":[]})");
  original["runs"][0]["expect"][2]["within_percent_of"]["result"] = stored.string();
  std::size_t changed = 0, refused = 0;
  const auto judge = [&](const Json& document) {
    std::string why = "accepted";
    try {
      scenario_of(document);
    } catch (const json::InputError& e) {
      why = e.what();
    }
    CAPTURE(document.dump());
    CAPTURE(why);
    CHECK(schema.accepts(document) == (why == "accepted"));
    ++changed;
    refused += why != "accepted";
  };
  judge(original);
  REQUIRE(refused == 0);
  // Rules that join two values are the reader's alone: these keys' values and absence are judged elsewhere.
  const auto joined = [](const std::string& path, const Json& value) {
    for (const char* key :
         {"/bytes",  "/algorithm", "/ranks",      "/cluster",    "/engine",      "/correct", "/channels",
          "/lanes",  "/dtype",     "/algorithms", "/collective", "/max_time_us", "/chunks",  "/shares",
          "/factor", "/to",        "/from",       "/label",      "/run",         "/result"})
      if (path.ends_with(key) && (value.is_string() || (value.is_number() && value >= 0) || value.is_array()))
        return true;
    return path.ends_with("/root") || path.ends_with("/counts") || path.ends_with("/op") ||
           (path.ends_with("/payload") && value == "none");
  };
  const Json kValues[] = {nullptr, true,          false,          -1,        0, 0.5, 1e300, "", "x",
                          "none",  Json::array(), Json::object(), {{"x", 1}}};
  const auto visit = [&](auto&& self, const Json::json_pointer& at) -> void {
    const Json& value = original[at];
    if (value.is_object())
      for (const auto& [key, child] : value.items()) {
        Json document = original;
        const std::string path = (at / key).to_string();
        document[at].erase(key);
        const bool needed = path.ends_with("/bytes") || path.ends_with("/payload") || path.ends_with("/chunks") ||
                            path.ends_with("/shares") || path.ends_with("/counts") || path == "/runs/1/label";
        if (!needed) judge(document);
        document[at][key + "z"] = child;
        judge(document);
        document[at].erase(key + "z");
        for (const Json& other : kValues) {
          if (joined(path, other)) continue;
          document[at][key] = other;
          judge(document);
        }
        self(self, at / key);
      }
    if (value.is_array())
      for (std::size_t i = 0; i < value.size(); ++i)
        if (value[i].is_structured()) self(self, at / i);
  };
  visit(visit, Json::json_pointer());
  CHECK(changed > 400);
  CHECK(refused > changed / 2);
}

TEST_CASE("every kind of check is in the schema and in the documentation") {
  const std::string schema = read_json(kRoot / "sim/scenario/scenario.schema.json").dump();
  std::ifstream in(kRoot / "docs/formats.md");
  const std::string formats{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(checks().size() >= 6);
  for (const Check* check : checks()) {
    CAPTURE(check->key);
    CHECK(schema.find(fmt::format("\"{}\":", check->key)) != std::string::npos);
    CHECK(formats.find(fmt::format("`{}`", check->key)) != std::string::npos);
  }
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

TEST_CASE("every shipped scenario fits the schema and can be planned") {
  const test::JsonSchema schema(read_json(kRoot / "sim/scenario/scenario.schema.json"));
  std::size_t shipped = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "scenarios")) {
    if (entry.is_directory() || entry.path().parent_path().filename() == "availability") continue;
    CAPTURE(entry.path().string());
    CHECK(schema.accepts(read_json(entry.path())));
    const Campaign plan = make_campaign(read_scenario(entry.path()), {});
    CHECK(!plan.points.empty());
    double messages = 0;
    for (const Point& p : plan.points) messages += p.messages;
    CHECK(messages < 6e8);  // a minute on two cores
    ++shipped;
  }
  CHECK(shipped >= 12);
}
