// No line that may be a table's row is left out silently, and what is said of it stays on one line.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/measured/reading.hpp"
#include "tests/measured/table_text.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const StatedOfRows kTwoByFour{.collective = {}, .nodes = 2, .cards = 4, .system = ""};

std::vector<std::size_t> lines_skipped(const Measured& m, std::string_view reason) {
  std::vector<std::size_t> lines;
  for (const SkippedRow& row : m.skipped)
    if (row.reason == reason) lines.push_back(row.at.line);
  return lines;
}

bool is_line(std::string_view text) { return text.find('\n') == text.npos; }

}  // namespace

TEST_CASE("nccl-tests: rows without a line that names their columns are skipped, each with its line") {
  const std::string names = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  const std::string row = "1048576 262144 float sum -1 25.24 41.54 72.70 0 24.74 42.39 74.18 0\n";
  // The second test's names were lost with the line that another process wrote into.
  const Measured m = read("# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1\n" + names + row +
                              "# nThread 1 nGpus 1\nh1: 3 of 4 GPUs\n8 of 16 ranks\n" + row + "64 9.5 0.01 0.01\n",
                          kTwoByFour);
  CHECK(m.rows.size() == 1);
  CHECK(lines_skipped(m, "no line above it names its columns") == std::vector<std::size_t>{8, 9});
  CHECK(m.skipped.size() == 2);
}

TEST_CASE("OSU: rows without a title, and rows of another program's table, are skipped, each with its line") {
  const std::string test = "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n1024   3.25\n";
  const Measured untitled = read("64  2.5\n3 total processes killed\n" + test, kTwoByFour);
  CHECK(untitled.rows.size() == 1);
  CHECK(lines_skipped(untitled, "no title of a test stands above it") == std::vector<std::size_t>{1});
  CHECK(untitled.skipped.size() == 1);
  const Measured mixed =
      read(test +
               "# nThread 1 nGpus 1 minBytes 8\n# size count type redop root time algbw busbw #wrong\n"
               "8 2 float sum -1 25 1 1 0\n# Out of bounds values : 0 OK\n" +
               test,
           kTwoByFour);
  CHECK(mixed.rows.size() == 2);
  CHECK(lines_skipped(mixed, "of another program's table") == std::vector<std::size_t>{6});
}

TEST_CASE("blank lines and comments above a table may begin with spaces") {
  const Measured m = read("  \n\t# by hand\n \n" + kColumns + "s,1,2,all_reduce,auto,,1024,12.5,,,here,\n");
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].at.line == 5);
  REQUIRE(m.remarks.size() == 1);
  CHECK(has(m.remarks[0], ":2: a comment, which is not read"));
}

TEST_CASE("messages about cells with line ends stay on one line") {
  const std::string columns = "nodes,gpus_per_node,collective,bytes,time_us,note";
  for (const std::string& text :
       {columns + "\n1,2,all_reduce,\"6\n4\",1,\n", columns + "\n1,2,all_reduce,64,\"\n1\",\n",
        columns + ",\"nod\nes\"\n", columns + ",\"bytes\n\",\"bytes\n\"\n",
        std::string(R"([{"name":"AllReduce","gpus":2,"time":1,"algBw":1,"size":"6\n4"}])")}) {
    CAPTURE(text);
    CHECK(is_line(wrong(text)));
  }
  const Measured m = read(columns + ",\"x\ny\"\n1,2,\"all\nreduce2\",64,1,,\n" + "1,2,all_reduce,64,1,,\n");
  CHECK(m.rows.size() == 1);
  REQUIRE(m.remarks.size() == 1);
  CHECK(is_line(m.remarks[0]));
  CHECK(has_reason(m, "no counterpart of the collective \"all?reduce2\""));
}
