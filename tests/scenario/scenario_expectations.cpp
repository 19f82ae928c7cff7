// What expectations of a scenario hold and break at, also beside another run of it.
#include <doctest/doctest.h>

#include <string>
#include <tuple>

#include "tests/scenario/stand_ins.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

Outcome with_wrong(const Workload& w) {
  Outcome o = by_name(w);
  o.wrong = 3;
  o.first_wrong = "rank 1 element 2";
  return o;
}

}  // namespace

TEST_CASE("each kind of expectation holds and breaks") {
  // ring takes 32 ns, swing 40 ns, recursive_doubling 144 ns.
  const std::tuple<Json, bool, std::string> kCases[] = {
      {{{"max_time_us", 0.144}}, true, "0.144 us for recursive_doubling at 64 B (model); the worst of 3 results"},
      {{{"max_time_us", "143ns"}},
       false,
       "0.144 us for recursive_doubling at 64 B (model); the worst of 3 results, 1 of which breaks it"},
      {{{"max_time_us", "40ns"}, {"algorithm", "swing"}}, true, "0.04 us for swing at 64 B (model)"},
      {{{"min_time_us", "32ns"}}, true, "0.032 us for ring at 64 B (model); the worst of 3 results"},
      {{{"min_time_us", "33ns"}},
       false,
       "0.032 us for ring at 64 B (model); the worst of 3 results, 1 of which breaks it"},
      {{{"min_busbw_GBps", 3.5}, {"algorithm", "ring"}}, true, "3.5 GB/s for ring at 64 B (model)"},
      {{{"min_busbw_GBps", 3.5}},
       false,
       "0.777778 GB/s for recursive_doubling at 64 B (model); the worst of 3 results, 2 of which break it"},
      {{{"fastest", "ring"}}, true, "0.032 us for ring at 64 B (model)"},
      {{{"fastest", "swing"}}, false, "0.032 us for ring at 64 B (model), 0.04 us for swing"},
      {{{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "best"}, {"percent", 25}}}},
       true,
       "swing at 64 B (model) takes 25 % longer than ring (0.04 us, 0.032 us)"},
      {{{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "ring"}, {"percent", 24}}}},
       false,
       "swing at 64 B (model) takes 25 % longer than ring (0.04 us, 0.032 us)"},
      {{{"algorithm", "ring"}, {"within_percent_of", {{"algorithm", "swing"}, {"percent", 0}}}},
       true,
       "ring at 64 B (model) takes 20 % less than swing (0.032 us, 0.04 us)"},
      {{{"algorithm", "ring"}, {"within_percent_of", {{"algorithm", "best"}, {"percent", 0}}}},
       true,
       "ring at 64 B (model) is the fastest"},
  };
  for (const auto& [expect, holds, found] : kCases) {
    const std::string stated = expect.dump();  // a structured binding cannot be captured
    CAPTURE(stated);
    const Json result =
        result_of(plan_of(with(kRing, {{"algorithms", {"recursive_doubling", "ring", "swing"}}, {"expect", expect}})));
    CHECK(result["ok"] == holds);
    REQUIRE(result["expectations"].size() == 1);
    CHECK(result["expectations"][0]["ok"] == holds);
    CHECK(result["expectations"][0]["found"] == found);
  }
  const Campaign checked = plan_of(with(kRing, {{"payload", "verify"}, {"expect", {{"correct", true}}}}));
  CHECK(result_of(checked)["ok"] == true);
  const Json wrong = result_of(checked, {with_wrong, with_wrong});
  CHECK(wrong["ok"] == false);
  CHECK(wrong["expectations"][0]["found"] == "3 wrong elements for ring at 64 B (model)");
  CHECK(wrong["runs"][0]["first_wrong"] == "rank 1 element 2");
}

TEST_CASE("an expectation names the cluster and the ranks where there are several") {
  const Json result = result_of(plan_of(with(kRing, {{"expect", {{"max_time_us", "15ns"}}}}), {{"ranks", {2, 4}}}));
  CHECK(result["expectations"][0]["found"] ==
        "0.016 us for ring at 64 B, 4 ranks (model); the worst of 2 results, 1 of which breaks it");
}

TEST_CASE("a limit that is reached exactly holds, whatever rounding makes of it") {
  // 51.35 is 30 % more than 39.5, and (51.35 / 39.5 - 1) * 100 is 30.000000000000004.
  const auto took = [](Nanos ns) {
    static Nanos longer;
    longer = ns;
    const auto play = [](const Workload& w) {
      Outcome o = by_name(w);
      o.time_ns = w.operations[0].algorithm->name == "ring" ? 39500 : longer;
      return o;
    };
    const Json expect = {{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "ring"}, {"percent", 30}}}};
    return result_of(plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}, {"expect", expect}})), {play, play})["ok"];
  };
  CHECK(took(51350) == true);
  CHECK(took(51351) == false);
}

TEST_CASE("a run is held against another run of the scenario, point by point") {
  // A ring on 8 ranks takes 32 ns, on groups of 4 it takes 16 ns.
  const Json healthy = {{"label", "healthy"},
                        {"collective", "allreduce"},
                        {"bytes", {64, 128}},
                        {"algorithms", {"ring", "swing"}},
                        {"groups", {{"size", 4}}}};
  const auto judged = [&](double percent) {
    Json other = healthy;
    other["label"] = "one NIC down";
    other.erase("groups");
    other["expect"] = {{"within_percent_of", {{"run", "healthy"}, {"percent", percent}}}};
    return result_of(plan_of(Json::array({other, healthy})));  // a label may come later
  };
  const Json held = judged(100), broken = judged(99);
  CHECK(held["ok"] == true);
  CHECK(held["expectations"][0]["text"] == "one NIC down: within 100 % of \"healthy\"");
  CHECK(held["expectations"][0]["found"] ==
        "ring at 64 B (model) takes 100 % longer than \"healthy\" (0.032 us, 0.016 us); the worst of 4 results");
  CHECK(broken["ok"] == false);
  CHECK(broken["expectations"][0]["found"] ==
        "ring at 64 B (model) takes 100 % longer than \"healthy\" (0.032 us, "
        "0.016 us); the worst of 4 results, 4 of which break it");
  // Sizes that are rounded to one are of that.
  Json rounded = healthy;
  rounded["bytes"] = {61, 63};
  rounded.erase("groups");
  Json stated = rounded;
  stated["label"] = "stated";
  stated["bytes"] = 64;
  stated["expect"] = {{"within_percent_of", {{"run", "healthy"}, {"percent", 0}}}};
  CHECK(result_of(plan_of(Json::array({rounded, stated})))["ok"] == true);
  // Runs of several collectives have one time each.
  const Json whole = {{"label", "all"}, {"sequence", {{{"collective", "barrier"}}}}};
  Json part = whole;
  part["label"] = "again";
  part["expect"] = {{"within_percent_of", {{"run", "all"}, {"percent", 0}}}};
  const Json sequence = result_of(plan_of(Json::array({whole, part})));
  CHECK(sequence["ok"] == true);
  CHECK(sequence["expectations"][0]["found"].get<std::string>().starts_with("the whole (model) is as fast as \"all\""));
}
