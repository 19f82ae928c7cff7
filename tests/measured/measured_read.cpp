// Readers of measurements, on the shapes in which tools print them.
#include <doctest/doctest.h>

#include "sim/measured/read/csv.hpp"
#include "sim/measured/read/read.hpp"
#include "sim/measured/validation/outliers.hpp"
#include "tests/measured/reading.hpp"
#include "tests/measured/table_text.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

TEST_CASE("CSV is read as RFC 4180 has it, and its lines are counted") {
  const auto records = read_csv(
      "\xef\xbb\xbf"
      "a,\"b,c\",\"say \"\"x\"\"\"\r\n\n\"two\nlines\",,z\n",
      "f");
  REQUIRE(records.size() == 2);
  CHECK(records[0].fields == std::vector<std::string>{"a", "b,c", "say \"x\""});
  CHECK(records[1].fields == std::vector<std::string>{"two\nlines", "", "z"});
  CHECK(records[0].line == 1);
  CHECK(records[1].line == 3);
  CHECK_THROWS_WITH_AS(read_csv("a\nb,\"c", "f"), "f:2: a quote is never closed", json::InputError);
  CHECK_THROWS_WITH_AS(read_csv("a\n\"b\"c\n", "f"), doctest::Contains("f:2: found text behind a closing quote"),
                       json::InputError);
  CHECK_THROWS_WITH_AS(read_csv("a\"b\n", "f"), doctest::Contains("f:1: found a quote inside a field"),
                       json::InputError);
}

TEST_CASE("a table's rows keep their texts and say where they stand") {
  const Measured m =
      read(kColumns + "\"Box, large\",4,8,all_reduce,NCCL_ALGO=ring,LL128,1024,12.5,0.08,0.15,here,dtype=half; x\n");
  REQUIRE(m.rows.size() == 1);
  const Measurement& r = m.rows[0];
  CHECK(r.system == "Box, large");
  CHECK(r.ranks() == 32);
  CHECK(r.kind == Collective::allreduce);
  CHECK(r.collective == "all_reduce");
  CHECK(r.algorithm == "NCCL_ALGO=ring");
  CHECK(r.protocol == "LL128");
  CHECK(r.bytes == 1024);
  CHECK(r.time_us == 12.5);
  CHECK(r.dtype == Dtype::f16);
  CHECK(r.at.line == 2);
  CHECK(!r.derived);
}

TEST_CASE("a time that is missing follows from a bandwidth by nccl-tests' formulas") {
  // 8 ranks: busbw of an all-reduce is 2 * 7/8 of bytes / time, of an all-gather 7/8 of it.
  const Measured m = read(kColumns +
                          "s,1,8,all_reduce,auto,,8000000,,,175.00,,\n"  // algbw 100 GB/s: 80 us
                          "s,1,8,all_gather,auto,,8000000,,,87.50,,\n"   // the same
                          "s,1,8,all_gather,auto,,8000000,,40.00,,,\n"   // 200 us
                          "s,1,8,all_gather,auto,,8000000,,35.00,35.00,,old nccl-tests: algbw=busbw\n"  // 200 us
                          "s,1,8,broadcast,auto,,8000000,,40.00,40.00,,old nccl-tests\n"
                          "s,1,8,all_reduce,auto,,8,,,0.01,,\n"
                          "s,1,8,all_reduce,auto,,8,,,,,\n"
                          "s,1,8,all_reduce,auto,,8,,0.00,0.00,,\n");
  REQUIRE(m.rows.size() == 5);
  const double expected[] = {80, 80, 200, 200, 200};
  for (int i = 0; i < 5; ++i) {
    CHECK(m.rows[i].time_us == doctest::Approx(expected[i]).epsilon(1e-9));
    CHECK(m.rows[i].derived);
  }
  CHECK(has_reason(m, "too few digits"));
  CHECK(has_reason(m, "no time and no bandwidth"));
  CHECK(m.skipped.size() == 3);
}

