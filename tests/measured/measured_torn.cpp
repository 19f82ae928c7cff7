// nccl-tests' lines as they are torn and stripped: without the "#" that a web page took for a heading, with NCCL's own
// lines between a row's beginning and its times, which nccl-tests print apart (src/common.cu), and with the rank that
// MPICH's mpiexec -l puts before each piece.
#include <doctest/doctest.h>

#include <string>

#include "tests/measured/reading.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const std::string kTornNames =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n";
const StatedOfRows kOnFour{.collective = Collective::allreduce, .nodes = 1, .cards = 4, .system = ""};

std::string without_hashes(std::string text) {
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    if (text[at] == '#') text[at] = ' ';
  return text;
}

}  // namespace

TEST_CASE("nccl-tests: comments that lost their number sign say what they said with it") {
  const std::string log =
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n"
      "#\n# Using devices\n"
      "#   Rank  0 Pid  41 on  alder device  0 [0x1a] Card A\n"
      "#   Rank  1 Pid  41 on  alder device  1 [0x1b] Card A\n"
      "#\n"
      "#                                                       out-of-place                       in-place\n"
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
      "        1024           256   float     sum    11.00    0.09    0.09  1e-07    12.00    0.09    0.09  1e-07\n"
      "        2048           512   float     sum    13.00    0.16    0.16  1e-07    14.00    0.15    0.15  1e-07\n"
      "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.12\n";
  for (const std::string& text : {log, without_hashes(log)}) {
    const Measured m = read("$ ./build/all_reduce_perf -g 2\n" + text + "$ ./build/reduce_perf -g 2\n" + text);
    CHECK(m.skipped.empty());
    REQUIRE(m.rows.size() == 4);
    for (const Measurement& row : m.rows) {
      CHECK(row.nodes == 1);
      CHECK(row.cards == 2);
    }
    CHECK(m.rows[0].kind == Collective::allreduce);
    CHECK(m.rows[0].bytes == 1024);
    CHECK(m.rows[0].time_us == 11);
    CHECK(m.rows[0].at.line == 11);
    CHECK(m.rows[1].time_us == 13);
    CHECK(m.rows[3].kind == Collective::reduce);
    CHECK(m.rows[3].test != m.rows[0].test);
  }
}

TEST_CASE("nccl-tests: a table without its number sign whose collective and ranks are stated") {
  const Measured m = read(without_hashes(kTornNames) +
                              "        1024           256     float     sum      -1    11.00    0.09    0.14      0    "
                              "12.00    0.09    0.13      0\n",
                          kOnFour);
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].time_us == 11);
}

TEST_CASE("nccl-tests: a sentence that names a setting or a rank is no comment of theirs") {
  const Measured m = read("# nThread 1 nGpus 4 minBytes 8 maxBytes 8\n" + kTornNames +
                              "I set nThread to 1 and nGpus to 4\nRank 0 hung on node7 once\n"
                              "        1024           256     float     sum      -1    11.00    0.09    0.14      0    "
                              "12.00    0.09    0.13      0\n",
                          kOnFour);
  REQUIRE(m.rows.size() == 1);
  CHECK(m.skipped.empty());
}

TEST_CASE("nccl-tests: a row is put together around what NCCL prints before its times") {
  const std::string rest = "    11.00    0.09    0.14      0    12.00    0.09    0.13      0\n";
  const Measured m = read(kTornNames +
                              "        1024           256     float     sum      -1node7:42:42 [0] NCCL INFO Channel "
                              "00 : 0 -> 1\nnode7:42:43 [1] NCCL INFO Connected all rings\n" +
                              rest +
                              "        2048           512     float     sum      -1\nnode7:42:42 [0] NCCL INFO 2048 "
                              "Bytes\n       12000    0.00    0.00      0    12001    0.00    0.00      0\n"
                              "        4096          1024     float     sum      -1node7:42:42 [0] NCCL INFO Tree\n"
                              "    15.00    0.27    0.41      0\n"
                              "        8192          2048     float     sum      -1    17.00    0.48    0.72      0    "
                              "18.00    0.46    0.68      0\n",
                          kOnFour);
  CHECK(m.skipped.empty());
  REQUIRE(m.rows.size() == 4);
  CHECK(m.rows[0].bytes == 1024);
  CHECK(m.rows[0].time_us == 11);
  CHECK(m.rows[0].at.line == 4);
  CHECK(m.rows[1].bytes == 2048);
  CHECK(m.rows[1].time_us == 12000);
  CHECK(m.rows[2].bytes == 4096);
  CHECK(m.rows[2].time_us == 15);
  CHECK(m.rows[3].time_us == 17);
}

