// nccl-tests' own JSON (-J FILE): whose times they are, and what of them is left out.
#include <doctest/doctest.h>

#include <string>

#include "sim/measured/read/read.hpp"
#include "tests/measured/reading.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// As nccl-tests 2.17 write it: the first card of each process alone, "true" and "nan" as texts, null where nothing was
// checked.
std::string nccl_tests_json(const std::string& devices, const std::string& results, int cards_of_process = 1,
                            const std::string& program = "./build/all_reduce_perf") {
  return R"({"version":2,"start_time":"2026-11-28 07:22:10","args":[")" + program +
         R"(","-J","x.json"],"env":["A=1"],"nccl_version":22809,"config":{"nthreads":1,"ngpus":)" +
         std::to_string(cards_of_process) + R"(,"minimum_bytes":8,"blocking_collectives":"false","devices":[)" +
         devices + R"(]},"results":[)" + results +
         R"(],"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":1.5,"okay":"unchecked"}})";
}
std::string device(int rank, const std::string& host, int group = 0) {
  return R"({"rank":)" + std::to_string(rank) + R"(,"group":)" + std::to_string(group) + R"(,"pid":7,"hostname":")" +
         host + R"(","device":0,"device_hex":"0000:0)" + std::to_string(rank) + R"(:00","device_info":"NVIDIA H100"})";
}
std::string result(const std::string& out_of_place, const std::string& type = "float") {
  return R"({"size":1048576,"count":262144,"type":")" + type + R"(","redop":"sum","root":"    -1","out_of_place":)" +
         out_of_place +
         R"(,"in_place":{"time":24.740000,"alg_bw":42.390000,"bus_bw":74.180000,"nwrong":null},"actual_iterations":20})";
}
const std::string kTimes = R"({"time":25.240000,"alg_bw":41.544216,"bus_bw":41.544216,"nwrong":0.000000})";

}  // namespace

TEST_CASE("nccl-tests' JSON: a job's hosts, cards and times out of place") {
  const auto is = [](const Measured& m, Rank nodes, Rank cards) {
    REQUIRE(m.rows.size() == 1);
    CHECK(m.skipped.empty());
    CHECK(m.rows[0].nodes == nodes);
    CHECK(m.rows[0].cards == cards);
    CHECK(m.rows[0].kind == Collective::allreduce);
    CHECK(m.rows[0].bytes == 1048576);
    CHECK(m.rows[0].time_us == 25.24);
    CHECK(m.rows[0].dtype == Dtype::f32);
    CHECK_FALSE(m.rows[0].in_place);
  };
  is(read(nccl_tests_json(device(0, "a") + "," + device(1, "a"), result(kTimes))), 1, 2);
  is(read(nccl_tests_json(device(0, "a"), result(kTimes), 2)), 1, 2);
  // Two processes of two cards each, of which the first ones are listed; and all four.
  const std::string of_four = R"({"time":25.240000,"alg_bw":41.544216,"bus_bw":62.316324,"nwrong":null})";
  is(read(nccl_tests_json(device(0, "a") + "," + device(2, "b"), result(of_four), 2)), 2, 2);
  is(read(nccl_tests_json(device(0, "a") + "," + device(1, "a") + "," + device(2, "b") + "," + device(3, "b"),
                          result(of_four), 2)),
     2, 2);
  CHECK(read(nccl_tests_json(device(0, "a"), result(kTimes), 2, "/opt/alltoall_perf_mpi")).rows.at(0).kind ==
        Collective::alltoall);
}

TEST_CASE("nccl-tests' JSON: what cannot be used is skipped, each with its reason") {
  const std::string two = device(0, "a") + "," + device(1, "a");
  CHECK(has_reason(read(nccl_tests_json(two, result("null"))), "without a time out of place"));
  CHECK(has_reason(read(nccl_tests_json(two, result(R"({"cpu_time":1.0,"alg_bw":1.0,"bus_bw":1.0,"nwrong":null})"))),
                   "that of processors"));
  CHECK(has_reason(read(nccl_tests_json(two, result(R"({"time":"nan","alg_bw":1.0,"bus_bw":1.0,"nwrong":null})"))),
                   "no number"));
  CHECK(has_reason(read(nccl_tests_json(two, result(R"({"time":1.0,"alg_bw":1.0,"bus_bw":1.0,"nwrong":3.000000})"))),
                   "wrong elements"));
  CHECK(has_reason(read(nccl_tests_json(two, result(kTimes, "float6"))), "element type \"float6\""));
  CHECK(has_reason(read(nccl_tests_json(two, result(kTimes), 1, "hypercube_perf")), "\"hypercube\""));
  CHECK(has_reason(read(nccl_tests_json(device(0, "a") + "," + device(1, "a", 1), result(kTimes))),
                   "several communicators"));
  CHECK(has_reason(read(nccl_tests_json(two + "," + device(2, "b"), result(kTimes))), "different numbers of ranks"));
  CHECK(has_reason(read(nccl_tests_json(device(0, "a") + "," + device(5, "a"), result(kTimes))), "not those of ranks"));
  CHECK(has_reason(
      read(nccl_tests_json(device(0, "a") + R"(,{"rank":1,"group":0,"hostname":"a","device_hex":"0000:00:00"})",
                           result(kTimes))),
      "nodes have the same name"));
  // A test that stopped before its first result, and one that was killed.
  CHECK(
      read(R"({"version":2,"args":["all_reduce_perf"],"env":[],"nccl_version":22809,"end_time":"x"})").remarks.size() ==
      1);
  CHECK(has(wrong(nccl_tests_json(two, result(kTimes)).substr(0, 300)), "not valid JSON"));
  CHECK(has(wrong("{\n" + nccl_tests_json(two, result(kTimes)).substr(1) + "\nDone.\n"), "not valid JSON"));
  CHECK(has(wrong(nccl_tests_json("", result(kTimes))), "/config/devices"));
  // Times and bandwidths that contradict each other are named as those of tables are.
  CHECK(
      read(nccl_tests_json(two, result(R"({"time":25.0,"alg_bw":50.0,"bus_bw":50.0,"nwrong":null})"))).remarks.size() ==
      1);
}