TEST_CASE("rows that cannot be used are skipped, each with its reason") {
  const Measured m = read(kColumns +
                          "s,2,4,moe_dispatch,x,,64,1,,,,\n"
                          "s,2,4,pt2pt_bw,x,,64,1,,,,\n"
                          "s,2,4,all_gather,x,,0,9.05,,,,\n"
                          "s,2,4,all_gather,x,,64,0,,,,dtype=float\n"
                          "s,,4,all_gather,x,,64,1,,,,\n"
                          "s,2,4,alltoall,x,,64,1,,,,bytes = per-destination message size (OSU convention)\n"
                          "s,2,4,all_gather,x,,64,1,,,,dtype=fp4_e2m1\n"
                          "s,2,4,all_gather,x,,31,0.03,,,,\n"
                          "s,1,1,all_reduce,x,,64,1,,,,\n");
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].bytes == 64 * 8);
  CHECK(has_reason(m, "no counterpart of the collective \"moe_dispatch\""));
  CHECK(has_reason(m, "\"pt2pt_bw\""));
  CHECK(has_reason(m, "of 0 bytes"));
  CHECK(has_reason(m, "no time and no bandwidth"));
  CHECK(has_reason(m, "state --nodes"));
  CHECK(has_reason(m, "element type \"fp4_e2m1\""));
  CHECK(has_reason(m, "less than one element for each rank"));
  CHECK(has_reason(m, "on one rank"));
  CHECK(m.skipped.size() == 8);
}

TEST_CASE("notes and lines of any length are read") {
  const std::string spaces(1 << 20, ' ');
  const auto row = [](const std::string& collective, const std::string& bytes, const std::string& note) {
    return "s,2,4," + collective + ",x,," + bytes + ",1,,,," + note + "\n";
  };
  std::string keys, perfs;
  for (int i = 0; i < 200000; ++i) keys += "dtype bytes = ", perfs += "_perf";
  const Measured m = read(kColumns + row("all_reduce", "64", "dtype" + spaces + "x") +
                          row("all_reduce", "64", "dtype" + spaces + "=" + spaces + "half; bytes = per-block") +
                          row("alltoall", "64", keys + "dtype=; dtype=int;bytes=per peer") +
                          row("alltoall", "64", "bytes = perblock; bytes = per-") +
                          row("alltoall", "281474976710656", "bytes = per-rank"));
  REQUIRE(m.rows.size() == 4);
  CHECK(m.rows[0].dtype == Dtype::f32);
  CHECK(m.rows[1].dtype == Dtype::f16);
  CHECK(m.rows[1].bytes == 64);  // a vector has no blocks
  CHECK(m.rows[2].dtype == Dtype::i32);
  CHECK(m.rows[2].bytes == 8 * 64);
  CHECK(m.rows[3].bytes == 64);
  REQUIRE(m.skipped.size() == 1);
  CHECK(m.skipped[0].reason == "of more than 1 PiB");  // 8 times 256 TiB
  CHECK(read("# nThread 1\n# " + perfs + "\n").rows.empty());
}

TEST_CASE("a table's sizes may have units, the binary ones of nccl-tests' -b among them") {
  const auto bytes = [](const std::string& size) {
    return read("nodes,gpus_per_node,collective,bytes,time_us\n1,2,all_reduce," + size + ",9.5\n").rows.at(0).bytes;
  };
  CHECK(bytes("64KiB") == 65536);
  CHECK(bytes("64 KiB") == 65536);
  CHECK(bytes("1M") == 1048576);
  CHECK(bytes("2G") == 2147483648);
  CHECK(bytes("1.5MB") == 1500000);
  CHECK(bytes("512 B") == 512);
  for (const char* other : {"64kib", "1.5", "-1M", "M", "1M 2M"}) {
    CAPTURE(other);
    CHECK(wrong("nodes,gpus_per_node,collective,bytes,time_us\n1,2,all_reduce," + std::string(other) + ",9.5\n")
              .ends_with(":2: bytes: found \"" + std::string(other) +
                         "\", expected a whole number, or one with a unit such as \"64KiB\""));
  }
  // Not of nodes.
  CHECK(wrong("nodes,collective,bytes,time_us\n1K,all_reduce,64,9.5\n")
            .ends_with("found \"1K\", expected a whole number"));
}

