// Logs as batch systems keep them: several tests in a file, tags before lines, lines that are cut short, tests of other
// things than collectives. Figures are those that the logs print.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/measured/read/read.hpp"
#include "sim/measured/validation/outliers.hpp"
#include "tests/measured/reading.hpp"
#include "tests/measured/table_text.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// What nccl-tests 2.17 print on one host of two cards: its name where it is given, then lines of the table.
std::string nccl_test(const std::string& program, const std::string& lines, const std::string& time = "time",
                      const std::string& more_columns = "") {
  return (program.empty() ? "" : "# Collective test starting: " + program + "\n") +
         "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1\n"
         "#  Rank  0 Group  0 Pid 4000 on  h1 device  0 [0000:07:00] NVIDIA H100\n"
         "#  Rank  1 Group  0 Pid 4000 on  h1 device  1 [0000:0a:00] NVIDIA H100\n"
         "#       size         count      type   redop    root     " +
         time + "   algbw   busbw  #wrong     " + time + "   algbw   busbw  #wrong" + more_columns + "\n" + lines;
}

const std::string kLine =
    "     1048576        262144     float     sum      -1    25.24   41.54   72.70     0    24.74   42.39   74.18     "
    "0";

std::string osu_test(const std::string& title, const std::string& lines) { return "# OSU " + title + "\n" + lines; }

const StatedOfRows kOneNode{.collective = {}, .nodes = 1, .cards = 2, .system = ""};

}  // namespace

TEST_CASE("nccl-tests: every job starter's tags are taken away") {
  const std::string log = nccl_test("all_reduce_perf", kLine + "\n");
  for (const std::string tag : {"",
                                "0: ",
                                " 0: ",
                                "00: ",
                                "[1,0]<stdout>:",
                                "[1,0]<stdout>: ",
                                "[prterun-host-99@1,0]<stdout>: ",
                                "[0] ",
                                "[default0]:",
                                "[default0]: ",
                                "node-7: ",
                                "gpu01.cluster.example:",
                                "x3005c0s13b0n0.hsn.cm.example 0: ",
                                "[1,0][host-7:4711]<stdout>: ",
                                "launcher-1  | ",
                                "[pod/nccl-launcher-x2f/launcher] ",
                                "2026-11-28T07:22:10.123456789Z ",
                                "2026-11-28T07:22:10+01:00 ",
                                "2026-11-28T07:22:10.5Z stdout F ",
                                "2026-11-28T07:22:10.5Z [1,0]<stdout>:",
                                "Mon Jan  1 12:00:00 2026<stdout>:",
                                "2026-11-28 07:22:10,123 INFO ",
                                "2026-11-28 07:22:10 ",
                                "\x1b[0m",
                                "\x1b[1;32m0: ",
                                "\x1b[36mworker-0\x1b[0m | ",
                                "Nov 28 07:22:10 node-7 job[4711]: ",
                                "07:22:10 ",
                                "[2026-11-28 07:22:10,123] [INFO] ",
                                "run-tests\tall_reduce\t2026-11-28T07:22:10.1234567Z ",
                                "> ",
                                "(worker pid=4711, ip=10.0.0.1) "}) {
    std::string tagged;
    for (std::size_t at = 0; at < log.size();) {
      const std::size_t end = log.find('\n', at);
      tagged += tag + log.substr(at, end + 1 - at);
      at = end + 1;
    }
    CAPTURE(tag);
    const Measured m = read(tagged);
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].kind == Collective::allreduce);
    CHECK(m.rows[0].cards == 2);
    CHECK(m.rows[0].bytes == 1048576);
    CHECK(m.rows[0].time_us == 25.24);
    CHECK(m.rows[0].algorithm == "NCCL default (auto)");
  }
}

