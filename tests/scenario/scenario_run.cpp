// What rows and choices of a result say, and its tables.
#include <doctest/doctest.h>

#include "sim/report/table.hpp"
#include "sim/scenario/judge/row_text.hpp"
#include "tests/scenario/stand_ins.hpp"
#include "tests/support/has.hpp"
#include "tests/support/json_schema.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// As by_name, but the ring does not complete.
Outcome without_ring(const Workload& w) {
  Outcome o = by_name(w);
  if (w.operations[0].algorithm->name == "ring") o.faults.emplace();
  return o;
}

}  // namespace

TEST_CASE("estimated messages are those of the model engine") {
  const Campaign plan = plan_of(
      {{{"collective", "allreduce"}, {"bytes", 6400}, {"algorithms", {"ring", "recursive_doubling"}}, {"chunks", 3}},
       {{"collective", "gather"}, {"bytes", 6400}, {"algorithms", "linear"}},
       {{"collective", "scatter"}, {"bytes", 6400}, {"algorithms", "linear"}}});
  const Json result = result_of(plan, kSimulated);
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    CAPTURE(describe(*plan.scenario, row_head(plan, plan.points[i])));
    CHECK(plan.points[i].messages == doctest::Approx(result["runs"][i]["messages"].get<double>()).epsilon(0.5));
  }
  CHECK(plan.points[0].messages == result["runs"][0]["messages"].get<double>());
}

TEST_CASE("results are in the plan's order and fit their schema") {
  const JsonSchema schema(read_json(kRoot / "sim/scenario/result.schema.json"));
  const Campaign plan =
      plan_of({{{"collective", "allreduce"},
                {"bytes", {8, "1KiB", "64KiB"}},
                {"algorithms", {"all", "auto"}},
                {"payload", "verify"},
                {"expect", {{"correct", true}}}},
               {{"collective", "barrier"}},
               {{"concurrent",
                 {{{{"collective", "reduce_scatter"}, {"bytes", 640}}, {{"collective", "allgather"}, {"bytes", 640}}},
                  {{{"collective", "alltoallv"}, {"bytes", 640}, {"counts", {{"distribution", "random"}}}}}}}}});
  const Json one = result_of(plan, kSimulated, 1);
  Json three = result_of(plan, kSimulated, 3);
  CHECK(schema.accepts(one));
  CHECK(one["ok"] == true);
  REQUIRE(one["runs"].size() == plan.points.size());
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const Json& row = one["runs"][i];
    CHECK(row["index"] == i);
    if (row["collective"] != "sequence") CHECK(row["algorithm"] == plan.points[i].part().algorithm());
    for (const char* measured : {"wall_s", "peak_rss_MB"}) three["runs"][i][measured] = row[measured];
  }
  CHECK(three == one);
}

TEST_CASE("collectives with blocks of different lengths are right with every distribution of them") {
  for (const char* kind : {"alltoallv", "allgatherv", "reduce_scatterv"})
    for (const char* distribution : {"uniform", "random", "skewed"})
      for (const bool in_place : {false, true}) {
        if (in_place && kind == std::string("alltoallv") && distribution == std::string("skewed")) continue;
        CAPTURE(kind);
        CAPTURE(distribution);
        CAPTURE(in_place);
        const Json result = result_of(plan_of({{{"collective", kind},
                                                {"bytes", {8, 6400}},
                                                {"algorithms", {"all", "auto"}},
                                                {"in_place", in_place},
                                                {"counts", {{"distribution", distribution}}},
                                                {"payload", "verify"},
                                                {"expect", {{"correct", true}}}}}));
        CHECK(result["ok"] == true);
        CHECK(result["runs"].size() == 4);
      }
}

TEST_CASE("bandwidths follow from time and bytes") {
  const Json row = result_of(plan_of(with(kRing, {{"bytes", 6400}, {"groups", {{"size", 4}}}})))["runs"][0];
  CHECK(row["time_us"] == doctest::Approx(0.016));  // "ring" on 4 ranks
  CHECK(row["algbw_GBps"] == doctest::Approx(400));
  CHECK(row["busbw_GBps"] == doctest::Approx(600));
  CHECK(row["ranks"] == 4);
  CHECK(row["groups"] == 2);
  CHECK(row["world_ranks"] == 8);
}