TEST_CASE("nccl-tests: a row whose times never come is listed, and gets no other's") {
  const std::string begun = "        1024           256     float     sum      -1node7:42:42 [0] NCCL INFO Ring\n";
  const std::string whole =
      "        2048           512     float     sum      -1    13.00    0.16    0.24      0    14.00    0.15    0.22   "
      " "
      "  0\n";
  for (const std::string& behind : {whole, whole + begun, begun + whole}) {
    const Measured m = read(kTornNames + begun + behind, kOnFour);
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].bytes == 2048);
    CHECK(m.rows[0].time_us == 13);
    CHECK(m.skipped.size() == (behind == whole ? 1 : 2));
    CHECK(m.skipped[0].at.line == 2);
    CHECK(has_reason(m, "expected the 13 words"));
  }
  const Measured m =
      read(kTornNames + begun + "    11.00    0.09    0.14      7    12.00    0.09    0.13      0\n", kOnFour);
  CHECK(m.rows.empty());
  CHECK(has_reason(m, "wrong elements"));
  // Numbers of somebody else's, whose second one is no bandwidth of such a time.
  for (const std::string others : {"1 2 3 0 5 6 7 0\n", "7 6 5 0\n"}) {
    const Measured torn = read(
        kTornNames + begun + others + "    11.00    0.09    0.14      0    12.00    0.09    0.13      0\n", kOnFour);
    CHECK(torn.rows.empty());
    CHECK(has_reason(torn, "expected the 13 words"));
  }
}

TEST_CASE("nccl-tests: a rank before each piece of a row is none of its numbers") {
  const auto row = [](const std::string& wrong) {
    return "[0]         1024           256     float     sum      -1[0]     11.00    0.09    0.14      " + wrong +
           "[0]     12.00    0.09    0.13      0\n";
  };
  Measured m = read("[0] " + kTornNames + row("0"), kOnFour);
  CHECK(m.skipped.empty());
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].time_us == 11);
  m = read("[0] " + kTornNames + row("3"), kOnFour);
  CHECK(m.rows.empty());
  CHECK(has_reason(m, "wrong elements"));
}

// Their src/all_gather.cu of 2.10 and before: baseBw = (nranks - 1) * bytes of a rank / time, and both columns are
// that.
TEST_CASE("nccl-tests: versions whose all-gather has its bus bandwidth in both columns contradict nothing") {
  const auto remarks = [](const std::string& program, const std::string& algbw, const std::string& busbw) {
    const Measured m = read(program +
                                " -b 4M\n# nThread 1 nGpus 4 minBytes 4194304 maxBytes 4194304\n"
                                "#       size         count    type     time   algbw   busbw  error     time   "
                                "algbw   busbw  error\n"
                                "     4194304        262144   float    200.0   " +
                                algbw + "   " + busbw + "  0e+00    200.0   " + algbw + "   " + busbw + "  0e+00\n",
                            {.collective = {}, .nodes = 1, .cards = 4, .system = ""});
    REQUIRE(m.rows.size() == 1);
    return m.remarks.size();
  };
  for (const char* program : {"all_gather_perf", "reduce_scatter_perf"}) {
    CHECK(remarks(program, "15.73", "15.73") == 0);
    CHECK(remarks(program, "20.97", "15.73") == 0);
    CHECK(remarks(program, "20.97", "20.97") == 1);
    CHECK(remarks(program, "15.73", "11.80") == 1);
  }
  CHECK(remarks("broadcast_perf", "15.73", "15.73") == 1);
}

TEST_CASE("nccl-tests: a table whose operation is not that of the stated collective is none of its") {
  const auto row = [](const std::string& operation) {
    return kTornNames + "        1024            64     float    " + operation +
           "      -1    11.00    0.09    0.08      0    12.00    0.09    0.08      0\n";
  };
  const auto read_as = [&](Collective kind) {
    return read(row(" sum") + row("none"), {.collective = kind, .nodes = 1, .cards = 4, .system = ""});
  };
  for (const Collective kind : {Collective::allreduce, Collective::reduce, Collective::reduce_scatter}) {
    const Measured m = read_as(kind);
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].at.line == 2);
    CHECK(has_reason(m, "its operation is \"none\""));
  }
  for (const Collective kind : {Collective::allgather, Collective::alltoall, Collective::broadcast}) {
    const Measured m = read_as(kind);
    REQUIRE(m.rows.size() == 1);
    CHECK(m.rows[0].at.line == 4);
    CHECK(has_reason(m, "its operation is \"sum\""));
  }
  const Measured m = read_as(Collective::sendrecv);  // whose table has the operation that it was asked for
  CHECK(m.rows.size() == 2);
  CHECK(m.skipped.empty());
}
