// Faults in scenarios: reading, drawing, playing on both engines, exploring by seed.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <set>

#include "sim/scenario/explore.hpp"
#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/read/faults.hpp"
#include "sim/scenario/run/play.hpp"
#include "tests/support/has.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const Engines kRealEngines{run_model, run_model};

// A few ranks on a cluster of nodes with NICs.
const Json kPod = {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 8}};
const Json kTwoNodes = {
    {"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 2}, {"placement", {{"cards", {0, 8}}}}};

Json faulty(const Json& faults, const Json& more = Json::object()) {
  Json run = {{"collective", "allreduce"}, {"bytes", "16KiB"}, {"algorithms", "ring"}, {"faults", faults}};
  run.update(more);
  return Json::array({run});
}

std::string why(const Json& faults, const Json& more = Json::object()) {
  const std::string text = refusal(faulty(faults, more), kPod);
  const std::size_t pointer = text.find(": /runs/0");
  return pointer == std::string::npos ? text : text.substr(pointer + 9);
}

Json rows_of_campaign(const Json& runs, const Json& more, std::uint64_t seed = 1) {
  Campaign plan = plan_of(runs, more);
  plan.seed = seed;
  return run_campaign(plan, kRealEngines, {.jobs = 1, .progress = {}}).document["runs"];
}

}  // namespace

TEST_CASE("what is wrong with a fault is said, with the nearest name") {
  CHECK(why(Json::array({{{"kind", "rank_crsh"}}}))
            .starts_with("/faults/0/kind: found \"rank_crsh\"; did you mean \"rank_crash\"?"));
  CHECK(why(Json::array({{{"kind", "rank_crash"}}})) ==
        "/faults/0: does not say whom it hits, expected rank, ranks; a fault that is drawn (\"every_us\") may leave "
        "that open");
  CHECK(why(Json::array({{{"kind", "rank_crash"}, {"rank", 8}}})) ==
        "/faults/0/rank: found rank 8, expected one below 8");
  CHECK(why(Json::array({{{"kind", "nic_down"}, {"nic", "node0/nci3"}}}))
            .starts_with("/faults/0/nic: found \"node0/nci3\"; did you mean \"node0/nic3\"?"));
  CHECK(why(Json::array({{{"kind", "switch_loss"}, {"switch", "spin3"}}}))
            .starts_with("/faults/0/switch: found \"spin3\"; did you mean \"spine3\"?"));
  CHECK(why(Json::array({{{"kind", "pause"}, {"rank", 1}}})).find("for_us") != std::string::npos);
  CHECK(why(Json::array({{{"kind", "loss"}, {"probability", 1.5}}})).starts_with("/faults/0/probability"));
  for (const char* kind : {"loss", "duplication", "reordering", "corruption", "agreement_loss"})
    CHECK(why(Json::array({{{"kind", kind}, {"probability", 0.5}, {"ranks", {1, 2, 3}}}}))
              .starts_with("/faults/0: unknown key \"ranks\"; did you mean \"rank\"?"));
  CHECK(why(Json::array({{{"kind", "loss"}, {"probability", 0.5}, {"nic", "node0/nic0"}}})).find("\"nic\"") !=
        std::string::npos);
  CHECK(
      why(Json::array({{{"kind", "rank_crash"}, {"rank", 1}, {"after", {{"rank", 1}, {"stpes", 3}}}}})).find("steps") !=
      std::string::npos);
  CHECK(why(Json::array({{{"kind", "rank_crash"}, {"rank", 1}, {"until_us", 3}}}))
            .starts_with("/faults/0/until_us: belongs to \"every_us\""));
  CHECK(why(Json::array({{{"kind", "node_loss"}, {"node", 4096}}})).starts_with("/faults/0/node: found node 4096"));
  CHECK(why(Json::array(), {{"recovery", {{"policy", "shrnk"}}}})
            .starts_with("/recovery/policy: found \"shrnk\"; did you mean \"shrink\"?"));
  CHECK(why(Json::array(), {{"recovery", {{"policy", "shrink"}, {"spares", 1}}}}) ==
        "/recovery/spares: belongs to the policy \"spare\"");
}

TEST_CASE("system_reports is also read under its old name") {
  const auto reports = [](const Json& recovery) {
    return scenario_of(whole(with(kRing, {{"recovery", recovery}}))).runs.at(0).recovery.system_reports;
  };
  CHECK_FALSE(reports(Json::object()));
  CHECK(reports({{"system_reports", true}}));
  CHECK(reports({{"system_tells", true}}));
  CHECK(why(Json::array(), {{"recovery", {{"system_reports", true}, {"system_tells", true}}}}) ==
        "/recovery/system_tells: is \"system_reports\" by its old name: expected one of them");
}

TEST_CASE("each engine says which faults it plays") {
  const Json crash = Json::array({{{"kind", "rank_crash"}, {"rank", 1}}});
  CHECK(why(crash, {{"engine", "model"}}) ==
        "/faults: engine \"model\" knows no faults, expected \"protocol\" or \"flow\"");
  CHECK(why(crash, {{"engine", "flow"}}).starts_with("/faults/0: engine \"flow\" plays"));
  CHECK(why(Json::array(), {{"engine", "flow"}, {"compute_us", 5}}).find("plays no computing") != std::string::npos);
  CHECK(why(Json::array({{{"kind", "nic_down"}, {"nic", "node0/nic0"}}}),
            {{"engine", "flow"}, {"recovery", {{"heal_us", 100}}}}) ==
        "/recovery/heal_us: engine \"flow\" ends no faults together; state \"for_us\" of each, or take \"protocol\"");
  // Of a spare, the engine would take the costs of a rank that is not there.
  CHECK(why(Json::array({{{"kind", "straggler"}, {"rank", 9}, {"slowdown", 2}}}),
            {{"engine", "flow"}, {"recovery", {{"policy", "spare"}, {"spares", 2}}}}) ==
        "/recovery/spares: engine \"flow\" has no spares, as none of its ranks fails; expected \"protocol\"");
  CHECK(refusal(faulty(crash), {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 65}})
            .find("at most 64 ranks") != std::string::npos);
  CHECK(why(crash, {{"repeats", 49}}).find("plays at most 48") != std::string::npos);
  const Json expect = {{"expect", {{"completed", true}}}};
  CHECK(refusal(with(kRing, expect)).find("neither \"faults\" nor \"recovery\"") != std::string::npos);
}