TEST_CASE("without elements every prediction is the time: none, or that of a protocol's launch") {
  Json runs = Json::array();
  for (const char* kind : {"allreduce", "allgather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter",
                           "alltoall", "alltoallv", "sendrecv", "allgatherv", "reduce_scatterv"})
    runs.push_back({{"collective", kind}, {"bytes", 0}, {"algorithms", {"all", "auto"}}, {"in_place", true}});
  // No protocols, and NCCL's, whose LL takes 6.6 us before the first message.
  for (const auto& fixed : {std::pair("ethernet-cpu", 0.0), std::pair("pcie-box", 6.6)}) {
    const std::string cluster = fixed.first;
    const double us = fixed.second;
    const Json on = {{"cluster", "../topologies/" + cluster + ".json"}, {"ranks", 8}};
    const Json result = result_of(plan_of(runs, on), kSimulated);
    CHECK(result["runs"].size() > 40);
    for (const Json& row : result["runs"]) {
      CAPTURE(cluster + " " + row["collective"].get<std::string>() + " " + row["algorithm"].get<std::string>());
      CHECK(row["time_us"] == us);
      CHECK(row["predicted_us"] == us);
    }
  }
}

TEST_CASE("mean utilisation counts the links that carried something") {
  // Two of eight cards: each link they use carries as much as the other, so mean and busiest are equal.
  const Json row = result_of(plan_of(with(kRing, {{"bytes", 6400}}), {{"ranks", 2}}), kSimulated)["runs"][0];
  bool some = false;
  for (const Json& tier : row["tiers"]) {
    if (tier["bytes"] == 0) continue;
    some = true;
    CHECK(tier["links"].get<int>() > 4);
    CHECK(tier["mean_utilisation"].get<double>() > 0.9 * tier["busiest_utilisation"].get<double>());
  }
  CHECK(some);
}

TEST_CASE("the fastest is marked, and the choice's regret reported") {
  const Json result =
      result_of(plan_of(with(kRing, {{"algorithms", {"swing", "ring", "recursive_doubling", "auto"}}})));
  std::string fastest, chosen;
  for (const Json& row : result["runs"]) {
    if (row["fastest"]) fastest += row["algorithm"];
    if (row["auto"]) chosen += row["algorithm"];
  }
  CHECK(fastest == "ring");  // four letters
  REQUIRE(result["choices"].size() == 1);
  const Json& c = result["choices"][0];
  CHECK(c["chosen"] == chosen);
  CHECK(c["fastest"] == "ring");
  CHECK(c["regret_percent"].get<double>() == doctest::Approx((double(chosen.size()) / 4 - 1) * 100));
  CHECK(result_tables(result, 100).find("* the fastest   @ chosen by \"auto\"\n") != std::string::npos);
  const std::string unchosen = result_tables(result_of(plan_of(with(kRing, {{"algorithms", {"swing", "ring"}}}))), 100);
  CHECK(unchosen.find("* the fastest\n") != std::string::npos);  // where nothing was chosen
}

TEST_CASE("what did not complete is no rival, however soon it ended") {
  const auto holds = [](const Json& expect) {
    const Json result = result_of(plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}, {"expect", expect}})),
                                  {without_ring, without_ring});
    CHECK(result["runs"][0]["time_us"] < result["runs"][1]["time_us"]);
    CHECK(result["runs"][0]["fastest"] == false);
    CHECK(result["runs"][1]["fastest"] == true);
    const std::string text = result_tables(result, 200);
    CHECK(has(text, "failed"));
    CHECK(has(text, "1 of 2 points did not complete"));
    return result["ok"].get<bool>();
  };
  CHECK(holds({{"fastest", "swing"}}));
  CHECK_FALSE(holds({{"fastest", "ring"}}));
  CHECK(holds({{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "best"}, {"percent", 0}}}}));
  CHECK_FALSE(holds({{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "ring"}, {"percent", 1e6}}}}));
}

TEST_CASE("sizes that read alike have lines of their own in the table") {
  const Json result = result_of(plan_of(with(kRing, {{"bytes", {64, 1 << 20, (1 << 20) + 4}}})));
  const std::string text = result_tables(result, 100);
  CAPTURE(text);
  for (const char* line : {"\n  64 B ", "\n  1048576 B ", "\n  1048580 B "})
    CHECK(text.find(line) != std::string::npos);
}
