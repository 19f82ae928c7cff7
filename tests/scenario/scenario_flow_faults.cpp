// What faults do on the flow engine: what waits, what goes another way, and how fast the rest is.
#include <doctest/doctest.h>

#include <tuple>

#include "sim/scenario/run/play.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// Ranks on nodes of one NIC each, and on two nodes that have others.
const Json kOneNicEach = {
    {"cluster", "../topologies/ethernet-cpu.json"}, {"ranks", 3}, {"placement", {{"cards", {0, 68, 136}}}}};
const Json kOtherNics = {
    {"cluster", "../topologies/dgx-h100-superpod-2048.json"}, {"ranks", 4}, {"placement", {{"cards", {0, 8, 1, 9}}}}};

Json played(Json run, const Json& world, const Json& faults = Json::array()) {
  run["engine"] = "flow";
  run["faults"] = faults;
  return run_campaign(plan_of(Json::array({run}), world), {run_model, run_model}, {.jobs = 1, .progress = {}})
      .document["runs"][0];
}

const Json kDown = {{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", 0}};

double throughput(const Json& row) { return row["faults"]["throughput_after_percent"].get<double>(); }

}  // namespace

TEST_CASE("flow: messages without bytes and short ones wait for what is down") {
  for (const auto& [kind, algorithm, bytes] :
       {std::tuple{"barrier", "dissemination", 0}, std::tuple{"allreduce", "ring", 64},
        std::tuple{"allreduce", "ring", 65536}}) {
    Json run = {{"collective", kind}, {"algorithms", algorithm}, {"repeats", 10}};
    if (bytes) run["bytes"] = bytes;
    CAPTURE(run.dump());
    const double alone = played(run, kOneNicEach)["time_us"];
    for (Json fault : {kDown, Json{{"kind", "pause"}, {"rank", 0}, {"at_us", 0}}}) {
      fault["for_us"] = "100ms";
      CAPTURE(fault.dump());
      const Json row = played(run, kOneNicEach, Json::array({fault}));
      CHECK(row["faults"]["completed"] == true);
      CHECK(row["time_us"].get<double>() >= 100000);
      CHECK(row["time_us"].get<double>() <= 100000 + alone);
    }
    const Json row = played(run, kOneNicEach, Json::array({kDown}));
    CHECK(row["faults"]["completed"] == false);
    CHECK(row["algbw_GBps"].is_null());
  }
}

TEST_CASE("flow: a NIC without a substitute may be down for longer than it takes to look for one") {
  Json run = {{"collective", "allreduce"}, {"bytes", "1MiB"}, {"algorithms", "ring"}, {"repeats", 40}};
  run["recovery"] = {{"reroute_after_us", "10ms"}};
  const double alone = played(run, kOneNicEach)["time_us"];
  Json fault = kDown;
  fault.update({{"at_us", 5000}, {"for_us", "12ms"}});
  const Json row = played(run, kOneNicEach, Json::array({fault}));
  CHECK(row["faults"]["completed"] == true);
  CHECK(row["faults"]["rerouted"] == 0);
  CHECK(row["time_us"].get<double>() == doctest::Approx(alone + 12000).epsilon(0.01));
  CHECK(throughput(row) == doctest::Approx(100).epsilon(0.01));
}