TEST_CASE("ranks that an expectation names are there") {
  const Json crash = Json::array({{{"kind", "rank_crash"}, {"rank", 1}}});
  const auto dead = [](const Json& ranks) { return Json{{"expect", {{"dead", ranks}}}}; };
  CHECK(why(crash, dead({1, 7})) == "accepted");
  CHECK(why(crash, dead({1, 8})) == "/expect/dead/1: found rank 8, expected one below 8");
  CHECK(why(crash, dead({1, 1})) == "/expect/dead/1: appears twice");
  const Json spare = {{"recovery", {{"policy", "spare"}, {"spares", 2}}}};
  Json with_spares = dead({1, 9});
  with_spares.update(spare);
  CHECK(why(crash, with_spares) == "accepted");
  with_spares["expect"]["dead"] = {10};
  CHECK(why(crash, with_spares) == "/expect/dead/0: found rank 10, expected one below 10 (with the spares)");
  const Json late = Json::array({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 10}}});
  const auto slowest = [&](int rank) { return why(late, {{"engine", "flow"}, {"expect", {{"slowest", rank}}}}); };
  CHECK(slowest(7) == "accepted");
  CHECK(slowest(8) == "/expect/slowest: found rank 8, expected one below 8");

  // Of several numbers of ranks, each that the expectation is about.
  Json pods = kPod;
  pods["ranks"] = {4, 8};
  const auto text = [&](const Json& expect) { return refusal(faulty(crash, {{"expect", expect}}), pods); };
  CHECK(text({{"dead", {3}}}) == "accepted");
  CHECK(text({{"dead", {4}}, {"ranks", 8}}) == "accepted");
  CHECK(text({{"dead", {4}}})
            .ends_with("/runs/0/expect/dead/0: found rank 4, expected one below 4; \"cluster\" and "
                       "\"ranks\" beside it say which results it is about"));
}

TEST_CASE("every shipped fault scenario fits the schema, and its faults are written as they were read") {
  const JsonSchema schema(read_json(kRoot / "sim/scenario/scenario.schema.json"));
  std::set<std::string> kinds, policies;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "scenarios/faults")) {
    CAPTURE(entry.path().string());
    const Json document = read_json(entry.path());
    CHECK(schema.accepts(document));
    const Scenario scenario = read_scenario(entry.path());
    ++files;
    for (const ScenarioRun& run : scenario.runs) {
      policies.insert(std::string(policy_names()[std::size_t(run.recovery.policy)]));
      Json written = Json::array();
      for (const auto& [fault, where] : run.faults) {
        kinds.insert(std::string(name(fault.kind)));
        written.push_back(fault_json(fault));
      }
      Json again = document;
      again["runs"][0]["faults"] = written;
      CHECK(schema.accepts(again));
      const Scenario copy = read_scenario(json::Node::parse(again.dump(), entry.path()));
      for (std::size_t i = 0; i < written.size(); ++i) CHECK(fault_json(copy.runs[0].faults[i].first) == written[i]);
    }
  }
  CHECK(files >= 30);
  CHECK(kinds.size() == fault_names().size());
  CHECK(policies.size() == policy_names().size());
}