TEST_CASE("nccl-tests: lines of a log without what stands before all others are read as they are") {
  const std::string header = nccl_test("all_reduce_perf", "");
  std::string log;
  for (std::size_t at = 0; at < header.size(); at = header.find('\n', at) + 1)
    log += "Nov 28 07:22:10 h1 job[7]: " + header.substr(at, header.find('\n', at) + 1 - at);
  CHECK(read(log + "Dec  1 07:22:11 h1 job[7]: " + kLine + "\n" + kLine + "\n").rows.size() == 2);
  // Cut within those words, and behind them.
  const Measured cut =
      read(log + "Nov 28 07:22:11\nNov 28 07:22:11 h1 job[7]:\nNov 28 07:22:11 h1 job[7]: 1048576 7\n");
  CHECK(cut.skipped.size() == 1);
  CHECK(has_reason(cut, "expected the 13 words"));
  // "#wrong" of a header whose "#" is lost begins no comment.
  CHECK(has_reason(read("size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n" + kLine + "\n"),
                   "the file does not say which collective"));
}

TEST_CASE("nccl-tests: colours within lines and line ends of any kind are none of a line's words") {
  const std::string log = nccl_test("all_reduce_perf", kLine + "\n");
  const auto with = [&](const std::string& end, const std::string& before) {
    std::string text;
    for (const char c : log) text += c == '\n' ? end : std::string(1, c);
    return before + text;
  };
  for (const std::string& text : {with("\r\n", ""), with("\r\r\n", ""), with("\r", ""), with("\x1b[0m\n", ""),
                                  with("\x1b[K\n", ""), with("\n", "10 %\r20 %\r")}) {
    const Measured m = read(text);
    CHECK(m.skipped.empty());
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].time_us == 25.24);
  }
  CHECK(read(with("\r\n", "")).rows[0].at.line == 6);
  CHECK(read(with("\r\r\n", "")).rows[0].at.line == 6);
}

TEST_CASE("nccl-tests: sizes with units are named, and a table of size and measures alone is read") {
  std::string in_units = kLine;
  in_units.replace(in_units.find("1048576"), 7, "     1M");
  const Measured m = read(nccl_test("all_reduce_perf", in_units + "\n" + kLine + "\n"));
  CHECK(m.rows.size() == 1);
  CHECK(has_reason(m, "found \"1M\", expected a size in bytes"));
  const Measured shortened =
      read("#  size  time  algbw  busbw\n#  (B)  (us)  (GB/s)  (GB/s)\n1048576  25.24  41.54  41.54\n",
           {.collective = Collective::allreduce, .nodes = 1, .cards = 2, .system = ""});
  REQUIRE(shortened.rows.size() == 1);
  CHECK(shortened.rows[0].time_us == 25.24);
  CHECK(has_reason(read("#  size  time  algbw  busbw\n1048576  25.24  41.54  41.54\n"),
                   "the file does not say which collective, on how many nodes and on how many cards of a node; state "
                   "--collective, --nodes and --cards-per-node"));
}

TEST_CASE("a word before a colon is no host's name, unless it also stands before a comment") {
  const StatedOfRows two{.collective = {}, .nodes = 1, .cards = 2, .system = ""};
  const std::string table = osu_test("MPI Allreduce Latency Test v7.5", "8   3.25\nelapsed: 16   9.99\n");
  CHECK(read(table, two).rows.size() == 1);
  CHECK(read("elapsed: # of this job\n" + table, two).rows.size() == 2);
}

