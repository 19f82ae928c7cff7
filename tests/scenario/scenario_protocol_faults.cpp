// What faults do on the protocol engine: who is slowed, who goes on, and by which plan.
#include <doctest/doctest.h>

#include <set>

#include "sim/scenario/plan/faults.hpp"
#include "sim/scenario/run/play.hpp"
#include "tests/scenario/played.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

TEST_CASE("protocol: a straggler slows what has begun, from time 0 the first operation too") {
  const auto time_us = [](const Json& faults, const char* at) {
    Json all = faults;
    for (Json& f : all) f["at_us"] = at;
    return rows_of(faulty(all, {{"bytes", "1MiB"}, {"chunks", 1}, {"recovery", {{"policy", "shrink"}}}}),
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
    const Json one = rows_of(run, kPod, seed)[0]["faults"], same = rows_of(run, kPod, seed)[0]["faults"];
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
      return rows_of(faulty(faults, more), kPod)[0]["time_us"].get<double>();
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
    return rows_of(faulty(faults, {{"bytes", "1MiB"}, {"chunks", 1}}), kPod)[0]["time_us"].get<double>();
  };
  CHECK(protocol_us(Json::array({by_50, fault("straggler", {{"slowdown", 2}, {"for_us", 1}})})) >=
        protocol_us(Json::array({by_50})));
  CHECK(why(Json::array({{{"kind", "straggler"}, {"rank", 1}, {"slowdown", 2}, {"every_us", 5}, {"until_us", 50}}}),
            {{"engine", "flow"}})
            .find("not this straggler") != std::string::npos);
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

TEST_CASE("a rank that nobody reaches hangs nobody: without a quorum all end") {
  Json faults = Json::array({{{"kind", "partition"}, {"ranks", {0, 1, 2, 3}}, {"at_us", "2ms"}}});
  const Json run = faulty(
      faults, {{"recovery", {{"policy", "shrink"}, {"detection_us", "20ms"}}}, {"repeats", 4}, {"compute_us", "2ms"}});
  // Four of eight and the first of them: that half goes on.
  const Json half = rows_of(run, kPod)[0]["faults"];
  CHECK(half["completed"] == true);
  CHECK(half["dead"] == Json({4, 5, 6, 7}));
  CHECK(half["out"] == 4);
  faults[0]["ranks"] = {0, 1};
  faults.push_back({{"kind", "partition"}, {"ranks", {2, 3}}, {"at_us", "2ms"}});
  faults.push_back({{"kind", "partition"}, {"ranks", {4, 5}}, {"at_us", "2ms"}});
  const Json none = rows_of(faulty(faults, {{"recovery", run[0]["recovery"]}, {"repeats", 4}, {"compute_us", "2ms"}}),
                            kPod)[0]["faults"];
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
      return time_of(run, kTwoNodes);
    };
    CAPTURE(wire);
    // 48.5 GB/s carry 256 KiB in 5.4 us.
    CHECK(time(10) - time(100) > 9 * 5.4 * 0.8);
    CHECK(time(10) - time(100) < 9 * 5.4 * 1.6);
  }
}

TEST_CASE("a rank that starts late may be called failed, which is no false alarm once it is late for long") {
  const auto late = [](const char* at) {
    const Json rows = rows_of(faulty(Json::array({{{"kind", "late_start"}, {"rank", 1}, {"at_us", at}}}),
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