TEST_CASE("what the caller states fills in what is missing, and chooses among what is there") {
  const std::string text =
      kColumns + "Alpha,4,8,all_reduce,x,,64,1,,,,\nBeta,2,8,all_gather,x,,64,1,,,,\n,,,all_reduce,x,,64,1,,,,\n";
  const Measured m = read(text, {.collective = Collective::allreduce, .nodes = 4, .cards = 8, .system = "alpha"});
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[1].system == "alpha");
  CHECK(m.rows[1].nodes == 4);
  CHECK(has_reason(m, "another collective than --collective allreduce"));
  CHECK(has_reason(read(text, {.nodes = 2, .cards = {}, .system = ""}), "on other than 2 nodes (--nodes)"));
  CHECK(has_reason(read(text, {.nodes = {}, .cards = {}, .system = "beta"}), "another system than --system beta"));
}

TEST_CASE("tables with mistakes are refused with file, line and what was expected") {
  CHECK(wrong(kColumns + "a,b\n").find(":2: has 2 fields, expected 12 as in the first line") != std::string::npos);
  CHECK(
      wrong(kColumns + "s,2,4,all_reduce,x,,many,1,,,,\n").find(":2: bytes: found \"many\", expected a whole number") !=
      std::string::npos);
  CHECK(wrong(kColumns + "s,2,4,all_reduce,x,,64,-1,,,,\n").find(":2: time_us: found \"-1\"") != std::string::npos);
  for (const char* other : {"time_ms", "time_s", "time_ns", "algbw_Gbps", "busbw_MBps"}) {
    CAPTURE(other);
    CHECK(wrong("collective,bytes," + std::string(other) + "\n").find("expected \"time_us\", in microseconds") !=
          std::string::npos);
  }
  CHECK(wrong("collective,bytes,time_uss\n").find("unknown column \"time_uss\"; did you mean \"time_us\"?") !=
        std::string::npos);
  CHECK(wrong("collective,bytes,note\n").find("there is no column \"time_us\"") != std::string::npos);
  CHECK(wrong("hello\nworld\n").find("no measurements found; expected CSV") != std::string::npos);
  CHECK(wrong("").find("no measurements found") != std::string::npos);
}

TEST_CASE("nccl-tests: collective, hosts and columns are found in the text") {
  const Measured m = read(R"(+ mpirun -np 4 ./build/all_reduce_perf -b 8 -e 1K -f 2
# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  11111 on    node-a device  0 [0x07] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid  11112 on    node-a device  1 [0x0f] NVIDIA A100-SXM4-40GB
#  Rank  2 Group  0 Pid  22221 on    node-b device  0 [0x07] NVIDIA A100-SXM4-40GB
#  Rank  3 Group  0 Pid  22222 on    node-b device  1 [0x0f] NVIDIA A100-SXM4-40GB
NCCL version 2.19.3+cuda12.3
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       
           8             2     float     sum      -1    22.15    0.00    0.00      0    21.90    0.00    0.00      0
        1024           512      half     sum      -1    23.06    0.04    0.07      0    22.84    0.04    0.07    N/A
        2048          1024      half     sum      -1    23.06    0.04    0.07      3    22.84    0.04    0.07      0
        4096  garbled line of 9 words here and so
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0353 
)");
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[0].kind == Collective::allreduce);
  CHECK(m.rows[0].nodes == 2);
  CHECK(m.rows[0].cards == 2);
  CHECK(m.rows[0].time_us == 22.15);
  CHECK(m.rows[0].at.line == 14);
  CHECK(m.rows[1].dtype == Dtype::f16);
  CHECK(has_reason(m, "wrong elements"));
  CHECK(has_reason(m, "not a line of nccl-tests' table"));
}

