// What results say of runs with faults, and how expectations judge them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/scenario/played.hpp"
#include "tests/support/has.hpp"
#include "tests/support/json_schema.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

TEST_CASE("of several results one that breaks what is expected is shown") {
  // A rank that computes slowly holds up short calls, and does not show beside the links' work in long ones.
  const Json runs =
      faulty(Json::array({{{"kind", "straggler"}, {"rank", 5}, {"slowdown", 4}}}), {{"engine", "flow"},
                                                                                    {"algorithms", "rabenseifner"},
                                                                                    {"bytes", {"64KiB", "64MiB"}},
                                                                                    {"expect", {{"slowest", 5}}}});
  const Json document = document_of(runs, {{"cluster", "../topologies/ethernet-cpu.json"}, {"ranks", 8}});
  std::vector<std::string> others;
  for (const Json& row : document["runs"])
    if (row["faults"]["slowest"] != 5) others.push_back(json::format_bytes(row["bytes"].get<std::uint64_t>()));
  REQUIRE(others.size() == 1);
  const Json& e = document["expectations"][0];
  CHECK(e["ok"] == false);
  CHECK(has(e["found"].get<std::string>(), " at " + others[0] + " "));
}

TEST_CASE("a run with faults that never ends breaks, though nothing is expected of it") {
  const Json run = {{"collective", "allreduce"},
                    {"bytes", "1KiB"},
                    {"algorithms", "ring"},
                    {"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}, {"limit_us", "10ms"}}},
                    {"faults", Json::array({{{"kind", "loss"}, {"probability", 1}}})}};
  Campaign plan = plan_of(Json::array({run}), kPod);
  REQUIRE(plan.scenario->runs[0].expectations.size() == 1);
  const ScenarioResult result = play(plan);
  CHECK(!result.ok());
  CHECK(result.document["expectations"][0]["pointer"] == "/runs/0");  // where it would stand, were it stated
}

TEST_CASE("what did not complete has no bandwidth and no winner, and its time is that of its end alone") {
  const JsonSchema schema(read_json(kRoot / "sim/scenario/result.schema.json"));
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
    return document_of(runs, kPod);
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

TEST_CASE("where all ranks crash, completed finds nobody left, and no rank without a quorum") {
  const Json faults = Json::array({{{"kind", "node_loss"}, {"node", 0}, {"at_us", 1000}}});
  const Json more = {{"repeats", 8},
                     {"compute_us", 700},
                     {"recovery", {{"policy", "shrink"}, {"detection_us", "50ms"}}},
                     {"expect", {{"completed", true}}}};
  const Json e = document_of(faulty(faults, more), kPod)["expectations"][0];
  CHECK(e["ok"] == false);
  CHECK(has(e["found"], "nobody is left"));
}

TEST_CASE("a limit on detection holds where drawn faults bring no failure, and not where one was stated") {
  const auto holds = [](const Json& fault) {
    const Json more = {{"recovery", {{"policy", "shrink"}}}, {"expect", {{"max_detection_us", "5s"}}}};
    return document_of(faulty(Json::array({fault}), more), kPod)["ok"] == true;
  };
  CHECK(holds({{"kind", "rank_crash"}, {"every_us", "1000s"}, {"until_us", "1ms"}}));
  CHECK_FALSE(holds({{"kind", "rank_crash"}, {"rank", 1}, {"at_us", "100s"}}));
}

TEST_CASE("rows say what happened, and which faults did not come") {
  const Json rows = rows_of(
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
