// What Ascend's hccl_test and UCC's ucc_perftest print (hccl_opbase_rootinfo_base.cc; tools/perf/ucc_pt_benchmark.cc).
// hccl_test's all-gather takes a size's share of each rank, as nccl-tests do; ucc_perftest's buffers are of a block
// for each rank where the collective has any, but for reduce_scatter.
#include <doctest/doctest.h>

#include <string>

#include "tests/measured/reading.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const std::string kHcclNames = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n";

StatedOfRows on_ranks(Rank nodes, Rank cards, std::optional<Collective> collective = {}) {
  return {.collective = collective, .nodes = nodes, .cards = cards, .system = ""};
}

std::string ucc_test(const std::string& collective, const std::string& rows, const std::string& memory = "cuda") {
  return "Collective:             " + collective + "\nMemory type:            " + memory +
         "\nDatatype:               float32\nReduction:              N/A\nInplace:                0\n"
         "Warmup:\n  small                 100\n  large                 20\nIterations:\n  small                 1000\n"
         "  large                 200\n\n"
         "       Count        Size                Time, us\n"
         "                                 avg         min         max\n" +
         rows;
}

}  // namespace

TEST_CASE("hccl_test: a row for each size, by the program above the table") {
  const Measured m = read(
      "$ mpirun -n 16 ./bin/all_reduce_test -b 8K -e 16K -f 2 -p 8\n"
      "the minbytes is 8192, maxbytes is 16384, iters is 20, warmup_iters is 5\n" +
          kHcclNames +
          "8192              | 64.00          | 0.12800              | success\n"
          "16384             | 80.00          | 0.20480              | NULL\n"
          "$ mpirun -n 16 /opt/hccl_test/bin/all_gather_test -b 32K -e 32K -p 8\n" +
          kHcclNames + "32768             | 70.00          | 0.46811              | success\n",
      on_ranks(2, 8));
  CHECK(m.skipped.empty());
  CHECK(m.remarks.empty());
  REQUIRE(m.rows.size() == 3);
  CHECK(m.rows[0].kind == Collective::allreduce);
  CHECK(m.rows[0].nodes == 2);
  CHECK(m.rows[0].cards == 8);
  CHECK(m.rows[0].bytes == 8192);
  CHECK(m.rows[0].time_us == 64);
  CHECK(m.rows[0].algorithm == "auto");
  CHECK(m.rows[0].at.line == 4);
  CHECK(m.rows[1].time_us == 80);
  CHECK(m.rows[2].kind == Collective::allgather);
  CHECK(m.rows[2].bytes == 32768);
  CHECK(m.rows[2].test != m.rows[0].test);
}

TEST_CASE("hccl_test: a table alone, and names and columns as other versions have them") {
  const std::string row = "8192 | 64.00 | 0.12800 | success\n";
  CHECK(read(kHcclNames + row, on_ranks(1, 8, Collective::reduce_scatter)).rows.at(0).kind ==
        Collective::reduce_scatter);
  CHECK(has_reason(read(kHcclNames + row, on_ranks(1, 8)), "which collective"));
  CHECK(has_reason(read("./bin/all_reduce_test\n" + kHcclNames + row), "--nodes and --cards-per-node"));
  CHECK(has_reason(read("./bin/alltoallvc_test\n" + kHcclNames + row, on_ranks(1, 8)), "alltoallvc"));
  const Measured m = read(
      "[1,0]<stdout>:data_size(Bytes): | avg_time(us): | alg_bandwidth(GB/s): | check_result:\n[1,0]<stdout>:" + row,
      on_ranks(1, 8, Collective::broadcast));
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].time_us == 64);
}

TEST_CASE("hccl_test: what failed on any rank, is torn or contradicts itself is said") {
  const std::string program = "./bin/all_reduce_test -b 8K\n";
  Measured m =
      read(program + kHcclNames +
               "local rank_id 3, check result failed, 8192              | 64.10          | 0.12780              "
               "| failed\n"
               "8192              | 64.00          | 0.12800              | success\n"
               "16384             | 80.00          | 0.20480              | failed\n"
               "32768             | 96.00\n"
               "65536             | 120.00         | 5.46133              | success\n",
           on_ranks(1, 8));
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].bytes == 65536);
  CHECK(m.skipped.size() == 3);
  CHECK(has_reason(m, "wrong elements"));
  CHECK(has_reason(m, "a cell for each name"));
  REQUIRE(m.remarks.size() == 1);
  CHECK(m.remarks[0].find("algbw 0.5461 GB/s, found 5.46133") != std::string::npos);
  // Another test's size may be right.
  const std::string row = "16384 | 80.00 | 0.20480 | ";
  m = read(program + kHcclNames + row + "failed\n./bin/all_gather_test\n" + kHcclNames + row + "success\n" +
               "./bin/alltoall_test\n" + kHcclNames + "local rank_id 3, check result failed, " + row + "failed\n" +
               row + "success\n",
           on_ranks(1, 8));
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].kind == Collective::allgather);
  CHECK(m.skipped.size() == 2);
}