TEST_CASE("nccl-tests: older columns, tags of job starters and several tests in one file") {
  // Without root and #wrong, and an operation that is left out; the second test names itself.
  const Measured m = read(
      "[1,0]<stdout>:# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: "
      "1\n"
      "[1,0]<stdout>:#   Rank  0 Pid  1 on       h1 device  0 [0x07] Tesla V100\n"
      "[1,0]<stdout>:#   Rank  1 Pid  1 on       h1 device  1 [0x08] Tesla V100\n"
      "[1,0]<stdout>:#                                                     out-of-place                    in-place\n"
      "[1,0]<stdout>:#       size         count    type   redop     time   algbw   busbw  error     time   algbw   "
      "busbw  error\n"
      "[1,0]<stdout>:#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
      "(GB/s)\n"
      "[1,0]<stdout>:           8             2   float             57.61    0.00    0.00  0e+00    57.12    0.00    "
      "0.00  0e+00\n"
      "[1,0]<stdout>:          16             4   float     sum     58.01    0.00    0.00  4e-07    57.12    0.00    "
      "0.00  4e-07\n"
      "# Collective test starting: sendrecv_perf\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 "
      "graph: 0\n"
      "#  Rank  0 Group  0 Pid  5 on  h1 device  0 [0000:0c:00] AMD Instinct MI300X\n"
      "#  Rank  1 Group  0 Pid  6 on  h2 device  0 [0000:0c:00] AMD Instinct MI300X\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  "
      "#wrong\n"
      "          64            16     float    none      -1     9.10    0.01    0.01     N/A     9.00    0.01    0.01  "
      "   N/A\n",
      {.collective = {}, .nodes = {}, .cards = {}, .system = ""});
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].kind == Collective::sendrecv);
  CHECK(m.rows[0].nodes == 2);
  CHECK(m.rows[0].cards == 1);
  CHECK(m.skipped.size() == 2);
  CHECK(has_reason(m, "state --collective"));
}

TEST_CASE("nccl-tests: the collective may be stated, concurrent communicators are skipped") {
  const std::string table =
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "           8             2   float     sum    57.61    0.00    0.00  0e+00    57.12    0.00    0.00  0e+00\n";
  const Measured m = read("# nThread 1 nGpus 2 minBytes 8\n" + table,
                          {.collective = Collective::reduce, .nodes = 1, .cards = 2, .system = "x"});
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].collective == "reduce");
  CHECK(m.rows[0].system == "x");
  CHECK(m.rows[0].time_us == 57.61);
  CHECK(has_reason(
      read("# nThread 1 nGpus 1\n#  Rank  0 Group  0 Pid 1 on a device 0\n#  Rank  0 Group  1 Pid 2 on b device 0\n" +
           table),
      "several communicators"));
}

TEST_CASE("tables as programs write them: whole numbers as floats, words for nothing, comments, joined tables") {
  const Measured m = read(
      "# by OSU Micro-Benchmarks, nThread 1\n"
      "system,nodes,gpus_per_node,collective,bytes,time_us,busbw_GBps\n"
      "s,4.0,1e0,all_reduce,1048576.0,100,nan\n"
      "s,4,1,all_reduce,1.048576e6,NA,15.73\n"
      "   \n"
      "# of the second day\n"
      "system,nodes,gpus_per_node,collective,bytes,time_us,busbw_GBps\n"
      "s,4,1,all_reduce,2097152,200,N/A\n"
      "# end\n");
  REQUIRE(m.rows.size() == 3);
  CHECK(m.rows[0].nodes == 4);
  CHECK(m.rows[0].cards == 1);
  CHECK(m.rows[0].bytes == 1048576);
  CHECK(m.rows[1].bytes == 1048576);
  CHECK(m.rows[1].time_us == doctest::Approx(1048576 * 1.5 / 15.73 / 1e3));
  CHECK(m.rows[2].time_us == 200);
  CHECK(m.skipped.empty());
}

TEST_CASE("a log of several programs: what is another's is no line of OSU's table") {
  const std::string osu = "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n1024   3.25\n";
  const StatedOfRows stated{.collective = {}, .nodes = 2, .cards = 4, .system = ""};
  for (const char* others :
       {"# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576\n#  size  count  type  redop  root  time  algbw  busbw "
        "#wrong  time  algbw  busbw #wrong\n1048576  262144  float  sum  -1  120.1  8.73  15.28  0  119.9  8.75  15.30 "
        " 0\n",
        "# Benchmarking Allreduce\n#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n4  1000  1.2  1.4  "
        "1.3\n"}) {
    CAPTURE(others);
    const Measured m = read(osu + others, stated);
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].time_us == 3.25);
    REQUIRE(m.remarks.size() == 1);
    CHECK(m.remarks[0].find("another program's table begins, which is not read") != std::string::npos);
  }
}