TEST_CASE("faults drawn by seed come as often as they are said to, and hit all alike") {
  Fault rule;
  rule.every = 1'000'000;
  rule.until = 10'000'000;
  const FaultTargets targets{.ranks = 4, .cards = {}, .nodes = {}, .nics = {}, .switches = {}};
  std::array<std::size_t, 4> hits{};
  std::size_t count = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed)
    for (const Fault& f : drawn({rule}, targets, seed)) {
      ++count;
      ++hits[f.ranks[0]];
      REQUIRE(f.at <= rule.until);
    }
  // Poisson: 2000 times 10, and a standard deviation of the root of that.
  CHECK(std::abs(double(count) - 20000) < 5 * std::sqrt(20000));
  for (const std::size_t h : hits) CHECK(std::abs(double(h) - 5000) < 5 * std::sqrt(5000));
}

TEST_CASE("faults that are drawn come through to the end, and too many are refused") {
  Fault rule;
  rule.every = 20'000;
  rule.until = 20'000'000;
  const FaultTargets targets{.ranks = 4, .cards = {}, .nodes = {}, .nics = {}, .switches = {}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed)  // 1000 in the mean
    CHECK(double(drawn({rule}, targets, seed).back().at) > 0.95 * double(rule.until));
  const Json often = {{"kind", "pause"}, {"rank", 1}, {"every_us", 20}, {"until_us", 100000}, {"for_us", 1}};
  CHECK(why(Json::array({often})) ==
        "/faults/0/every_us: found 20, expected 100 or more: \"until_us\" lets more than 1000 "
        "faults come");
}

