// What faults do on the flow engine: what waits, what goes another way, and how fast the rest is.
#include <doctest/doctest.h>

#include <tuple>

#include "tests/scenario/played.hpp"
#include "tests/support/folder.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// Ranks on nodes of one NIC each, and on two nodes that have others.
const Json kOneNicEach = on_cards({0, 68, 136}, "ethernet-cpu");
const Json kOtherNics = on_cards({0, 8, 1, 9});

Json played(Json run, const Json& world, const Json& faults = Json::array()) {
  run["engine"] = "flow";
  run["faults"] = faults;
  return row_of(run, world);
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

TEST_CASE("flow: throughput after faults compares what is alike") {
  const Json longer = {{"collective", "allreduce"}, {"bytes", "4MiB"}, {"algorithm", "ring"}, {"groups", {{0, 1}}}};
  Json shorter = longer, pairs = longer;
  shorter["bytes"] = "64KiB";
  pairs["groups"] = {{0, 1}, {2, 3}};
  const auto half = [](double at_us) {
    return Json{{"kind", "link_degraded"}, {"nic", "node0/nic0"}, {"bandwidth_percent", 50}, {"at_us", at_us}};
  };
  Json for_a_while = half(2000);
  for_a_while["for_us"] = 1000;
  for (const Json& run : {Json{{"sequence", {longer}}, {"repeats", 60}}, Json{{"sequence", {pairs}}, {"repeats", 60}},
                          Json{{"sequence", {shorter, longer, shorter}}, {"repeats", 60}},
                          Json{{"concurrent", {{longer}, {longer}}}, {"repeats", 60}},
                          Json{{"concurrent", {{longer}, {longer}}}, {"repeats", 75}}}) {
    CAPTURE(run.dump());
    CHECK(throughput(played(run, kOtherNics, Json::array({for_a_while}))) == doctest::Approx(100).epsilon(0.005));
  }
  // A ring of long blocks takes about twice as long on half of the bandwidth.
  CHECK(throughput(played({{"sequence", {longer}}, {"repeats", 60}}, kOtherNics, Json::array({half(2000)}))) ==
        doctest::Approx(52).epsilon(0.05));
  // Long ones before and short ones after, from within the last long one on, say nothing of each other.
  const double eight_us = played({{"sequence", {longer}}, {"repeats", 8}}, kOtherNics)["time_us"];
  Json list = Json::array();
  for (int i = 0; i < 48; ++i) list.push_back(i < 8 ? longer : shorter);
  const Json row = played({{"sequence", list}}, kOtherNics, Json::array({half(eight_us * 15 / 16)}));
  CHECK(row["faults"]["throughput_after_percent"].is_null());
}

TEST_CASE("flow: what was moved to another way was carried by both") {
  Json run = {{"collective", "broadcast"}, {"bytes", "64MiB"},  {"algorithms", "binomial"}, {"chunks", 1},
              {"protocol", "Simple"},      {"groups", {{0, 1}}}};
  run["recovery"] = {{"reroute_after_us", 100}};
  const auto nics = [](const Json& row) {
    for (const Json& tier : row["tiers"])
      if (tier["tier"] == "nic") return tier;
    return Json();
  };
  // In proportion: all NICs have the same bandwidth.
  const auto links_used = [&](const Json& row) {
    const Json tier = nics(row);
    return tier["bytes"].get<double>() / tier["mean_utilisation"].get<double>() / row["time_us"].get<double>();
  };
  Json fault = kDown;
  fault["at_us"] = 300;
  const Json healthy = played(run, kOtherNics), moved = played(run, kOtherNics, Json::array({fault}));
  REQUIRE(!nics(healthy).is_null());
  CHECK(links_used(moved) > 1.2 * links_used(healthy));
  CHECK(nics(moved)["bytes"] == nics(healthy)["bytes"]);
}

TEST_CASE("flow: nodes that take no part forward nothing") {
  // Nodes 0 and 1 hang on two switches that a cable joins; node 2 has a NIC on each.
  Json document = Json::parse(R"({
    "schema": "gccl/cluster/1", "name": "bridged",
    "parameters": {
      "card": {"overhead_ns": 400, "combine_GBps": 0, "copy_GBps": 0}, "eager_bytes": "64KiB",
      "links": {"bus": {"bandwidth_GBps": 50, "latency_ns": 300}, "port": {"bandwidth_GBps": 25, "latency_ns": 1000}}},
    "nodes": [
      {"count": 2, "cards": 1, "nics": {"count": 1, "bus": "bus", "port": "port"}},
      {"count": 1, "cards": 1, "nics": {"count": 2, "bus": "bus", "port": "port", "cards": [[0], [0]]}}],
    "fabric": {
      "kind": "custom", "switches": ["A", "B", "C"],
      "links": [{"between": ["A", "B"], "link": "port"}],
      "ports": [
        {"switch": "A", "nodes": [0, 0], "nics": [0, 0]}, {"switch": "B", "nodes": [1, 1], "nics": [0, 0]},
        {"switch": "A", "nodes": [2, 2], "nics": [0, 0]}, {"switch": "B", "nodes": [2, 2], "nics": [1, 1]}]}})");
  Json run = {{"collective", "allreduce"}, {"bytes", "1MiB"}, {"algorithms", "ring"}, {"chunks", 1}};
  run["recovery"] = {{"reroute_after_us", 100}};
  const Json lost = Json::array({{{"kind", "link_down"}, {"link", "A->B"}, {"at_us", 0}},
                                 {{"kind", "link_down"}, {"link", "B->A"}, {"at_us", 0}}});
  const Folder folder;
  for (const bool detour : {false, true}) {
    CAPTURE(detour);
    if (detour) {
      document["fabric"]["links"].push_back({{"between", {"A", "C"}}, {"link", "port"}});
      document["fabric"]["links"].push_back({{"between", {"C", "B"}}, {"link", "port"}});
    } else {
      document["fabric"]["switches"] = {"A", "B"};
    }
    const auto file = folder.write("bridged.json", document.dump());
    const Json row = played(run, {{"cluster", file.string()}, {"ranks", 2}}, lost);
    CHECK(row["faults"]["completed"] == detour);
    CHECK(row["faults"]["rerouted"] == (detour ? 2 : 0));
    document["fabric"]["switches"] = {"A", "B", "C"};
  }
}

