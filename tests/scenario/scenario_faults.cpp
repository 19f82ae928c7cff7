// Faults in scenarios: reading them, and drawing them by seed.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <set>

#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/read/faults.hpp"
#include "tests/scenario/played.hpp"
#include "tests/support/json_schema.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

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
  std::set<Collective> crashed_in_all;  // collectives of whose algorithms a rank crashes in each
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "scenarios/faults")) {
    CAPTURE(entry.path().string());
    const Json document = read_json(entry.path());
    CHECK(schema.accepts(document));
    const Scenario scenario = read_scenario(entry.path());
    ++files;
    for (const ScenarioRun& run : scenario.runs) {
      policies.insert(std::string(policy_names()[std::size_t(run.recovery.policy)]));
      const Task& task = run.streams[0][0];
      if (task.algorithms.all && run.faults[0].first.kind == FaultKind::rank_crash) crashed_in_all.insert(task.kind);
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
  for (const Algorithm& a : algorithms())
    if (!has_counts(a.kind) && a.kind != Collective::sendrecv) {
      CAPTURE(name(a.kind));
      CHECK(crashed_in_all.contains(a.kind));
    }
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
