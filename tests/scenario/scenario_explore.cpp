// Exploring faults by seed: the lowest one that breaks a scenario, and which of its faults are needed for that.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/scenario/explore.hpp"
#include "tests/scenario/played.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

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
  const auto found = explore(plan, kSimulated, {1, 30}, {.jobs = 2, .progress = {}});
  REQUIRE(found);
  CHECK(found->broken.size() == 1);
  REQUIRE(found->minimal.size() == 1);
  REQUIRE(found->minimal[0].faults.size() == 1);
  CHECK(found->minimal[0].faults[0]["kind"] == "rank_crash");
  // No seed before it draws a crash that is noticed.
  if (found->seed > 1) CHECK(!explore(plan, kSimulated, {1, found->seed - 1}, {.jobs = 2, .progress = {}}));
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
  const auto found = explore(plan_of(runs, kPod), kSimulated, {1, 2}, {.jobs = 2, .progress = {}});
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
  const auto found = explore(plan, kSimulated, {1, 30}, {.jobs = 2, .progress = {}});
  REQUIRE(found);
  REQUIRE(found->minimal.size() == 1);
  CHECK(found->minimal[0].world == 1);
  REQUIRE(!found->minimal[0].faults.empty());
  Json timeline = rows_of(run, more, found->seed)[1]["faults"]["timeline"];
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
      const Json alone = play(plan_and_check(document)).document["expectations"][0];
      const auto found = explore(plan_of(runs, more), kSimulated, {seed, seed}, {.jobs = 1, .progress = {}});
      REQUIRE(found);
      CHECK(found->broken[0] ==
            fmt::format("{}; found {}", alone["text"].get<std::string>(), alone["found"].get<std::string>()));
      all.insert(found->broken[0]);
    }
    CHECK(all.size() == 2);
  }
}