TEST_CASE("nccl-tests: a table is of the program that stands above it, and of no other") {
  // hypercube_perf is one of nccl-tests; its times are not those of the all-reduce before it.
  const Measured two = read(nccl_test("all_reduce_perf", kLine + "\n") + nccl_test("hypercube_perf", kLine + "\n"));
  CHECK(two.rows.size() == 1);
  CHECK(has_reason(two, "no counterpart of the collective \"hypercube\""));
  const std::string older = nccl_test("", kLine + "\n");  // does not name itself
  const Measured by_command =
      read("+ ./build/all_reduce_perf -g 2\n" + older + "+ ./build/hypercube_perf -g 2\n" + older);
  CHECK(by_command.rows.size() == 1);
  CHECK(has_reason(by_command, "\"hypercube\""));
  // The second test of a file in which one program is named is of that program; where two are, it may be of any.
  CHECK(read("+ ./build/all_reduce_perf -g 2\n" + older + older).rows.size() == 2);
  const Measured unclear = read("+ ./build/all_reduce_perf\n" + older + "+ ./build/all_gather_perf\n" + older + older);
  CHECK(unclear.rows.size() == 2);
  CHECK(has_reason(unclear, "state --collective"));
  // A list of programs names none, nor does the file that a log is written to.
  CHECK(has_reason(read("all_gather_perf  all_reduce_perf  alltoall_perf\n" + older), "state --collective"));
  const Measured piped = read("$ ./all_reduce_perf -g 2 | tee logs/alltoall_perf.log\n" + older);
  REQUIRE(piped.rows.size() == 1);
  CHECK(piped.rows[0].kind == Collective::allreduce);
  CHECK(read("+ tee alltoall_perf.log\n+ /usr/bin/all_reduce_perf_mpi\n" + older).rows.at(0).kind ==
        Collective::allreduce);
  CHECK(read("+ /usr/bin/all_reduce_perf_mpi\n+ tee alltoall_perf.log\n" + older).rows.at(0).kind ==
        Collective::allreduce);
}

TEST_CASE("nccl-tests: times of day and of iterations are no measures, times of processors no times of a collective") {
  std::string unchecked = kLine;
  for (std::size_t at; (at = unchecked.find("     0")) != unchecked.npos;) unchecked.replace(at, 6, "   N/A");
  const Measured stamped =
      read(nccl_test("all_reduce_perf", kLine + "  2025-01-05 10:11:12\n" + unchecked + "  2025-01-05 10:11:13\n",
                     "time", "           timestamp"));
  REQUIRE(stamped.rows.size() == 2);
  CHECK(stamped.rows[0].time_us == 25.24);
  CHECK(stamped.rows[1].time_us == 25.24);
  const Measured of_processor = read(nccl_test("all_reduce_perf", kLine + "\n", "cputime"));
  CHECK(of_processor.rows.empty());
  CHECK(has_reason(of_processor, "cputime"));
  const Measured each = read(
      "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 2\n"
      "# size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min "
      "i_max "
      "i_p99 i_cv%\n 8 2 float sum -1 25.24 1 1 0 24.1 30.2 29.5 3.0 26.1 1 1 0 24.0 31.0 29.0 4.0\n",
      kOneNode);
  REQUIRE(each.rows.size() == 1);
  CHECK(each.rows[0].time_us == 25.24);
}

TEST_CASE("nccl-tests: lines that are cut short are said, and never read as what they are not") {
  // With its last words missing, a broadcast's root of 3 stands where its time would be counted from the end.
  const std::string line = "64 16 float none 3 9.10 0.01 0.01 0 9.20 0.01 0.01 0";
  for (std::size_t end = line.find(' '); end != line.npos; end = line.find(' ', end + 1)) {
    CAPTURE(line.substr(0, end));
    const Measured m = read(nccl_test("broadcast_perf", line + "\n" + line.substr(0, end) + "\n"));
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].time_us == 9.10);
    CHECK(m.skipped.size() == 1);
    CHECK(has_reason(m, "not a line of nccl-tests' table: expected the 13 words"));
  }
}

TEST_CASE("nccl-tests: processes that each are a rank 0 are no ranks of one job") {
  const Measured m = read(
      "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1\n# nThread 1 nGpus 1\n"
      "#  Rank  0 Group  0 Pid  1 on  h1 device  0 [0x07] A100\n"
      "#  Rank  0 Group  0 Pid  2 on  h1 device  0 [0x07] A100\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n" +
      kLine + "\n" + kLine + "\n");
  CHECK(m.rows.empty());
  CHECK(has_reason(m, "several processes"));
}