TEST_CASE("rccl-tests of calls in place alone say so above the names of the columns") {
  const auto in_place = [](const char* above) {
    const Measured m =
        read("# all_reduce_perf\n# nThread 1 nGpus 8 minBytes 8\n#   " + std::string(above) +
                 "\n#  size  count  type  redop  root  time  algbw  busbw #wrong\n1024  256  float  sum  -1  20  "
                 "0.0512  0.0896  0\n",
             {.collective = {}, .nodes = 1, .cards = 8, .system = ""});
    REQUIRE(m.rows.size() == 1);
    return m.rows[0].in_place;
  };
  CHECK(in_place("in-place"));
  CHECK(!in_place("out-of-place"));
  CHECK(!in_place("out-of-place  in-place"));
}

TEST_CASE("OSU: titles name the collective, sizes per rank become nccl-tests'") {
  const auto osu = [](const std::string& title, const std::string& rows) {
    return read("mpirun ...\n\n# OSU " + title + "\n" + rows, {.collective = {}, .nodes = 2, .cards = 4, .system = ""});
  };
  const Measured all_reduce = osu("MPI Allreduce Latency Test v7.3",
                                  "# Datatype: MPI_INT.\n# Size       Avg Latency(us)\n4                       "
                                  "3.25\n1048576               436.12\n");
  REQUIRE(all_reduce.rows.size() == 2);
  CHECK(all_reduce.rows[1].kind == Collective::allreduce);
  CHECK(all_reduce.rows[1].bytes == 1048576);
  CHECK(all_reduce.rows[1].time_us == 436.12);
  CHECK(all_reduce.rows[1].dtype == Dtype::i32);
  CHECK(all_reduce.rows[1].algorithm == "MPI");
  const std::string full =
      "# Size   Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n1024  10.50   9.00  12.00  1000\n";
  CHECK(osu("MPI-CUDA Allgather Latency Test v5.9", full).rows.at(0).bytes == 8 * 1024);
  CHECK(osu("MPI-CUDA Allgather Latency Test v5.9", full).rows.at(0).algorithm == "auto");
  CHECK(osu("NCCL-CUDA Allgather Latency Test v7.0", full).rows.at(0).algorithm == "NCCL default (auto)");
  CHECK(osu("MPI All-to-All Personalized Exchange Latency Test v7.5", full).rows.at(0).bytes == 8 * 1024);
  CHECK(osu("MPI Reduce_scatter Latency Test v7.5", full).rows.at(0).bytes == 1024);
  CHECK(osu("MPI Barrier Latency Test v7.5", "# Avg Latency(us)\n            12.57\n").rows.at(0).time_us == 12.57);
  CHECK(has_reason(osu("MPI Bandwidth Test v7.5", "# Size      Bandwidth (MB/s)\n1        0.95\n"),
                   "\"OSU MPI Bandwidth Test\""));
  CHECK(has_reason(osu("MPI Non-blocking Allreduce Latency Test v7.5", full), "Non-blocking"));
}

TEST_CASE("OSU: titles without their \"#\", and tables without a title") {
  const StatedOfRows two{.collective = {}, .nodes = 2, .cards = 4, .system = ""};
  const std::string table = "Size       Avg Latency(us)\n1024       10.50\n";
  for (const std::string& text : {"OSU MPI Allgather Latency Test v7.5\n" + table,
                                  "Running the OSU tests\n\n  OSU MPI Allgather Latency Test v7.5\n  # " + table}) {
    const Measured m = read(text, two);
    CAPTURE(text);
    REQUIRE(m.rows.size() == 1);
    CHECK(m.skipped.empty());
    CHECK(m.rows[0].kind == Collective::allgather);
    CHECK(m.rows[0].bytes == 8 * 1024);
    CHECK(m.rows[0].time_us == 10.50);
    CHECK(m.rows[0].algorithm == "MPI");
  }
  // A sentence is no title.
  for (const char* sentence :
       {"OSU micro-benchmarks Test run on node 3\n", "OSU MPI Test\n", "OSU Allreduce Test completed\n"})
    CHECK(read("# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n" +
                   (sentence + std::string("2048  4.5\n")),
               two)
              .rows.size() == 1);
  CHECK(has_reason(read("OSU MPI Bandwidth Test v7.5\nSize  Bandwidth (MB/s)\n1  0.95\n", two),
                   "OSU MPI Bandwidth Test"));
  for (const std::string& header : {"# " + table, "#" + table, table}) {
    CAPTURE(header);
    CHECK(has_reason(read(header, two), "the file does not say which collective; state --collective"));
    const auto bytes = [&](Collective kind) {
      const Measured m = read(header, {.collective = kind, .nodes = 2, .cards = 4, .system = ""});
      REQUIRE(m.rows.size() == 1);
      CHECK(m.rows[0].time_us == 10.50);
      CHECK(m.rows[0].algorithm == "auto");  // nobody knows of which library
      return m.rows[0].bytes;
    };
    CHECK(bytes(Collective::allreduce) == 1024);
    CHECK(bytes(Collective::alltoall) == 8 * 1024);
    CHECK(bytes(Collective::reduce_scatter) == 1024);
  }
}

