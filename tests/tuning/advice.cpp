// What a sweep says that its files would bring: to NCCL and Open MPI no more than the files can say.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/tuning/exports.hpp"
#include "sim/tuning/summary.hpp"

using namespace gccl::sim;
using Json = nlohmann::json;

namespace {

Json plan(const char* algorithm, const char* protocol, int chunks, double predicted_us, double us) {
  return {{"algorithm", algorithm}, {"protocol", protocol ? Json(protocol) : Json()},
          {"chunks", chunks},       {"channels", chunks},
          {"time_us", us},          {"predicted_us", predicted_us}};
}

// A sweep of one cell, in which both libraries choose this one of the plans.
Json sweep_of(const Json& tried, unsigned theirs) {
  const Json cell = {{"collective", "allreduce"},
                     {"ranks", 16},
                     {"nodes", 2},
                     {"bytes", 1 << 20},
                     {"bisection", false},
                     {"tried", tried},
                     {"planner", theirs},
                     {"nccl", {{"tried", theirs}}},
                     {"openmpi", {{"tried", theirs}}}};
  return {{"cells", Json::array({cell})}, {"between", Json::array()}, {"missing", Json::array()}};
}

}  // namespace

TEST_CASE("NCCL is promised nothing by chunks and channels, which its file does not carry") {
  // The same algorithm and protocol, cut up more finely.
  const Json finer = {plan("ring", "Simple", 24, 130, 100), plan("ring", "Simple", 6, 120, 150)};
  CHECK(improvements(sweep_of(finer, 1), "nccl", Operations::any, 9).empty());
  CHECK(improvements(sweep_of(finer, 1), "planner", Operations::any, 9).size() == 1);
  const Json as_finely = {plan("ring", "Simple", 24, 120, 100), plan("ring", "Simple", 6, 120, 150)};
  CHECK(improvements(sweep_of(as_finely, 1), "nccl", Operations::any, 9).empty());
  // Another algorithm, in so far as it is faster where both are cut up as is predicted to be best.
  const Json other = {plan("ring", "Simple", 24, 130, 100), plan("ring", "Simple", 6, 120, 150),
                      plan("tree", "Simple", 4, 110, 200)};
  const Json found = improvements(sweep_of(other, 2), "nccl", Operations::any, 9);
  REQUIRE(found.size() == 1);
  CHECK(found[0]["now_us"] == 200);
  CHECK(found[0]["best_us"] == 150);
  const Json luck = {plan("ring", "Simple", 24, 130, 100), plan("tree", "Simple", 4, 110, 149),
                     plan("ring", "Simple", 6, 120, 150)};
  CHECK(improvements(sweep_of(luck, 1), "nccl", Operations::any, 9).empty());
}

TEST_CASE("Open MPI is promised what its rules name, which for operations that commute alone is nothing") {
  const Json sweep = sweep_of({plan("ring", nullptr, 1, 60, 60), plan("recursive_doubling", nullptr, 1, 90, 90)}, 1);
  CHECK(improvements(sweep, "openmpi", Operations::any, 9).empty());
  const Json with = improvements(sweep, "openmpi", Operations::commute, 9);
  REQUIRE(with.size() == 1);
  CHECK(with[0]["best_us"] == 60);
  const Json left = exported_otherwise(sweep, Library::openmpi, Operations::any);
  REQUIRE(left.size() == 1);
  CHECK(left[0]["best"] == "ring");
  CHECK(left[0]["exported"].is_null());
  CHECK(left[0]["exported_us"].is_null());
  CHECK(exported_otherwise(sweep, Library::openmpi, Operations::commute).empty());
  CHECK(exported_otherwise(sweep, Library::mpich, Operations::any)[0]["exported"] == "recursive_doubling");
}

TEST_CASE("Open MPI keeps its own choice where that takes hardly longer") {
  const auto sweep = [](double own_us) {
    return sweep_of({plan("recursive_doubling", nullptr, 1, 60, 60), plan("rabenseifner", nullptr, 1, 90, own_us)}, 1);
  };
  struct Case {
    double own_us, gain;
    bool left;
  };
  for (const Case& c : {Case{65.9, 10, true}, Case{66.1, 10, false}, Case{60, 0, false}}) {
    const double own_us = c.own_us, gain = c.gain;
    const bool left = c.left;
    CAPTURE(own_us);
    const Exporting how{Operations::any, gain};
    const Json d = sweep(own_us), otherwise = exported_otherwise(d, Library::openmpi, how);
    CHECK(left_to_openmpi(d, gain).as_good == left);
    CHECK(otherwise.size() == left);
    if (left) CHECK(otherwise[0]["exported"] == "rabenseifner");
    CHECK(improvements(d, "openmpi", how, 9).size() == (!left && own_us > 60));
    CHECK(exported_otherwise(d, Library::mpich, how).empty());
  }
  // Faster than all that rules can name.
  const Json d = sweep_of({plan("swing", nullptr, 1, 50, 50), plan("recursive_doubling", nullptr, 1, 60, 60)}, 0);
  CHECK(left_to_openmpi(d, 0).as_good == 1);
  CHECK(exported_otherwise(d, Library::openmpi, {Operations::any, 0}).empty());
}
