// Where the fastest algorithm changes at once, as at the longest message that is sent eagerly, a table's border is
// there.
#include <doctest/doctest.h>

#include <cmath>

#include "libgccl/cluster/read/load.hpp"
#include "sim/tuning/segments.hpp"
#include "sim/tuning/sweep.hpp"
#include "tests/support/project.hpp"

using namespace gccl;
using namespace gccl::sim;

namespace {

constexpr double kLimit = 1234567;  // bytes

// What one algorithm takes, in percent of another's time, up to the limit and beyond it.
template <int before, int after>
Outcome play(const Workload& w) {
  const auto& op = w.operations[0];
  Outcome o;
  o.time_ns = op.algorithm->name == "ring" ? 1'000'000'000
              : op.algorithm->name != "rabenseifner"
                  ? 3'000'000'000
                  : 10'000'000ll * (4.0 * double(op.call.count) < kLimit ? before : after);
  return o;
}

double border(Outcome (*engine)(const Workload&), std::size_t* simulated) {
  SweepQuestion q;
  q.file = test::kRoot / "topologies/ethernet-cpu.json";
  q.cluster = load_cluster(q.file);
  q.collectives = {Collective::allreduce};
  q.bytes = {256 << 10, 4 << 20};
  q.ranks = {8};
  const auto d = sweep(q, {.model = engine, .simgrid = engine, .flow = engine}, {.jobs = 2, .progress = {}});
  REQUIRE(d["complete"] == true);
  *simulated = d["cells"].size() + d["between"].size();
  double at = 0;
  for (const TunedCalls& calls : tuned_calls(d, std::nullopt)) {
    REQUIRE(calls.segments.size() >= 3);
    CHECK(calls.segments[0].tried == nullptr);  // what is shorter than half the smallest size
    CHECK(calls.segments[0].to == 128 << 10);
    CHECK((*calls.segments[1].tried)["algorithm"] == "rabenseifner");
    CHECK((*calls.segments.back().tried)["algorithm"] == "ring");
    for (const Segment& s : calls.segments)
      if (s.tried && (*s.tried)["algorithm"] == "rabenseifner") at = double(s.to);
  }
  return at;
}

}  // namespace

TEST_CASE(
    "a table's border stands where a cliff is, to 2 %, and is not looked for so closely where it is worth little") {
  std::size_t one = 0, other = 0, slope = 0;
  CHECK(std::abs(border(play<75, 200>, &one) / kLimit - 1) <= 0.02);
  CHECK(std::abs(border(play<97, 120>, &other) / kLimit - 1) <= 0.02);
  CHECK(border(play<97, 103>, &slope) > 0);
  CHECK(slope + 2 <= one);
  CHECK(slope + 2 <= other);
}

TEST_CASE("between sizes of the sweep a table takes of plans within 2 % of the fastest what does well beside") {
  using Json = nlohmann::json;
  const auto plan = [](const char* algorithm, double us) {
    return Json{{"algorithm", algorithm}, {"protocol", nullptr}, {"chunks", 1},
                {"channels", 1},          {"predicted_us", us},  {"time_us", us}};
  };
  const auto cell = [](Count bytes, Json tried) {
    return Json{{"collective", "allreduce"}, {"ranks", 8}, {"nodes", 8}, {"bytes", bytes}, {"tried", std::move(tried)}};
  };
  const auto chosen = [&](double lucky_us) {
    Json low = cell(1000, {plan("ring", 100), plan("swing", 150)}),
         high = cell(4000, {plan("ring", 400), plan("swing", 440)});
    Json place = cell(2000, {plan("swing", lucky_us), plan("ring", 200)});
    low["bisection"] = high["bisection"] = false;
    const Json document = {{"cells", {low, high}}, {"between", {place}}, {"missing", Json::array()}};
    const auto all = tuned_calls(document, std::nullopt);
    return all[0].segments.size() == 2 ? std::string("ring") : "swing";
  };
  CHECK(chosen(197) == "ring");
  CHECK(chosen(190) == "swing");
}