TEST_CASE("gccl bench: its choice is auto, its wrong results are none") {
  const auto run = [](const char* more) {
    return std::string(R"({"collective":"allreduce","algorithm":"direct","bytes":64,"dtype":"f16","in_place":true,
  "time_us":1.5,)") +
           more + "}";
  };
  const std::string text = R"({"schema":"gccl/bench/1","engine":"shm,tcp","ranks":6,"nodes":2,"runs":[)" +
                           run(R"("auto":true,"wrong":0)") + ",\n" + run(R"("auto":false,"wrong":0)") + ",\n" +
                           run(R"("auto":true,"wrong":3)") + "]}\n";
  const Measured m = read(text);
  REQUIRE(m.rows.size() == 2);
  const Measurement& first = m.rows[0];
  CHECK(first.algorithm == "auto");
  CHECK(first.nodes == 2);
  CHECK(first.cards == 3);
  CHECK(first.kind == Collective::allreduce);
  CHECK(first.bytes == 64);
  CHECK(first.time_us == 1.5);
  CHECK(first.dtype == Dtype::f16);
  CHECK(first.in_place);
  CHECK(first.at.line == 2);
  CHECK(first.note == "by shm,tcp; dtype=f16");  // the same of all sizes, whatever the planner chose
  CHECK(!first.slicing);
  CHECK(m.rows[1].algorithm == "direct");
  CHECK(m.rows[1].at.line == 4);
  CHECK(has_reason(m, "with wrong elements"));
  const Measured cut = read(R"({"schema":"gccl/bench/1","engine":"shm","ranks":4,"nodes":1,"runs":[)" +
                            run(R"("auto":false,"wrong":0,"chunks":64,"channels":2,"window":4,"root":3)") + "]}\n");
  REQUIRE(cut.rows.size() == 1);
  CHECK(cut.rows[0].slicing == Slicing{.shares = 64, .lanes = 2, .window = 4});
  CHECK(cut.rows[0].root == 3);
  const Measured fine = read(R"({"schema":"gccl/bench/1","engine":"shm","ranks":4,"nodes":1,"runs":[)" +
                             run(R"("auto":false,"wrong":0,"chunks":8192,"channels":1,"window":4)") + ",\n" +
                             run(R"("auto":true,"wrong":0,"chunks":8192,"channels":1,"window":4)") + "]}\n");
  CHECK(fine.rows.size() == 1);
  CHECK(has_reason(fine, "cut up into more than 4096 chunks or 64 channels"));
  const auto on_nodes = [&](const char* counts) {
    return read(R"({"schema":"gccl/bench/1","engine":"tcp","ranks":4,"nodes":2,"ranks_per_node":)" +
                std::string(counts) + R"(,"runs":[)" + run(R"("auto":true,"wrong":0)") + "]}\n");
  };
  CHECK(on_nodes("[2,2]").rows.size() == 1);
  CHECK(on_nodes("[3,1]").rows.empty());
  CHECK(has_reason(on_nodes("[3,1]"), "nodes with different numbers of ranks"));
  CHECK(wrong("{\n \"schema\": \"gccl/bench/1\",\n \"runs\": [").find("not valid JSON at line 3") != std::string::npos);
  CHECK(wrong("{\"schema\":\"gccl/scenario/1\",\n\"runs\":[]}").find("no measurements found") != std::string::npos);
  CHECK(wrong(R"({"schema":"gccl/bench/2","runs":[]})").find("expected \"gccl/bench/1\"") != std::string::npos);
  CHECK(wrong(R"({"schema":"gccl/bench/1","ranks":2,"nodes":1,"runs":[{"wrong":0}]})").find("/runs/0") !=
        std::string::npos);
}