TEST_CASE("ucc_perftest: the slowest rank's time, and sizes of a block where there are blocks") {
  const std::string row = "        1024        4096       20.00       10.00       30.00\n";
  const auto bytes = [&](const std::string& name) {
    return read(ucc_test(name, row), on_ranks(2, 4)).rows.at(0).bytes;
  };
  for (const char* vector : {"Allreduce", "Bcast", "Reduce", "Reduce_scatter"}) CHECK(bytes(vector) == 4096);
  for (const char* blocks : {"Allgather", "Alltoall", "Gather", "Scatter"}) CHECK(bytes(blocks) == 8 * 4096);
  const Measured m = read(ucc_test("Allreduce", row) + ucc_test("Alltoall", row, "host") +
                              ucc_test("Barrier", "         N/A         N/A        5.00        4.00        6.00\n"),
                          on_ranks(2, 4));
  CHECK(m.skipped.empty());
  REQUIRE(m.rows.size() == 3);
  CHECK(m.rows[0].time_us == 30);
  CHECK(m.rows[0].dtype == Dtype::f32);
  CHECK(m.rows[0].algorithm == "auto");
  CHECK(m.rows[0].at.line == 15);
  CHECK(m.rows[1].algorithm == "MPI");
  CHECK(m.rows[1].test != m.rows[0].test);
  CHECK(m.rows[2].kind == Collective::barrier);
  CHECK(m.rows[2].time_us == 6);
}

TEST_CASE("ucc_perftest: its bus bandwidths are held against its times") {
  const std::string names =
      "       Count        Size                Time, us                           Bandwidth, GB/s\n"
      "                                 avg         min         max         avg         max         min\n";
  const auto remarks = [&](const std::string& bandwidth) {
    const Measured m =
        read("Collective:             Alltoall\n" + names +
                 "      262144     1048576      200.00      190.00      210.00       36.70       38.63    "
                 "   " +
                 bandwidth + "\n",
             on_ranks(1, 8));
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].time_us == 210);
    return m.remarks.size();
  };
  CHECK(remarks("34.95") == 0);  // 7 blocks of 1 MiB in 210 us
  CHECK(remarks("4.37") == 1);   // a size of all blocks
}

TEST_CASE("ucc_perftest: what is not its own is skipped, and said") {
  const Measured m = read(ucc_test("Allreduce",
                                   "        1024        4096       20.00       10.00\n"
                                   "        2048        8192       20.00       10.00       30.00       40.00\n"
                                   "        4096       16384         err       10.00       30.00\n"),
                          on_ranks(2, 4));
  CHECK(m.rows.empty());
  CHECK(m.skipped.size() == 3);
  CHECK(has_reason(
      read(ucc_test("Memcpy", "        1024        4096       20.00       10.00       30.00\n"), on_ranks(2, 4)),
      "Memcpy"));
}

TEST_CASE("ucc_perftest: its rows have as many numbers as IMB's and OSU's, and are none of theirs") {
  const std::string imb =
      "# Benchmarking Allreduce\n# #processes = 8\n       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "         4096         1000        12.02        27.01        19.67\n";
  const std::string osu =
      "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  "
      "Iterations\n4096 19.67 12.02 27.01 1000\n";
  const std::string ucc = ucc_test("Allreduce", "        1024        4096       20.00       10.00       30.00\n");
  for (const std::string& other : {imb, osu})
    for (const std::string& text : {other + ucc, ucc + other}) {
      const Measured m = read(text, on_ranks(2, 4));
      REQUIRE(m.rows.size() == 1);
      CHECK(m.rows[0].bytes == 4096);
      CHECK(m.rows[0].time_us == (text.starts_with("Collective:") ? 30 : other == imb ? 27.01 : 19.67));
      CHECK(m.skipped.size() == 1);
      CHECK(has_reason(m, "of another program's table"));
      CHECK(m.remarks.size() == 1);
    }
}