namespace {

std::string ranks(const std::vector<int>& numbers, const std::string& bus = "0000:0") {
  std::string lines;
  for (const int r : numbers)
    lines += fmt::format("#  Rank {:2} Group  0 Pid 4000 on  h1 device {:2} [{}{}:00] NVIDIA H100\n", r, r, bus,
                         bus.ends_with(':') ? 0 : r);
  return lines;
}
const std::string kNames =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n";

}  // namespace

TEST_CASE("nccl-tests: where lines of ranks are missing, or nodes have one name, nodes and cards are to be stated") {
  const std::string four = "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 4 minBytes 8\n";
  const std::string row = "1048576 262144 float sum -1 25.24 41.54 62.31 0 24.74 42.39 63.58 0\n";
  const Measured whole = read(four + ranks({0, 1, 2, 3}) + kNames + row);
  REQUIRE(whole.rows.size() == 1);
  CHECK(whole.rows[0].cards == 4);
  // The list of a process's cards was cut, or a line of it is not in the log.
  for (const std::string& found :
       {ranks({0, 1, 2}), ranks({0, 1, 3}), ranks({0, 1, 2, 4}), ranks({0, 1, 2, 3}, "0000:")}) {
    CAPTURE(found);
    const Measured m = read(four + found + kNames + row);
    CHECK(m.rows.empty());
    CHECK(has_reason(m, "state --nodes and --cards-per-node"));
    const Measured stated = read(four + found + kNames + row, {.collective = {}, .nodes = 2, .cards = 2, .system = ""});
    REQUIRE(stated.rows.size() == 1);
    CHECK(stated.rows[0].nodes == 2);
  }
  // Older versions gave the bus alone, which cards of a virtual machine may have in common.
  std::string one_bus = ranks({0, 1, 2, 3}, "0000:");
  for (std::size_t at; (at = one_bus.find("0000:0:00")) != one_bus.npos;) one_bus.replace(at, 9, "0x00");
  CHECK(read(four + one_bus + kNames + row).rows.size() == 1);
  // The last two of eight, of a process each: their absence shows in the bandwidth.
  const Measured six =
      read("# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1\n" + ranks({0, 1, 2, 3, 4, 5}) + kNames +
           "1048576 262144 float sum -1 25.24 41.54 72.70 0 24.74 42.39 74.18 0\n");
  REQUIRE(six.remarks.size() == 1);
  CHECK(has(six.remarks[0], "on 6 ranks are busbw 69.24 GB/s, found 72.70"));
}

TEST_CASE("nccl-tests: the first ones' times are milliseconds") {
  const Measured m = read(
      "mpirun -np 1 build/all_reduce_perf -b 1 -g 2\n# nThread 1 nGpus 2 minBytes 1 maxBytes 67108864\n" +
      ranks({0, 1}) +
      "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
      "     1048576        262144   float     sum    0.124   8.46   8.46      N/A    0.125   8.39   8.39      N/A\n");
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].time_us == doctest::Approx(124));
  CHECK(m.remarks.empty());
}

TEST_CASE("nccl-tests: a largest difference that is too large is a wrong result") {
  const Measured m = read(
      "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 2\n" + ranks({0, 1}) +
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "     1048576        262144   float     sum    40.00   26.21   26.21  4e-07    41.00   25.58   25.58  4e-07\n"
      "     2097152        524288   float     sum    60.00   34.95   34.95  1e+00*   61.00   34.38   34.38  1e+00*\n");
  CHECK(m.rows.size() == 1);
  CHECK(has_reason(m, "wrong elements"));
}