TEST_CASE("NCCL Inspector: the median over calls of the slowest rank") {
  const auto line = [](int rank, int call, double us, const std::string& coll, std::size_t bytes, double algbw) {
    return R"({"header":{"id":"0xab","rank":)" + std::to_string(rank) +
           R"(,"n_ranks":8,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0","hostname":"h","pid":1},"coll_perf":{"coll":")" +
           coll + R"(","coll_sn":)" + std::to_string(call) + R"(,"coll_msg_size_bytes":)" + std::to_string(bytes) +
           R"(,"coll_exec_time_us":)" + std::to_string(us) +
           R"(,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":)" + std::to_string(algbw) + "}}\n";
  };
  // Calls of 40, 60 (the slower of two ranks) and 50 us; a reduce-scatter's size is that of a rank's block.
  const Measured m =
      read(line(0, 1, 40, "AllReduce", 4096, 4096 / 40e3) + line(0, 2, 60, "AllReduce", 4096, 4096 / 60e3) +
           line(3, 2, 45, "AllReduce", 4096, 4096 / 45e3) + line(0, 3, 50, "AllReduce", 4096, 4096 / 50e3) +
           line(0, 4, 70, "ReduceScatter", 65536, 8 * 65536 / 70e3) + line(0, 5, 0, "ReduceScatter", 65536, 0) +
           R"({"header":{"id":"0xab","rank":0,"n_ranks":8,"nnodes":2},"p2p_perf":{"p2p":"Send"}})" + "\n" +
           R"({"header":{"id":"0xab","rank":0,"n_r)");
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[0].kind == Collective::allreduce);
  CHECK(m.rows[0].time_us == 50);
  CHECK(m.rows[0].bytes == 4096);
  CHECK(m.rows[0].nodes == 2);
  CHECK(m.rows[0].cards == 4);
  CHECK(m.rows[1].bytes == 8 * 65536);
  CHECK(m.rows[1].time_us == 70);
  CHECK(kind_of_note(m.rows[0].note) == kind_of_note(m.rows[1].note));  // of three calls and of one
  CHECK(has_reason(m, "point to point"));
  CHECK(has_reason(m, "its time is 0"));
  CHECK(has_reason(m, "cut short"));
  CHECK(wrong("{\"header\":1}\nnonsense\n{}\n").find(":2: ") != std::string::npos);
}

TEST_CASE("NCCL Inspector: records without a header have that of the record above them") {
  const auto header = [](const std::string& id, int ranks, int nodes) {
    return R"({"header":{"id":")" + id + R"(","rank":0,"n_ranks":)" + std::to_string(ranks) + R"(,"nnodes":)" +
           std::to_string(nodes) + R"(},"metadata":{"pid":1},"dump_stats":{"coll_records":1}})" + "\n";
  };
  const auto call = [](int number, double us) {
    return R"({"coll_perf":{"coll":"AllReduce","coll_sn":)" + std::to_string(number) +
           R"(,"coll_msg_size_bytes":4096,"coll_exec_time_us":)" + std::to_string(us) + "}}\n";
  };
  const Measured m = read("\n" + header("0xa", 8, 2) + call(1, 40) + call(2, 60) + R"({"p2p_perf":{"p2p":"Send"}})" +
                          "\n" + R"({"proxy_trace":{}})" + "\n" + header("0xb", 16, 2) + call(1, 70));
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[0].cards == 4);
  CHECK(m.rows[0].time_us == 50);
  CHECK(m.rows[1].cards == 8);
  CHECK(m.rows[1].time_us == 70);
  // The file that a log was rotated into may begin between a header and its records.
  const Measured rotated = read(call(1, 40) + header("0xa", 8, 2) + call(2, 60));
  REQUIRE(rotated.rows.size() == 1);
  CHECK(rotated.rows[0].time_us == 60);
  CHECK(has_reason(rotated, "no record above it has a header"));
}