TEST_CASE("flow: a NIC passes nothing on between the cards of its node") {
  const auto described = [](const Json& inside, bool fabric) {
    Json document = Json::parse(R"({
      "schema": "gccl/cluster/1", "name": "pairs",
      "parameters": {
        "card": {"overhead_ns": 100, "combine_GBps": 0, "copy_GBps": 0}, "eager_bytes": "64KiB",
        "links": {"bus": {"bandwidth_GBps": 100, "latency_ns": 10}, "port": {"bandwidth_GBps": 10, "latency_ns": 20}}},
      "nodes": [{"count": 1, "cards": 4, "nics": {"count": 2, "bus": "bus", "port": "port"}}]})");
    document["nodes"][0]["inside"] = inside;
    if (fabric) document["fabric"] = {{"kind", "switch"}};
    return document;
  };
  const Json none = {{"kind", "none"}}, joined = {{"kind", "switch"}, {"link", "bus"}};
  const Json run = {{"collective", "sendrecv"}, {"bytes", 100000000}, {"recovery", {{"reroute_after_us", 1}}}};
  const Json card_cut = Json::array({{{"kind", "link_down"}, {"link", "node0/card0->node0/switch"}}});
  const Folder folder;
  const auto completed = [&](const Json& document, const Json& faults) {
    const auto file = folder.write("pairs.json", document.dump());
    return played(run, {{"cluster", file.string()}, {"ranks", 2}}, faults);
  };
  // Two cards that share a NIC meet at the switch beyond its cable, and have no other way.
  const Json down = completed(described(none, true), Json::array({kDown}));
  CHECK(down["faults"]["completed"] == false);
  CHECK(down["faults"]["rerouted"] == 0);
  // That way is left to them where they are cut from their own switch: 100 MB at the cable's 10 GB/s.
  const Json moved = completed(described(joined, true), card_cut);
  CHECK(moved["faults"]["completed"] == true);
  CHECK(moved["time_us"].get<double>() == doctest::Approx(10000).epsilon(0.01));
  // Cables that are plugged in nowhere lead nowhere.
  CHECK(completed(described(joined, false), card_cut)["faults"]["completed"] == false);
}

TEST_CASE("flow: NICs and switches are what they are, whatever a switch is called") {
  Json document = Json::parse(R"({
    "schema": "gccl/cluster/1", "name": "named",
    "parameters": {
      "card": {"overhead_ns": 100, "combine_GBps": 0, "copy_GBps": 0}, "eager_bytes": "64KiB",
      "links": {"bus": {"bandwidth_GBps": 100, "latency_ns": 10}, "port": {"bandwidth_GBps": 10, "latency_ns": 20}}},
    "nodes": [{"count": 2, "cards": 2, "nics": {"count": 1, "bus": "bus", "port": "port"},
      "inside": {"kind": "links", "switches": ["nicsw"], "links": [
        {"from": "card0", "to": "nicsw", "link": "bus"}, {"from": "card1", "to": "nicsw", "link": "bus"}]}}],
    "fabric": {"kind": "custom", "switches": ["noderack/a", "b"], "links": [
      {"between": ["noderack/a", "b"], "link": "port"}, {"between": ["noderack/a", "b"], "link": "port"}],
      "ports": [{"switch": "noderack/a", "nodes": [0, 0]}, {"switch": "b", "nodes": [1, 1]}]}})");
  const Folder folder;
  const Json world = {{"cluster", folder.write("named.json", document.dump()).string()}};
  const Json run = {{"collective", "allreduce"}, {"bytes", "1MiB"}, {"algorithms", "ring"}, {"engine", "flow"}};
  const auto refused = [&](const Json& fault) {
    return complaint_of_run(with(run, {{"faults", Json::array({fault})}}), world);
  };
  CHECK(refused({{"kind", "nic_down"}, {"nic", "node0/nicsw"}}).starts_with("/faults/0/nic: found \"node0/nicsw\""));
  const Json lost = played(run, world, Json::array({{{"kind", "switch_loss"}, {"switch", "noderack/a"}}}));
  CHECK(lost["faults"]["completed"] == false);
}