TEST_CASE("rccl-tests: their settings begin a test, their columns name the algorithm, their types are known") {
  const auto test = [](const std::string& program, int device, const std::string& row) {
    return "+ ./build/" + program +
           "\n# nThread: 1 nGpus: 1 minBytes: 1048576 maxBytes: 4194304 step: 2(factor) warmupIters: 5 iters: 20\n"
           "#   Rank  0 Pid  37300 on   g100 device  0 [0000:05:00] AMD Instinct MI250X\n#   Rank  1 Pid  37301 on   "
           "g100 "
           "device  1 [0000:3" +
           std::to_string(device) + ":00] AMD Instinct MI250X\n" + row;
  };
  const Measured two = read(test("all_reduce_perf", 1, kNames + "8 2 float sum -1 25 1 1 0 25 1 1 0\n") +
                            test("all_gather_perf", 1, kNames + "8 2 float none -1 25 1 1 0 25 1 1 0\n"));
  CHECK(two.skipped.empty());
  REQUIRE(two.rows.size() == 2);
  CHECK(two.rows[1].kind == Collective::allgather);
  const std::string names = kNames.substr(0, kNames.size() - 1) + "     algo     proto   nchannels\n";
  const Measured chosen =
      read(test("all_reduce_perf", 1,
                names + "1048576 524288 fp8_e4m3 sum -1 76.26 13.75 13.75 0 76.43 13.72 13.72 0 TREE LL 32\n"
                        "1048576 524288 float 76.26 13.75 13.75 0 76.43 13.72 13.72 0 RING SIMPLE 32\n"
                        "1048576 524288 float sum -1 76.26 13.75 13.75 0 76.43 13.72 13.72 0 RING SIMPLE 32\n"));
  REQUIRE(chosen.rows.size() == 2);
  CHECK(chosen.rows[0].algorithm == "NCCL_ALGO=TREE");
  CHECK(chosen.rows[0].protocol == "LL");
  CHECK(size_of(chosen.rows[0].dtype) == 1);
  CHECK(chosen.rows[1].protocol == "SIMPLE");
}

TEST_CASE("nccl-tests: a test without a name is not of the file's only one where its operation contradicts that") {
  const std::string gather = nccl_test("all_gather_perf", "8 2 float none -1 25 1 1 0 25 1 1 0\n");
  const Measured m = read(gather + nccl_test("", "8 2 float none -1 25 1 1 0 25 1 1 0\n" + kLine + "\n"));
  CHECK(m.rows.size() == 2);
  CHECK(has_reason(m, "state --collective"));
}

TEST_CASE("tests in one file are curves each, whatever sizes they have") {
  std::string slow, fast;
  for (int k = 0; k < 12; ++k) {
    const auto line = [&](double us) {
      return fmt::format("{} {} float sum -1 {} 0 0 0 {} 0 0 0\n", 65536 << k, 16384 << k, us, us);
    };
    fast += line(30 + (2 << k));
    if (k % 2 == 0) slow += line(20 * (30 + (2 << k)));
  }
  const Measured m = read(nccl_test("all_reduce_perf", slow) + nccl_test("all_reduce_perf", fast));
  REQUIRE(m.rows.size() == 18);
  for (const std::string& why : outliers_of(m.rows)) CHECK(why == "");
}

TEST_CASE("JSON lines of something else hold no results, and that is said") {
  const Measured m = read("{\"level\":\"info\"}\n{\"level\":\"warning\"}\n");
  REQUIRE(m.remarks.size() == 1);
  CHECK(m.remarks[0].ends_with("looks like JSON lines of NCCL's Inspector, but none is of a call"));
}

