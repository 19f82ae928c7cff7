// What faults do to simulated ranks: several at once, whom they hit, and what is said of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/fault/effects.hpp"
#include "sim/fault/verdict.hpp"
#include "sim/scenario/plan/faults.hpp"
#include "tests/scenario/played.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

Json hurt_run(const std::vector<Json>& faults, const Json& more = Json::object()) {
  Json run = {{"collective", "allreduce"}, {"bytes", "64KiB"}, {"algorithms", "ring"},
              {"engine", "protocol"},      {"faults", faults}, {"recovery", {{"policy", "shrink"}}}};
  run.update(more);
  return run;
}

}  // namespace

TEST_CASE("the end of a fault leaves those on the same link and rank that have not ended") {
  const auto degraded = [](double percent) {
    return Json{{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", percent}, {"latency_us", 3}};
  };
  const Json more = {{"bytes", "1MiB"}, {"repeats", 3}};
  const double one = time_of(hurt_run({degraded(1)}, more), kTwoNodes);
  Json brief = degraded(50);
  brief.update({{"at_us", 20}, {"for_us", 100}});
  const double both = time_of(hurt_run({degraded(1), brief}, more), kTwoNodes);
  CHECK(both >= one);
  CHECK(both <= one + 120);

  const auto stop = [](int at_ms, int for_ms) {
    return Json{{"kind", "pause"}, {"rank", 1}, {"at_us", at_ms * 1000}, {"for_us", for_ms * 1000}};
  };
  const Json busy = {{"repeats", 10}, {"compute_us", "2ms"}};
  const double stopped = time_of(hurt_run({stop(5, 50)}, busy), kTwoNodes);
  CHECK(time_of(hurt_run({stop(5, 50), stop(6, 1)}, busy), kTwoNodes) == doctest::Approx(stopped).epsilon(0.01));
  // Until the last of them ends.
  CHECK(time_of(hurt_run({stop(5, 50), stop(15, 50)}, busy), kTwoNodes) ==
        doctest::Approx(stopped + 10000).epsilon(0.01));
}

TEST_CASE("degradations together leave a link at least a millionth of its bandwidth, for no longer than they last") {
  const auto took = [](const char* engine, std::size_t count, double percent, const Json& lasts = Json::object()) {
    Json fault = {{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", percent}, {"at_us", 0}};
    fault.update(lasts);
    return time_of(hurt_run(std::vector<Json>(count, fault), {{"engine", engine}}), kTwoNodes);
  };
  const Json brief = {{"for_us", 1000}};
  for (const char* engine : {"protocol", "flow"}) {
    CAPTURE(std::string(engine));
    const double healthy = took(engine, 1, 100, brief);
    // 64 KiB at a millionth of 50 GB/s.
    CHECK(took(engine, 3, 1) >= 65536 / 0.05);
    CHECK(took(engine, 3, 1) <= 3 * 65536 / 0.05);
    CHECK(took(engine, 10, 1) == doctest::Approx(took(engine, 3, 1)));
    CHECK(took(engine, 4, 0.001) == doctest::Approx(took(engine, 3, 1)));
    // What is on the link when all of it is there again goes on at once.
    for (const std::size_t count : {1, 2, 4}) {
      CAPTURE(count);
      const double held_up = took(engine, count, 0.001, brief);
      CHECK(held_up >= 1000);
      CHECK(held_up <= 1000 + 2 * healthy);
    }
  }
}

TEST_CASE("a rank that is stopped computes so much later") {
  const Json busy = {{"repeats", 2}, {"compute_us", "100ms"}};
  const double alone = time_of(hurt_run({}, busy), kTwoNodes);
  const Json stop = {{"kind", "pause"}, {"rank", 1}, {"at_us", "5ms"}, {"for_us", "90ms"}};
  CHECK(time_of(hurt_run({stop}, busy), kTwoNodes) == doctest::Approx(alone + 90000).epsilon(0.0001));
  // As far as it has come: what stops at 95 ms has 5 ms left, and 4 ms where it stops again.
  Json late = stop, again = stop;
  late["at_us"] = "95ms";
  again["at_us"] = "186ms";
  CHECK(time_of(hurt_run({late, again}, busy), kTwoNodes) == doctest::Approx(alone + 180000).epsilon(0.0001));
}

TEST_CASE("each call of a sequence takes as long on its links as its own type says") {
  const auto time = [](const char* first, const char* second) {
    Json run = hurt_run({{{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", 1}}});
    for (const char* key : {"collective", "bytes", "algorithms"}) run.erase(key);
    const auto call = [](const char* bytes, const char* type) {
      return Json{{"collective", "allreduce"}, {"bytes", bytes}, {"dtype", type}, {"algorithm", "ring"}};
    };
    run["sequence"] = {call("64B", first), call("1MiB", second)};
    return time_of(run, kTwoNodes);
  };
  CHECK(time("i8", "f64") == doctest::Approx(time("f64", "f64")).epsilon(0.01));
  CHECK(time("f64", "f32") == doctest::Approx(time("f32", "f32")).epsilon(0.01));
}

TEST_CASE("cards and nodes that are drawn are those of ranks") {
  const std::vector<Card> cards{9, 11, 64, 65, 130};  // of nodes 1, 8 and 16
  const auto rule = [](const char* kind) { return Json{{"kind", kind}, {"every_us", 50}, {"until_us", 5000}}; };
  const Campaign plan =
      plan_of(Json::array({hurt_run({rule("card_loss"), rule("node_loss")}, {{"compute_us", 1000}})}), on_cards(cards));
  std::set<Card> lost;
  std::set<std::uint32_t> nodes;
  for (const Fault& f : fault_plan(plan.scenario->runs[0], plan.worlds[0], 3).faults)
    (f.kind == FaultKind::card_loss ? lost : nodes).insert(f.place.value());
  CHECK(lost == std::set<Card>(cards.begin(), cards.end()));
  CHECK(nodes == std::set<std::uint32_t>{1, 8, 16});
}

TEST_CASE("the system's report that a process has ended reaches those that are stopped then, or begin later") {
  const Json more = {{"repeats", 10},
                     {"compute_us", "10ms"},
                     {"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}, {"system_reports", true}}}};
  const Json crash = {{"kind", "rank_crash"}, {"rank", 0}, {"at_us", "36ms"}};
  for (const Json& other :
       std::initializer_list<Json>{{{"kind", "pause"}, {"rank", 1}, {"at_us", "31ms"}, {"for_us", "20ms"}},
                                   {{"kind", "late_start"}, {"rank", 1}, {"at_us", "40ms"}}}) {
    CAPTURE(other.dump());
    const Json found = row_of(hurt_run({crash, other}, more), on_cards({0, 1}))["faults"];
    CHECK(found["completed"] == true);  // one of two has no quorum, unless it knows that the other has ended
    CHECK(found["dead"] == Json::array({0}));
    CHECK(found["detection_us"].get<double>() <= 20000);
  }
}

// Rank 0 crashes at any moment of the agreements and epochs in which spares take the places of ranks 1 and 2.
TEST_CASE("who is left out of an epoch is known to have failed, also where that was heard as the epoch was made") {
  const auto crash = [](int rank, int at_us) { return Json{{"kind", "rank_crash"}, {"rank", rank}, {"at_us", at_us}}; };
  const Json more = {
      {"repeats", 8},
      {"compute_us", "6ms"},
      {"recovery", {{"policy", "spare"}, {"spares", 2}, {"detection_us", "50ms"}, {"system_reports", true}}}};
  for (int at_us = 9000; at_us < 20000; at_us += 100) {
    CAPTURE(at_us);
    const Json found =
        row_of(hurt_run({crash(1, 3000), crash(2, 9000), crash(0, at_us)}, more), on_cards({0, 1, 2, 3}))["faults"];
    CHECK(found["completed"] == true);
    CHECK(found["dead"] == Json::array({0, 1, 2}));
  }
}

TEST_CASE("spares that are lost before they are needed take no place") {
  const auto played = [](const std::vector<Json>& faults, int spares) {
    const Json row =
        row_of(hurt_run(faults, {{"repeats", 10},
                                 {"compute_us", "20ms"},
                                 {"bytes", "16KiB"},
                                 {"recovery", {{"policy", "spare"}, {"spares", spares}, {"detection_us", "200ms"}}}}),
               {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 12}});
    CHECK(row["faults"]["completed"] == true);
    return row["faults"];
  };
  // Ranks 8 to 11 are on node 1, as are spares 12 to 15; 16 and 17 are on node 2.
  const Json node = {{"kind", "node_loss"}, {"node", 1}, {"at_us", "50ms"}};
  CHECK(played({node}, 4)["survivors"] == 8);
  CHECK(played({node}, 6)["survivors"] == 10);
  // One that waits, and one between its call and its begin.
  const Json crash = {{"kind", "rank_crash"}, {"rank", 3}, {"at_us", "50ms"}};
  const auto lose = [](int rank, const char* at) {
    return Json{{"kind", "rank_crash"}, {"rank", rank}, {"at_us", at}};
  };
  CHECK(played({lose(12, "1ms"), crash}, 1)["survivors"] == 11);
  CHECK(played({lose(12, "1ms"), crash}, 2)["survivors"] == 12);
  CHECK(played({crash, lose(12, "55ms")}, 2)["survivors"] == 12);
  CHECK(played({crash, lose(12, "55ms")}, 1)["never_struck"].empty());
}

// The senders of a gather need nobody, and are through with all operations while the slow one is at its second.
TEST_CASE("those that are left wait for a spare also where some of them have nothing left to do") {
  const Json slow = {{"kind", "straggler"}, {"rank", 1}, {"slowdown", 4}};
  const Json crash = {{"kind", "rank_crash"}, {"rank", 2}, {"after", {{"rank", 2}, {"operations", 3}}}};
  for (const bool system_reports : {false, true}) {
    const Json row = row_of(
        hurt_run(
            {slow, crash},
            {{"collective", "gather"},
             {"algorithms", "linear"},
             {"repeats", 4},
             {"compute_us", "1ms"},
             {"bytes", 8},
             {"recovery",
              {{"policy", "spare"}, {"spares", 1}, {"detection_us", "200ms"}, {"system_reports", system_reports}}}}),
        {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 5}});
    CAPTURE(row["faults"].dump());
    CHECK(row["faults"]["completed"] == true);
    CHECK(row["faults"]["survivors"] == 5);
  }
}

TEST_CASE("ranks that come further do not hang, however long they compute and their messages take") {
  const auto completed = [](const std::vector<Json>& faults, const Json& more, const Json& where = kTwoNodes) {
    Json run = hurt_run(faults, {{"recovery", {{"policy", "shrink"}, {"detection_us", "10ms"}}}});
    run.update(more);
    return row_of(run, where)["faults"]["completed"].get<bool>();
  };
  CHECK(completed({}, {{"repeats", 10}, {"compute_us", "200ms"}}));
  CHECK(completed({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 100}}}, {{"repeats", 2}, {"compute_us", "50ms"}}));
  // One message takes longer than the limit of 81 s, and comes part by part.
  const auto slow = [](double percent) {
    return Json{{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", percent}};
  };
  const Json small = {{"policy", "shrink"}, {"detection_us", "2s"}, {"frame_bytes", 64}, {"credits", 1}};
  CHECK(completed({slow(0.001), slow(1)}, {{"bytes", "256KiB"}, {"recovery", small}}));

  // Stragglers that follow each other slow nobody down by their product.
  std::vector<Json> stragglers;
  for (int i = 0; i < 40; ++i)
    stragglers.push_back({{"kind", "straggler"}, {"rank", 1}, {"slowdown", 10}, {"at_us", 1000 * i}, {"for_us", 500}});
  CHECK(completed(stragglers, {{"repeats", 10}, {"compute_us", "1ms"}}));
  stragglers.resize(12);
  stragglers.push_back({{"kind", "link_down"}, {"between", {0, 1}}, {"at_us", "5ms"}});  // others reach both
  CHECK(!completed(stragglers, {{"repeats", 10}, {"compute_us", "1ms"}}, on_cards({0, 8, 16, 24})));
  // Two stops in the time of one computation.
  const auto stop = [](int at_s) {
    return Json{{"kind", "pause"}, {"rank", 1}, {"at_us", at_s * 1000000}, {"for_us", "2s"}};
  };
  const Json busy = {{"compute_us", "3s"}, {"recovery", {{"policy", "shrink"}, {"detection_us", "30s"}}}};
  CHECK(completed({stop(1), stop(4)}, busy));
}

TEST_CASE("ranks that carry out an operation anew after a failure do not hang, however long it takes") {
  const Json slow = {{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", 0.0015}};
  const Json crash = {{"kind", "rank_crash"}, {"rank", 2}, {"at_us", "7s"}};
  const Json recovery = {{"policy", "shrink"}, {"detection_us", "50ms"}, {"credits", 2}};
  const Json found =
      row_of(hurt_run({slow, crash}, {{"bytes", "4MiB"}, {"recovery", recovery}}), on_cards({0, 8, 16, 24}))["faults"];
  CHECK(found["completed"] == true);
  CHECK(found["dead"] == Json::array({2}));
}

TEST_CASE("detection counts from what made a rank look failed, not from what all survived before") {
  const auto found = [](const std::vector<Json>& faults, int ranks) {
    return row_of(hurt_run(faults, {{"repeats", 40},
                                    {"compute_us", "10ms"},
                                    {"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}}}}),
                  {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", ranks}})["faults"];
  };
  const Json cut = {{"kind", "partition"}, {"ranks", {3}}, {"at_us", "150ms"}};
  const Json stop = {{"kind", "pause"}, {"rank", 3}, {"at_us", "5ms"}, {"for_us", "30ms"}};
  const Json both = found({stop, cut}, 8);
  REQUIRE(both["dead"] == Json::array({3}));
  CHECK(both["detection_us"].get<double>() <= 200000);
  // What has not ended when the next thing is done to it does count: it is silent from 100 ms on.
  const Json longer = {{"kind", "pause"}, {"rank", 3}, {"at_us", "100ms"}, {"for_us", "1s"}};
  const Json since = found({longer, cut}, 8);
  REQUIRE(since["dead"] == Json::array({3}));
  for (const Json& e : since["events"])
    if (e["event"] == "all_notified")
      CHECK(since["detection_us"].get<double>() == doctest::Approx(e["at_us"].get<double>() - 100000));

  // A partition has done nothing to those on one side of it that they would notice of each other.
  const auto link = [](int a, int b, const char* at) {
    return Json{{"kind", "link_down"}, {"between", {a, b}}, {"at_us", at}};
  };
  Json first = cut;
  first.update({{"ranks", {0}}, {"at_us", "20ms"}});
  const Json twice = found({first, link(1, 2, "250ms"), link(2, 3, "250ms")}, 4);
  REQUIRE(twice["dead"] == Json({0, 2}));
  CHECK(twice["detection_us"].get<double>() <= 200000);
  CHECK(twice["false_alarms"].empty());
}

TEST_CASE("what is done after a crash to the dead rank, its NIC, or those who notice leaves the crash its time") {
  const auto found = [](const std::vector<Json>& faults) {
    return row_of(hurt_run(faults, {{"repeats", 30},
                                    {"compute_us", "1ms"},
                                    {"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}}}}),
                  on_cards({0, 1, 2, 3, 8}))["faults"];
  };
  const auto known_at = [](const Json& faults, const char* event) {
    std::vector<double> at;
    for (const Json& e : faults["events"])
      if (e["event"] == event) at.push_back(e["at_us"]);
    REQUIRE(at.size() == 1);
    return at[0];
  };
  const Json crash = {{"kind", "rank_crash"}, {"rank", 4}, {"at_us", "10ms"}};
  const auto later = [](Json what, const char* at) {
    what.update({{"at_us", at}, {"for_us", "30ms"}});
    return what;
  };
  for (const Json& other :
       {later({{"kind", "pause"}, {"rank", 4}}, "40ms"), later({{"kind", "partition"}, {"ranks", {4}}}, "40ms"),
        later({{"kind", "nic_down"}, {"nic", "node1/nic0"}}, "90ms"),
        later({{"kind", "partition"}, {"ranks", {0}}}, "60ms")}) {
    CAPTURE(other.dump());
    const Json both = found({crash, other});
    CHECK(both["dead"] == Json::array({4}));
    CHECK(known_at(both, "first_notified") <= known_at(both, "all_notified"));
    CHECK(both["detection_us"].get<double>() == doctest::Approx(known_at(both, "all_notified") - 10000));
  }
  // A rank that was silent when it crashed had been so before.
  const Json stop = {{"kind", "pause"}, {"rank", 4}, {"at_us", "5ms"}, {"for_us", "50ms"}};
  const Json silent = found({stop, crash});
  CHECK(silent["detection_us"].get<double>() == doctest::Approx(known_at(silent, "all_notified") - 5000));
}

TEST_CASE("a rank that is started anew is another process") {
  Hurts hurts;
  hurts.hurt(1, 10, 20);
  hurts.crashed(1, 100);
  hurts.hurt(1, 110, 120);
  hurts.parted({1}, 2, 130, 300);
  CHECK(hurts.cause(1, 0, 140) == 100);
  hurts.started(1, 200);
  CHECK(hurts.cause(1, 0, 250) == 200);  // it began behind the partition
  hurts.hurt(1, 400, 500);
  CHECK(hurts.cause(1, 0, 450) == 400);
  hurts.crashed(1, 450);
  CHECK(hurts.cause(1, 0, 460) == 400);
  hurts.hurt(1, 470, Hurts::kForGood);
  CHECK(hurts.cause(1, 0, 480) == 400);
}

TEST_CASE("a rank that links between ranks cut off from all is no false alarm, one that others reach is") {
  std::vector<Rank> all{0, 1, 2, 3};
  std::size_t helpers = 3;
  const auto cut_by = [&](std::set<std::pair<Rank, Rank>> links) {
    return unreachable(
        all,
        [links](Rank from, Rank to) {
          return links.contains({from, to});
        },
        helpers);
  };
  using Found = std::map<Rank, std::vector<Rank>>;
  CHECK(cut_by({}).empty());
  CHECK(cut_by({{0, 1}, {1, 0}}).empty());  // by ranks 2 and 3
  CHECK(cut_by({{1, 0}, {1, 2}, {3, 1}}) == Found{{0, {1}}, {1, {0, 2, 3}}, {2, {1}}, {3, {1}}});
  // One helper that is asked may be the one that does not reach it.
  CHECK(cut_by({{0, 1}, {0, 2}}).empty());
  helpers = 1;
  CHECK(cut_by({{0, 1}, {0, 2}}) == Found{{0, {1, 2}}, {1, {0}}, {2, {0}}});
  all.resize(2);
  CHECK(cut_by({{0, 1}}) == Found{{0, {1}}, {1, {0}}});

  const Json row = row_of(
      hurt_run(
          {{{"kind", "link_down"}, {"between", {0, 1}}, {"at_us", "5ms"}}},
          {{"repeats", 20}, {"compute_us", "2ms"}, {"recovery", {{"policy", "shrink"}, {"detection_us", "100ms"}}}}),
      kTwoNodes);
  CHECK(row["faults"]["false_alarms"].empty());
  CHECK(row["faults"]["dead"] == Json::array({1}));
  CHECK(row["faults"]["detection_us"].get<double>() <= 100000);
}

TEST_CASE("a rank is no false alarm where those who reached it crash or stop, before its links are down or after") {
  const auto found = [](const std::vector<Json>& faults, std::size_t ranks) {
    return row_of(hurt_run(faults, {{"repeats", 30},
                                    {"compute_us", "1ms"},
                                    {"recovery", {{"policy", "shrink"}, {"detection_us", "200ms"}}}}),
                  {{"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", ranks}})["faults"];
  };
  const auto links_of_0 = [](int last, const char* at) {
    std::vector<Json> all;
    for (int r = 1; r <= last; ++r) all.push_back({{"kind", "link_down"}, {"between", {0, r}}, {"at_us", at}});
    return all;
  };
  const auto with = [](std::vector<Json> faults, const Json& more) {
    faults.push_back(more);
    return faults;
  };
  const Json crash = {{"kind", "rank_crash"}, {"rank", 4}, {"at_us", "20ms"}};
  const Json stop = {{"kind", "pause"}, {"rank", 4}, {"at_us", "20ms"}, {"for_us", "120ms"}};
  for (const char* at : {"10ms", "30ms"})
    for (const Json& other : {crash, stop}) {
      CAPTURE(std::string(at));
      CAPTURE(other.dump());
      const Json one = found(with(links_of_0(3, at), other), 5);
      const auto dead = one["dead"].get<std::vector<Rank>>();
      CHECK(std::ranges::find(dead, Rank(0)) != dead.end());
      CHECK(one["false_alarms"].empty());
    }
  // One of six helpers reaches it, of whom three are asked.
  CHECK(found(links_of_0(6, "10ms"), 8)["false_alarms"].empty());
}

TEST_CASE("throughput after the faults is that of like calls, on both engines that play faults") {
  const auto percent = [](const std::vector<const char*>& sizes, const char* engine, const Json& fault) {
    Json run = hurt_run({fault}, {{"engine", engine}});
    for (const char* key : {"collective", "bytes", "algorithms"}) run.erase(key);
    if (engine == std::string("flow")) run.erase("recovery");
    for (const char* bytes : sizes)
      run["sequence"].push_back({{"collective", "allreduce"}, {"bytes", bytes}, {"algorithm", "ring"}});
    return row_of(run, kTwoNodes)["faults"]["throughput_after_percent"];
  };
  const std::vector<const char*> mixed{"1KiB", "1MiB", "1KiB", "1KiB", "1KiB", "1MiB", "1MiB", "1MiB"};
  for (const char* engine : {"protocol", "flow"}) {
    CAPTURE(engine);
    // Nothing changes, in the middle of the second call.
    const Json nothing = {{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", 100},
                          {"latency_us", 0},         {"at_us", 40},         {"for_us", 1}};
    CHECK(percent(mixed, engine, nothing).get<double>() == doctest::Approx(100).epsilon(0.01));
    CHECK(percent({"1KiB", "1KiB", "1MiB", "1MiB", "1MiB"}, engine, nothing).is_null());
  }
}