TEST_CASE("flow: what comes after the end, or goes on where nobody sends, costs no time") {
  const Json runs = faulty(Json::array(), {{"engine", "flow"}, {"bytes", "4MiB"}, {"repeats", 3}});
  const auto row = [&](const Json& fault) {
    Json run = runs[0];
    run["faults"] = Json::array({fault});
    return row_of(run, kPod);
  };
  Json healthy = runs;
  healthy[0].erase("faults");
  const double alone = rows_of(healthy, kPod)[0]["time_us"];
  for (const Json& fault : std::initializer_list<Json>{
           {{"kind", "nic_down"}, {"nic", "node200/nic0"}, {"for_us", "20ms"}},  // of a node without a rank
           {{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", "50ms"}},
           {{"kind", "pause"}, {"rank", 1}, {"at_us", "50ms"}, {"for_us", 800}},
           {{"kind", "link_degraded"},
            {"nic", "node0/nic0"},
            {"at_us", "50ms"},
            {"for_us", 800},
            {"bandwidth_percent", 50}},
           {{"kind", "nic_down"}, {"nic", "node200/nic0"}, {"every_us", 900}, {"until_us", "90ms"}, {"for_us", 40}}}) {
    CAPTURE(fault.dump());
    const Json found = row(fault);
    CHECK(found["time_us"] == doctest::Approx(alone).epsilon(1e-6));
    if (fault.contains("at_us")) CHECK(found["faults"]["never_struck"].size() == 1);
  }
}

TEST_CASE("flow: a degraded link is as busy as what is left of it allows") {
  Json run = {{"collective", "broadcast"}, {"bytes", "64MiB"}, {"algorithms", "binomial"},
              {"engine", "flow"},          {"chunks", 1},      {"protocol", "Simple"}};
  run["faults"] = Json::array({{{"kind", "link_degraded"}, {"nic", "node1/nic0"}, {"bandwidth_percent", 25}}});
  const Json row = row_of(run, kTwoNodes);
  double busiest = 0;
  for (const Json& tier : row["tiers"]) busiest = std::max(busiest, tier["busiest_utilisation"].get<double>());
  CHECK(busiest == doctest::Approx(1).epsilon(0.02));
  // One that is avoided later carries less than was sent its way: no more than its whole bandwidth is said of it.
  run["recovery"] = {{"reroute_after_us", 10}};
  run["faults"].push_back({{"kind", "nic_down"}, {"nic", "node1/nic0"}, {"at_us", 50}});
  const Json moved = row_of(run, kTwoNodes);
  CHECK(moved["faults"]["rerouted"] == 1);
  for (const Json& tier : moved["tiers"]) CHECK(tier["busiest_utilisation"].get<double>() <= 1);
}

TEST_CASE("flow: a NIC that is down delays its messages by as long, and a slower one by what it carries") {
  const Json clean = {{"collective", "broadcast"}, {"bytes", "64MiB"}, {"algorithms", "binomial"},
                      {"engine", "flow"},          {"chunks", 1},      {"protocol", "Simple"},
                      {"faults", Json::array()}};
  const auto time = [&](const Json& faults) {
    Json run = clean;
    run["faults"] = faults;
    return time_of(run, kTwoNodes);
  };
  const double alone = time(Json::array());
  const double flapped =
      time(Json::array({{{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", 300}, {"for_us", "5ms"}}}));
  CHECK(flapped - alone == doctest::Approx(5000).epsilon(1e-4));
  const double paused = time(Json::array({{{"kind", "pause"}, {"rank", 1}, {"at_us", 300}, {"for_us", "7ms"}}}));
  CHECK(paused - alone == doctest::Approx(7000).epsilon(1e-4));
  // Half of the bandwidth from `at` on: what is left takes twice as long.
  const double slow = time(
      Json::array({{{"kind", "link_degraded"}, {"nic", "node1/nic0"}, {"at_us", 500}, {"bandwidth_percent", 50}}}));
  CHECK(slow - alone == doctest::Approx(alone - 500).epsilon(0.01));
  // Down for good: after a while the rest goes by another NIC of the node.
  Json run = clean;
  run["faults"] = Json::array({{{"kind", "nic_down"}, {"nic", "node0/nic0"}, {"at_us", 300}}});
  run["recovery"] = {{"reroute_after_us", "2ms"}};
  const Json around = row_of(run, kTwoNodes);
  CHECK(around["time_us"].get<double>() - alone == doctest::Approx(2000).epsilon(0.01));
  CHECK(around["faults"]["rerouted"] == 1);
  CHECK(around["faults"]["completed"] == true);
}