TEST_CASE("flow: what comes after the end, or goes on where nobody sends, costs no time") {
  const Json runs = faulty(Json::array(), {{"engine", "flow"}, {"bytes", "4MiB"}, {"repeats", 3}});
  const auto row = [&](const Json& fault) {
    Json run = runs[0];
    run["faults"] = Json::array({fault});
    return rows_of_campaign(Json::array({run}), kPod)[0];
  };
  Json healthy = runs;
  healthy[0].erase("faults");
  const double alone = rows_of_campaign(healthy, kPod)[0]["time_us"];
  for (const Json& fault : std::initializer_list<Json>{
           {{"kind", "nic_down"}, {"nic", "node200/nic0"}, {"for_us", "20ms"}},  // of a node without a rank
           {{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", "50ms"}},
           {{"kind", "pause"}, {"rank", 1}, {"at_us", "50ms"}, {"for_us", 800}},
           {{"kind", "link_degraded"},
            {"nic", "node0/nic0"},
            {"at_us", "50ms"},
            {"for_us", 800},
            {"bandwidth_percent", 50}},
           {{"kind", "nic_down"}, {"nic", "node200/nic0"}, {"every_us", 900}, {"until_us", "90ms"}, {"for_us", 40}}}) {
    CAPTURE(fault.dump());
    const Json found = row(fault);
    CHECK(found["time_us"] == doctest::Approx(alone).epsilon(1e-6));
    if (fault.contains("at_us")) CHECK(found["faults"]["never_struck"].size() == 1);
  }
}

TEST_CASE("of several results one that breaks what is expected is shown") {
  // A rank that computes slowly holds up short calls, and does not show beside the links' work in long ones.
  const Json runs = faulty(Json::array({{{"kind", "straggler"}, {"rank", 5}, {"slowdown", 4}}}),
                           {{"engine", "flow"}, {"bytes", {"64KiB", "64MiB"}}, {"expect", {{"slowest", 5}}}});
  const Json document = run_campaign(plan_of(runs, {{"cluster", "../topologies/ethernet-cpu.json"}, {"ranks", 8}}),
                                     kRealEngines, {.jobs = 1, .progress = {}})
                            .document;
  std::vector<std::string> others;
  for (const Json& row : document["runs"])
    if (row["faults"]["slowest"] != 5) others.push_back(json::format_bytes(row["bytes"].get<std::uint64_t>()));
  REQUIRE(others.size() == 1);
  const Json& e = document["expectations"][0];
  CHECK(e["ok"] == false);
  CHECK(has(e["found"].get<std::string>(), " at " + others[0] + " "));
}

TEST_CASE("flow: a degraded link is as busy as what is left of it allows") {
  Json run = {{"collective", "broadcast"}, {"bytes", "64MiB"}, {"algorithms", "binomial"},
              {"engine", "flow"},          {"chunks", 1},      {"protocol", "Simple"}};
  run["faults"] = Json::array({{{"kind", "link_degraded"}, {"nic", "node1/nic0"}, {"bandwidth_percent", 25}}});
  const Json row = rows_of_campaign(Json::array({run}), kTwoNodes)[0];
  double busiest = 0;
  for (const Json& tier : row["tiers"]) busiest = std::max(busiest, tier["busiest_utilisation"].get<double>());
  CHECK(busiest == doctest::Approx(1).epsilon(0.02));
  // One that is avoided later carries less than was sent its way: no more than its whole bandwidth is said of it.
  run["recovery"] = {{"reroute_after_us", 10}};
  run["faults"].push_back({{"kind", "nic_down"}, {"nic", "node1/nic0"}, {"at_us", 50}});
  const Json moved = rows_of_campaign(Json::array({run}), kTwoNodes)[0];
  CHECK(moved["faults"]["rerouted"] == 1);
  for (const Json& tier : moved["tiers"]) CHECK(tier["busiest_utilisation"].get<double>() <= 1);
}

TEST_CASE("flow: a NIC that is down delays its messages by as long, and a slower one by what it carries") {
  const Json clean = {{"collective", "broadcast"}, {"bytes", "64MiB"}, {"algorithms", "binomial"},
                      {"engine", "flow"},          {"chunks", 1},      {"protocol", "Simple"},
                      {"faults", Json::array()}};
  const auto time = [&](const Json& faults) {
    Json run = clean;
    run["faults"] = faults;
    return rows_of_campaign(Json::array({run}), kTwoNodes)[0]["time_us"].get<double>();
  };
  const double alone = time(Json::array());
  const double flapped =
      time(Json::array({{{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", 300}, {"for_us", "5ms"}}}));
  CHECK(flapped - alone == doctest::Approx(5000).epsilon(1e-4));
  const double paused = time(Json::array({{{"kind", "pause"}, {"rank", 1}, {"at_us", 300}, {"for_us", "7ms"}}}));
  CHECK(paused - alone == doctest::Approx(7000).epsilon(1e-4));
  // Half of the bandwidth from `at` on: what is left takes twice as long.
  const double slow = time(
      Json::array({{{"kind", "link_degraded"}, {"nic", "node1/nic0"}, {"at_us", 500}, {"bandwidth_percent", 50}}}));
  CHECK(slow - alone == doctest::Approx(alone - 500).epsilon(0.01));
  // Down for good: after a while the rest goes by another NIC of the node.
  Json run = clean;
  run["faults"] = Json::array({{{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", 300}}});
  run["recovery"] = {{"reroute_after_us", "2ms"}};
  const Json around = rows_of_campaign(Json::array({run}), kTwoNodes)[0];
  CHECK(around["time_us"].get<double>() - alone == doctest::Approx(2000).epsilon(0.01));
  CHECK(around["faults"]["rerouted"] == 1);
  CHECK(around["faults"]["completed"] == true);
}

TEST_CASE("protocol: a straggler slows what has begun, from time 0 the first operation too") {
  const auto time_us = [](const Json& faults, const char* at) {
    Json all = faults;
    for (Json& f : all) f["at_us"] = at;
    return rows_of_campaign(faulty(all, {{"bytes", "1MiB"}, {"chunks", 1}, {"recovery", {{"policy", "shrink"}}}}),
                            kPod)[0]["time_us"]
        .get<double>();
  };
  const Json slow = Json::array({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 50}}});
  const double healthy = time_us(Json::array(), "0us"), first = time_us(slow, "0us"), later = time_us(slow, "5us");
  REQUIRE(healthy > 10);
  CHECK(first > 5 * healthy);
  CHECK(later > 2 * healthy);
  CHECK(later < first);
}

TEST_CASE("protocol: the same seed is the same run, and what is drawn differs with the seed") {
  const Json run = faulty(Json::array({{{"kind", "rank_crash"}, {"every_us", "5ms"}, {"until_us", "10ms"}},
                                       {{"kind", "loss"}, {"probability", 0.1}}}),
                          {{"recovery", {{"policy", "rejoin"}, {"detection_us", "20ms"}, {"heal_us", "30ms"}}},
                           {"repeats", 4},
                           {"compute_us", "3ms"}});
  std::set<std::string> traces;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Json one = rows_of_campaign(run, kPod, seed)[0]["faults"],
               same = rows_of_campaign(run, kPod, seed)[0]["faults"];
    CHECK(one == same);
    traces.insert(one["trace"].get<std::string>());
  }
  CHECK(traces.size() == 3);
}

TEST_CASE("what slows a rank is multiplied, and does not undo what makes it late, on either engine") {
  const auto fault = [](const char* kind, const Json& more) {
    Json f = {{"kind", kind}, {"rank", 1}};
    f.update(more);
    return f;
  };
  const Json by_50 = fault("straggler", {{"slowdown", 50}}), twice = fault("straggler", {{"slowdown", 2}}),
             by_100 = fault("straggler", {{"slowdown", 100}}), late = fault("late_start", {{"at_us", 200}}),
             sooner = fault("late_start", {{"at_us", 20}});
  for (const char* engine : {"flow", "protocol"}) {
    CAPTURE(engine);
    const auto time_us = [&](const Json& faults, double stated = 1) {
      Json more = {{"bytes", "1MiB"}, {"chunks", 1}, {"engine", engine}};
      if (stated > 1) more["stragglers"] = {{{"rank", 1}, {"slowdown", stated}}};
      return rows_of_campaign(faulty(faults, more), kPod)[0]["time_us"].get<double>();
    };
    const double hundred = time_us(Json::array({by_100})), fifty = time_us(Json::array({by_50}));
    CHECK(fifty < hundred);
    CHECK(time_us(Json::array({by_50, twice})) == hundred);
    CHECK(time_us(Json::array({twice, by_50})) == hundred);
    CHECK(time_us(Json::array({twice}), 50) == hundred);
    const double both = time_us(Json::array({by_50, late}));
    CHECK(both > fifty);
    CHECK(both > time_us(Json::array({late})));
    CHECK(time_us(Json::array({late, by_50})) == both);
    CHECK(time_us(Json::array({late, by_50, sooner})) == both);
  }
  // What ends leaves what goes on.
  const auto protocol_us = [&](const Json& faults) {
    return rows_of_campaign(faulty(faults, {{"bytes", "1MiB"}, {"chunks", 1}}), kPod)[0]["time_us"].get<double>();
  };
  CHECK(protocol_us(Json::array({by_50, fault("straggler", {{"slowdown", 2}, {"for_us", 1}})})) >=
        protocol_us(Json::array({by_50})));
  CHECK(why(Json::array({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 2}, {"every_us", 5}, {"until_us", 50}}}),
            {{"engine", "flow"}})
            .find("not this straggler") != std::string::npos);
}

TEST_CASE("of faults that break a scenario those that are needed are left") {
  std::vector<int> all(40);
  std::iota(all.begin(), all.end(), 0);
  std::size_t asked = 0;
  const auto needs = [&](std::initializer_list<int> wanted) {
    return minimal(all, [&, wanted](const std::vector<int>& left) {
      ++asked;
      return std::all_of(wanted.begin(), wanted.end(),
                         [&](int w) { return std::find(left.begin(), left.end(), w) != left.end(); });
    });
  };
  CHECK(needs({3, 31}) == std::vector<int>{3, 31});
  CHECK(needs({0}) == std::vector<int>{0});
  CHECK(needs({}) == std::vector<int>{});
  CHECK(needs({5, 6, 7, 39}) == std::vector<int>{5, 6, 7, 39});
  CHECK(asked < 400);
}

TEST_CASE("protocol: the ranks that are left plan anew, and keep a stated algorithm where it can serve them") {
  const auto campaign = [](std::string_view algorithm, const Json& more) {
    Json world = {{"cluster", kPod["cluster"]}};
    world.update(more);
    return plan_of(faulty(Json::array(), {{"algorithms", algorithm}, {"bytes", "1MiB"}, {"engine", "protocol"}}),
                   world);
  };
  const auto anew = [](const Campaign& of, const std::vector<Card>& cards) {
    const Point& point = of.points[0];
    const Plan plan = replanned(of, point, point.part(), cards, 0, {});
    const PreparedWorkload prepared = prepare(of, point);
    SimulatedOperation o = prepared.workload.operations[0];
    prepared.workload.replan(0, cards, {}, &o);
    CHECK(o.algorithm == plan.algorithm);
    CHECK(Slicing{o.shares, o.lanes, o.window} == plan.slicing);
    return plan;
  };
  const auto is_planned_as_ever = [&](const Plan& plan, const std::vector<Card>& cards) {
    const Campaign fresh = campaign("auto", {{"ranks", cards.size()}, {"placement", {{"cards", cards}}}});
    const Plan& expected = fresh.points[0].part().plan();
    CHECK(plan.algorithm->name == expected.algorithm->name);
    CHECK(plan.slicing == expected.slicing);
    CHECK(plan.protocol == expected.protocol);
  };
  const Campaign two_nodes = campaign("auto", {{"ranks", 16}}), stated = campaign("binomial_tree", {{"ranks", 16}});
  for (const std::vector<Card>& left :
       {std::vector<Card>{0, 2, 3, 4, 5, 8, 9}, std::vector<Card>{3, 4, 5, 6}, std::vector<Card>{11}}) {
    CAPTURE(left.size());
    is_planned_as_ever(anew(two_nodes, left), left);
    CHECK(anew(stated, left).algorithm->name == "binomial_tree");
  }
  // Inside one node it is another choice than across two.
  CHECK(anew(two_nodes, {3, 4, 5, 6}).algorithm != two_nodes.points[0].part().plan().algorithm);
  // It serves one node alone, and a spare of the next one has come.
  const std::vector<Card> with_spare{0, 1, 2, 3, 4, 5, 6, 8};
  is_planned_as_ever(anew(campaign("nvls", {{"ranks", 8}}), with_spare), with_spare);
}

TEST_CASE("exploring names the lowest seed that breaks, and the one fault that is enough") {
  const Json run =
      faulty(Json::array({{{"kind", "rank_crash"}, {"every_us", "60ms"}, {"until_us", "15ms"}},
                          {{"kind", "duplication"}, {"probability", 0.1}},
                          {{"kind", "pause"}, {"every_us", "5ms"}, {"until_us", "15ms"}, {"for_us", "1ms"}}}),
             {{"recovery", {{"policy", "shrink"}, {"detection_us", "20ms"}}},
              {"repeats", 4},
              {"compute_us", "5ms"},
              {"expect", {{"dead", Json::array()}}}});
  const Campaign plan = plan_of(run, kPod);
  const auto found = explore(plan, kRealEngines, {1, 30}, {.jobs = 2, .progress = {}});
  REQUIRE(found);
  CHECK(found->broken.size() == 1);
  REQUIRE(found->minimal.size() == 1);
  REQUIRE(found->minimal[0].faults.size() == 1);
  CHECK(found->minimal[0].faults[0]["kind"] == "rank_crash");
  // No seed before it draws a crash that is noticed.
  if (found->seed > 1) CHECK(!explore(plan, kRealEngines, {1, found->seed - 1}, {.jobs = 2, .progress = {}}));
  CHECK_THROWS_WITH_AS(read_seeds("9..3", "--seeds"), "--seeds: found \"9..3\", expected the lower seed first",
                       json::InputError);
  CHECK_THROWS_AS(read_seeds("a..3", "--seeds"), json::InputError);
  CHECK(read_seeds("4", "--seeds").last == 4);
}

TEST_CASE("exploring shrinks the faults of a run beside the other runs that it is compared with") {
  Json runs = faulty(Json::array({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 2}},
                                  {{"kind", "pause"}, {"rank", 2}, {"for_us", 3000}}}),
                     {{"repeats", 5}, {"expect", {{"within_percent_of", {{"run", "healthy"}, {"percent", 1000}}}}}});
  runs.insert(runs.begin(), runs[0]);
  runs[0].erase("expect");
  runs[0].update({{"label", "healthy"}, {"faults", Json::array()}, {"engine", "protocol"}});
  const auto found = explore(plan_of(runs, kPod), kRealEngines, {1, 2}, {.jobs = 2, .progress = {}});
  REQUIRE(found);
  CHECK(found->seed == 1);
  REQUIRE(found->minimal.size() == 1);
  CHECK(found->minimal[0].run == 1);
  REQUIRE(found->minimal[0].faults.size() == 1);
  CHECK(found->minimal[0].faults[0]["kind"] == "pause");
  CHECK(has(found->minimal[0].found, "longer than \"healthy\""));
}

TEST_CASE("exploring shrinks what was drawn where it broke something, of several numbers of ranks") {
  const Json run = faulty(
      Json::array({{{"kind", "pause"}, {"every_us", 1000}, {"until_us", 2000}, {"for_us", 500}}}),
      {{"bytes", "64KiB"}, {"repeats", 20}, {"compute_us", 100}, {"expect", {{"ranks", 16}, {"max_time_us", 2800}}}});
  Json more = kPod;
  more["ranks"] = {4, 16};
  const Campaign plan = plan_of(run, more);
  const auto found = explore(plan, kRealEngines, {1, 30}, {.jobs = 2, .progress = {}});
  REQUIRE(found);
  REQUIRE(found->minimal.size() == 1);
  CHECK(found->minimal[0].world == 1);
  REQUIRE(!found->minimal[0].faults.empty());
  Json timeline = rows_of_campaign(run, more, found->seed)[1]["faults"]["timeline"];
  for (const Json& fault : found->minimal[0].faults)
    CHECK(std::find(timeline.begin(), timeline.end(), fault) != timeline.end());
}

TEST_CASE("exploring a seed plays what that seed alone plays: cards and counts that are drawn, too") {
  const Json expect = {{"expect", {{"max_time_us", 1}}}};
  const Json scattered = faulty(Json::array({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 1.5}}}), expect);
  Json uneven = {{"collective", "alltoallv"}, {"bytes", "1MiB"}, {"counts", {{"distribution", "random"}}}};
  uneven.update(expect);
  Json at_random = kPod, several = kPod;
  at_random["placement"] = "random";
  for (const auto& [runs, more] : {std::pair(scattered, at_random), {Json::array({uneven}), several}}) {
    std::set<std::string> all;
    for (const std::uint64_t seed : {1, 6}) {
      CAPTURE(seed);
      Json document = whole(runs);
      document.update(more);
      document["seed"] = seed;
      const Json alone =
          run_campaign(plan_and_check(document), kRealEngines, {.jobs = 1, .progress = {}}).document["expectations"][0];
      const auto found = explore(plan_of(runs, more), kRealEngines, {seed, seed}, {.jobs = 1, .progress = {}});
      REQUIRE(found);
      CHECK(found->broken[0] ==
            fmt::format("{}; found {}", alone["text"].get<std::string>(), alone["found"].get<std::string>()));
      all.insert(found->broken[0]);
    }
    CHECK(all.size() == 2);
  }
}

TEST_CASE("a rank that nobody reaches hangs nobody: without a quorum all end") {
  Json faults = Json::array({{{"kind", "partition"}, {"ranks", {0, 1, 2, 3}}, {"at_us", "2ms"}}});
  const Json run = faulty(
      faults, {{"recovery", {{"policy", "shrink"}, {"detection_us", "20ms"}}}, {"repeats", 4}, {"compute_us", "2ms"}});
  // Four of eight and the first of them: that half goes on.
  const Json half = rows_of_campaign(run, kPod)[0]["faults"];
  CHECK(half["completed"] == true);
  CHECK(half["dead"] == Json({4, 5, 6, 7}));
  CHECK(half["out"] == 4);
  faults[0]["ranks"] = {0, 1};
  faults.push_back({{"kind", "partition"}, {"ranks", {2, 3}}, {"at_us", "2ms"}});
  faults.push_back({{"kind", "partition"}, {"ranks", {4, 5}}, {"at_us", "2ms"}});
  const Json none = rows_of_campaign(
      faulty(faults, {{"recovery", run[0]["recovery"]}, {"repeats", 4}, {"compute_us", "2ms"}}), kPod)[0]["faults"];
  CHECK(none["completed"] == false);
  CHECK(none["out"] == 8);
  CHECK(!none.contains("hang"));
}

TEST_CASE("protocol: over datagrams and connections a frame takes what its link's bandwidth says") {
  for (const char* wire : {"datagrams", "connections"}) {
    const auto time = [&](double percent) {
      const Json run = {
          {"collective", "broadcast"},
          {"bytes", "256KiB"},
          {"algorithms", "binomial"},
          {"recovery", {{"policy", "shrink"}, {"wire", wire}}},
          {"faults",
           Json::array({{{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", percent}}})}};
      return rows_of_campaign(Json::array({run}), kTwoNodes)[0]["time_us"].get<double>();
    };
    CAPTURE(wire);
    // 48.5 GB/s carry 256 KiB in 5.4 us.
    CHECK(time(10) - time(100) > 9 * 5.4 * 0.8);
    CHECK(time(10) - time(100) < 9 * 5.4 * 1.6);
  }
}

TEST_CASE("a run with faults that never ends breaks, though nothing is expected of it") {
  const Json run = {{"collective", "allreduce"},
                    {"bytes", "1KiB"},
                    {"algorithms", "ring"},
                    {"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}, {"limit_us", "10ms"}}},
                    {"faults", Json::array({{{"kind", "loss"}, {"probability", 1}}})}};
  Campaign plan = plan_of(Json::array({run}), kPod);
  REQUIRE(plan.scenario->runs[0].expectations.size() == 1);
  const ScenarioResult result = run_campaign(plan, kRealEngines, {.jobs = 1, .progress = {}});
  CHECK(!result.ok());
  CHECK(result.document["expectations"][0]["pointer"] == "/runs/0");  // where it would stand, were it stated
}

TEST_CASE("what did not complete has no bandwidth and no winner, and its time is that of its end alone") {
  const test::JsonSchema schema(read_json(kRoot / "sim/scenario/result.schema.json"));
  const Json healthy = {{"label", "healthy"},   {"collective", "allreduce"},
                        {"bytes", "16KiB"},     {"algorithms", {"auto", "ring"}},
                        {"engine", "protocol"}, {"repeats", 4}};
  const auto played = [&](const Json& expect) {
    Json runs = faulty(Json::array({{{"kind", "rank_crash"}, {"rank", 3}, {"at_us", 5}}}),
                       {{"recovery", {{"policy", "fail"}, {"system_reports", true}}},
                        {"algorithms", {"auto", "ring"}},
                        {"repeats", 4},
                        {"payload", "verify"},
                        {"expect", expect}});
    runs.push_back(healthy);
    return run_campaign(plan_of(runs, kPod), kRealEngines, {.jobs = 1, .progress = {}}).document;
  };
  const Json broken = played(Json::array({{{"min_busbw_GBps", 0}},
                                          {{"correct", true}},
                                          {{"max_time_us", "1000s"}},
                                          {{"min_time_us", 0}},
                                          {{"completed", true}, {"max_time_us", "1000s"}},
                                          {{"fastest", "ring"}},
                                          {{"within_percent_of", {{"run", "healthy"}, {"percent", 1e6}}}},
                                          {{"within_percent_of", {{"algorithm", "best"}, {"percent", 1e6}}}}}));
  CHECK(schema.accepts(broken));
  REQUIRE(broken["expectations"].size() == 9);
  for (const Json& e : broken["expectations"]) {
    const std::string found = e["found"];
    CAPTURE(found);
    CHECK(e["ok"] == false);
    CHECK(found.starts_with(e["text"].get<std::string>().ends_with(": completed") ? "ended with an error for "
                                                                                  : "did not complete for "));
  }
  const Json& row = broken["runs"][0];
  REQUIRE(row["faults"]["completed"] == false);
  for (const char* key : {"algbw_GBps", "busbw_GBps", "wrong"}) CHECK(row[key].is_null());
  CHECK(row["operations"][0]["end_us"].is_null());
  CHECK(row["fastest"] == false);
  REQUIRE(broken["choices"].size() == 1);
  CHECK(broken["choices"][0]["label"] == "healthy");
  // Where the end is asked for, how long it took may be, too.
  CHECK(played({{"completed", false}, {"max_time_us", "1000s"}})["ok"] == true);
  CHECK(played({{"completed", false}, {"max_time_us", 5}})["ok"] == false);  // none returns before the crash
  CHECK(played(Json::array({{{"completed", false}}, {{"max_time_us", "1000s"}}}))["ok"] == true);
  CHECK(played(Json::array({{{"max_time_us", 5}}, {{"completed", false}}}))["ok"] == false);
  const Json ring = played(Json::array({{{"algorithm", "ring"}, {"completed", false}}, {{"max_time_us", "1000s"}}}));
  CHECK(has(ring["expectations"][1]["found"], "1 of which breaks it"));  // nothing is said of the other
}

TEST_CASE("a rank that starts late may be called failed, which is no false alarm once it is late for long") {
  const auto late = [](const char* at) {
    const Json rows = rows_of_campaign(faulty(Json::array({{{"kind", "late_start"}, {"rank", 1}, {"at_us", at}}}),
                                              {{"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}}}}),
                                       kPod);
    CHECK(rows[0]["faults"]["false_alarms"].empty());
    return rows[0]["faults"]["dead"];
  };
  CHECK(late("15ms").empty());
  CHECK(late("150ms") == Json::array({1}));
  CHECK(why(Json::array({{{"kind", "late_start"}, {"rank", 1}}}), {{"recovery", {{"helpers", 0}}}})
            .starts_with("/recovery/helpers: found 0, expected an integer from 1"));
}

TEST_CASE("a limit on detection holds where drawn faults bring no failure, and not where one was stated") {
  const auto holds = [](const Json& fault) {
    Campaign plan = plan_of(
        faulty(Json::array({fault}), {{"recovery", {{"policy", "shrink"}}}, {"expect", {{"max_detection_us", "5s"}}}}),
        kPod);
    plan.seed = 1;
    return run_campaign(plan, kRealEngines, {.jobs = 1, .progress = {}}).ok();
  };
  CHECK(holds({{"kind", "rank_crash"}, {"every_us", "1000s"}, {"until_us", "1ms"}}));
  CHECK_FALSE(holds({{"kind", "rank_crash"}, {"rank", 1}, {"at_us", "100s"}}));
}

TEST_CASE("rows say what happened, and which faults did not come") {
  const Json rows = rows_of_campaign(
      faulty(Json::array({{{"kind", "rank_crash"}, {"rank", 5}, {"at_us", 1000}},
                          {{"kind", "loss"}, {"probability", 0.01}, {"at_us", 500}, {"for_us", 200}},
                          {{"kind", "pause"}, {"rank", 1}, {"at_us", "50s"}, {"for_us", 1}},
                          {{"kind", "card_loss"}, {"card", 99}, {"at_us", 600}},
                          {{"kind", "pause"}, {"rank", 5}, {"at_us", 1500}, {"for_us", 100}}}),
             {{"repeats", 3}, {"compute_us", 700}, {"recovery", {{"policy", "shrink"}, {"detection_us", "50ms"}}}}),
      kPod);
  const Json& faults = rows[0]["faults"];
  std::vector<std::string> found;
  double last = 0;
  for (const Json& e : faults["events"]) {
    found.push_back(fmt::format("{} {}", e["event"].get<std::string>(), e["text"].get<std::string>()));
    CHECK(e["at_us"].get<double>() >= last);
    last = e["at_us"];
  }
  CHECK(found == std::vector<std::string>{"fault_begins 1 % of frames between all ranks are lost",
                                          "fault_ends loss between all ranks ends", "fault_begins rank 5 crashes",
                                          "first_notified the first of the others knows that rank 5 has failed",
                                          "all_notified all that are left know that rank 5 has failed",
                                          "work epoch 2: 7 ranks are at work"});
  CHECK(faults["events"][2]["at_us"] == 1000);
  CHECK(faults["events"][3]["at_us"].get<double>() ==
        doctest::Approx(1000 + faults["first_detection_us"].get<double>()));
  CHECK(faults["events"][4]["at_us"].get<double>() == doctest::Approx(1000 + faults["detection_us"].get<double>()));
  CHECK(faults["events"][5]["at_us"].get<double>() == doctest::Approx(1000 + faults["recovery_us"].get<double>()));
  CHECK(faults["never_struck"] == Json({2, 3, 4}));  // nobody to lose, and one who had crashed does not stop
}