TEST_CASE("OSU: other tests than blocking collectives of all ranks, and wrong results, are left out") {
  for (const char* title :
       {"MPI Neighborhood Allgather Latency Test v7.3",
        "MPI-CUDA Neighborhood All-to-All "
        "Personalized Exchange Latency Test v7.3",
        "MPI Non-Blocking Allreduce Latency Test v7.3", "MPI Persistent Allreduce Latency Test v7.5"}) {
    const Measured m = read(osu_test(title, "# Size       Avg Latency(us)\n1024   3.25\n"), kOneNode);
    CAPTURE(title);
    CHECK(m.rows.empty());
    CHECK(has_reason(m, "no counterpart"));
  }
  const Measured checked = read(osu_test("MPI Allreduce Latency Test v7.3",
                                         "# Datatype: MPI_INT.\n# Size       Avg Latency(us)        Validation\n"
                                         "1024   3.25    Pass\n2048  4.5   Fail\n"),
                                kOneNode);
  REQUIRE(checked.rows.size() == 1);
  CHECK(checked.rows[0].bytes == 1024);
  CHECK(has_reason(checked, "wrong elements"));
  CHECK(has_reason(read(osu_test("MPI Allreduce Latency Test v7.5",
                                 "# Datatype: MPI_LONG_DOUBLE.\n# Size       Avg Latency(us)\n1024   3.25\n"),
                        kOneNode),
                   "element type \"MPI_LONG_DOUBLE\""));
  const Measured barrier = read(osu_test("MPI Barrier Latency Test v7.3",
                                         "# Avg Latency(us)\n            12.57\n"
                                         "3 total processes killed (some possibly by mpirun during cleanup)\n"),
                                kOneNode);
  REQUIRE(barrier.rows.size() == 1);
  CHECK(barrier.rows[0].time_us == 12.57);
  CHECK(has_reason(barrier, "not a line of OSU's table"));
  CHECK(read("0: # OSU MPI Allreduce Latency Test v7.3\n0: # Size Avg Latency(us)\n0: 1024  3.25\n", kOneNode)
            .rows.size() == 1);
}

TEST_CASE("a file that holds no results says so") {
  const auto remark = [](const std::string& text) {
    const Measured m = read(text, kOneNode);
    CHECK(m.rows.empty());
    CHECK(m.skipped.empty());
    REQUIRE(m.remarks.size() == 1);
    return m.remarks[0];
  };
  CHECK(remark(nccl_test("all_reduce_perf", "h1: Test NCCL failure common.cu:1279\n"))
            .ends_with("looks like what nccl-tests print, but holds no results"));
  CHECK(remark(osu_test("MPI Init Test v7.3", "nprocs: 8, min: 200 ms\n"))
            .ends_with("looks like what an OSU benchmark prints, but holds no results"));
  CHECK(remark("#\n# OSU").ends_with("looks like what an OSU benchmark prints, but holds no results"));
  CHECK(remark(kColumns).ends_with("looks like a table, but holds no results"));
}

TEST_CASE("tables are read with semicolons, tabs and blanks around fields; comments above one are passed over") {
  const std::string row = "s,1,2,all_reduce,auto,,1024,12.5,,,here,\n";
  const auto with = [&](const std::string& separator) {
    std::string text;
    for (const char c : kColumns + row) text += c == ',' ? separator : std::string(1, c);
    return text;
  };
  for (const char* separator : {";", "\t", " , ", "; "}) {
    CAPTURE(separator);
    const Measured m = read(with(separator));
    CHECK(m.remarks.empty());
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].system == "s");
    CHECK(m.rows[0].time_us == 12.5);
    CHECK(m.rows[0].protocol == "");
    CHECK(m.rows[0].source == "here");
  }
  const Measured quoted =
      read("\"bytes\", \"time_us\" ,\"collective\", \"nodes\",\"gpus_per_node\"\n 64, 2.5, all_reduce,1,2\n");
  REQUIRE(quoted.rows.size() == 1);
  CHECK(quoted.rows[0].time_us == 2.5);
  // A decimal comma is no separator, and no decimal point.
  CHECK(has(wrong("bytes;time_us;collective\n64;2,5;all_reduce\n"), ":2: time_us: found \"2,5\", expected a number"));
  // "date" is two letters from "note" and four from what it means.
  const Measured dated = read("date,bytes,time_us,collective,nodes,gpus_per_node\n2026,64,2.5,all_reduce,1,2\n");
  CHECK(dated.rows.size() == 1);
  REQUIRE(dated.remarks.size() == 1);
  CHECK(dated.remarks[0].ends_with(":1: column \"date\" is not used"));
  CHECK(
      wrong("System,Nodes,Cards,Collective,Bytes\n").find(":1: unknown column \"System\"; did you mean \"system\"?") !=
      std::string::npos);
  CHECK(wrong("nodes,gpus_per_node,collective,size,time_us\n").find("there is no column \"bytes\"") !=
        std::string::npos);
  CHECK(wrong("# gccl bench: shm,tcp, 2 ranks on 1 node\n# size count type redop root algorithm time algbw busbw\n")
            .ends_with(":1: found the table that gccl bench prints, expected what it writes with --json"));
  CHECK(wrong(std::string("\xff\xfe") + "s\0y\0").find("found UTF-16") != std::string::npos);
  CHECK(wrong("[{\"coll_msg_size_bytes\":1,\"collective\":2}]\n").find("no measurements found") != std::string::npos);
  const Measured m = read("\xef\xbb\xbf# time, busbw: as nccl-tests give them\n\n" + kColumns + row);
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].time_us == 12.5);
  CHECK(m.rows[0].at.line == 4);
  REQUIRE(m.remarks.size() == 1);
  CHECK(m.remarks[0].ends_with(":1: a comment, which is not read"));
}

TEST_CASE("a time of less than a femtosecond is none") {
  const Measured m = read(kColumns + "s,1,2,all_reduce,auto,,1024,1e-300,,,,\ns,1,2,all_reduce,auto,,1024,1e-9,,,,\n");
  CHECK(m.rows.size() == 1);
  CHECK(has_reason(m, "less than a femtosecond"));
}

TEST_CASE("times and bandwidths that contradict each other are named") {
  const auto remark = [](const std::string& rows) {
    const Measured m = read(kColumns + rows);
    CHECK(!m.rows.empty());
    REQUIRE(m.remarks.size() <= 1);
    return m.remarks.empty() ? std::string() : m.remarks[0];
  };
  // 8 ranks: 16 MiB in 100 us are 167.8 GB/s, of an all-reduce 293.6 GB/s on the bus.
  CHECK(remark("s,1,8,all_reduce,,,16777216,100,167.8,293.6,,\n").empty());
  CHECK(remark("s,1,8,all_reduce,,,16777216,100,168,,,\n").empty());
  CHECK(remark("s,1,8,all_reduce,,,8,21.9,0.00,0.00,,\n").empty());
  CHECK(remark("s,1,8,all_reduce,,,1024,21.9,0.05,0.08,,\n").empty());
  const std::string exchanged = remark(
      "s,1,8,all_reduce,,,16777216,100,293.6,167.8,,\n"
      "s,1,8,all_reduce,,,16777216,100,293.6,,,\n");
  CHECK(
      exchanged.find(":2: 16777216 bytes in 100 us by all_reduce on 8 ranks are algbw 167.8 GB/s, found 293.6, and so "
                     "in 2 rows. Times are used") != std::string::npos);
  CHECK(!remark("s,1,8,all_reduce,,,16777216,0.1,167.8,,,milliseconds\n").empty());
  CHECK(!remark("s,1,8,all_reduce,,,16777216,100,156.25,,,GiB/s\n").empty());
  CHECK(!remark("s,1,8,all_gather,,,2097152,100,167.8,146.8,,a block's bytes\n").empty());
  CHECK(!remark("s,1,4,all_reduce,,,16777216,100,167.8,293.6,,8 ranks\n").empty());
  // A busbw of an all-gather in a log that names no other program than all_reduce_perf.
  const Measured log =
      read(nccl_test("all_reduce_perf", "1048576 262144 float none -1 25.24 41.54 20.77 0 25 41 20 0\n"));
  REQUIRE(log.remarks.size() == 1);
  CHECK(log.remarks[0].find("on 2 ranks are busbw 41.54 GB/s, found 20.77") != std::string::npos);
}
