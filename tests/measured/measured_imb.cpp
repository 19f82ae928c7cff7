// What IMB-MPI1 prints (its src_c/IMB_output.c). Sizes are as its user guide defines each benchmark's: a vector's of
// Allreduce, Reduce, Bcast and Reduce_scatter, a block's of the others.
#include <doctest/doctest.h>

#include <string>

#include "tests/measured/reading.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

const std::string kImbTitle = R"(#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.6, MPI-1 part
#----------------------------------------------------------------
# MPI Thread Environment:

# Calling sequence was:

# IMB-MPI1 Allreduce Bcast

# MPI_Datatype                   :   MPI_BYTE
# MPI_Datatype for reductions    :   MPI_FLOAT
# MPI_Op                         :   MPI_SUM

)";
const std::string kImbNames = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n";

std::string imb_test(const std::string& name, int processes, const std::string& rows,
                     const std::string& names = kImbNames, int waiting = 0) {
  return "#----------------------------------------------------------------\n# Benchmarking " + name +
         " \n# #processes = " + std::to_string(processes) + " \n" +
         (waiting > 0 ? "# ( " + std::to_string(waiting) + " additional processes waiting in MPI_Barrier)\n" : "") +
         "#----------------------------------------------------------------\n" + names + rows + "\n\n";
}

const std::string kImbRow = "         4096         1000        12.02        27.01        19.67\n";

StatedOfRows on(std::optional<Rank> nodes, std::optional<Rank> cards) {
  return {.collective = {}, .nodes = nodes, .cards = cards, .system = ""};
}

}  // namespace

TEST_CASE("IMB: the slowest process's time of each size, of the processes that a test names") {
  const Measured m = read(
      kImbTitle +
          imb_test("Allreduce", 8, "            0         1000         0.03         0.05         0.04\n" + kImbRow) +
          imb_test("Bcast", 16, "            1          640        55.95        57.01        56.52\n") +
          "# All processes entering MPI_Finalize\n",
      on({}, 4));
  REQUIRE(m.rows.size() == 2);
  CHECK(m.remarks.empty());
  CHECK(m.rows[0].kind == Collective::allreduce);
  CHECK(m.rows[0].nodes == 2);
  CHECK(m.rows[0].cards == 4);
  CHECK(m.rows[0].bytes == 4096);
  CHECK(m.rows[0].time_us == 27.01);
  CHECK(m.rows[0].dtype == Dtype::f32);
  CHECK(m.rows[0].algorithm == "MPI");
  CHECK(m.rows[0].at.line == 20);
  CHECK(m.rows[1].kind == Collective::broadcast);
  CHECK(m.rows[1].nodes == 4);
  CHECK(m.rows[1].bytes == 1);
  CHECK(m.rows[1].time_us == 57.01);
  CHECK(m.rows[1].dtype == Dtype::u8);
  CHECK(m.rows[1].test != m.rows[0].test);
  REQUIRE(m.skipped.size() == 1);
  CHECK(m.skipped[0].at.line == 19);
  CHECK(has_reason(m, "of 0 bytes"));
}

TEST_CASE("IMB: sizes of a block become those of all, those of a vector stay") {
  const auto bytes = [](const std::string& name) {
    return read(imb_test(name, 8, kImbRow), on(2, {})).rows.at(0).bytes;
  };
  for (const char* vector : {"Allreduce", "Reduce", "Bcast", "Reduce_scatter", "Sendrecv"})
    CHECK(bytes(vector) == 4096);
  for (const char* blocks :
       {"Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Gather", "Scatter", "Reduce_scatter_block"})
    CHECK(bytes(blocks) == 8 * 4096);
  const Measured barrier = read(imb_test("Barrier", 8, "         1000        22.93        22.95        22.94\n",
                                         " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"),
                                on(2, {}));
  REQUIRE(barrier.rows.size() == 1);
  CHECK(barrier.rows[0].time_us == 22.95);
  const Measured doubles =
      read("# MPI_Datatype for reductions    :   MPI_DOUBLE\n" + imb_test("Allreduce", 8, kImbRow), on(2, {}));
  CHECK(doubles.rows.at(0).dtype == Dtype::f64);
  CHECK(read("# IMB-MPI1-GPU Allreduce\n" + imb_test("Allreduce", 8, kImbRow), on(2, {})).rows.at(0).algorithm ==
        "auto");
  const Measured both = read(
      "# IMB-MPI1-GPU Allreduce\n" + imb_test("Allreduce", 8, kImbRow) + kImbTitle + imb_test("Allreduce", 8, kImbRow),
      on(2, {}));
  CHECK(both.rows.at(1).algorithm == "MPI");
}

TEST_CASE("IMB: processes are put on as many nodes as are stated") {
  const std::string eight = imb_test("Allreduce", 8, kImbRow);
  CHECK(read(eight, on(4, {})).rows.at(0).cards == 2);
  CHECK(read(eight, on(4, 2)).rows.at(0).nodes == 4);
  CHECK(has_reason(read(eight), "state --nodes or --cards-per-node"));
  CHECK(has_reason(read(eight, on(2, 8)), "on other than 16 ranks"));
  CHECK(has_reason(read(eight, on(3, {})), "different numbers of ranks"));
  CHECK(has_reason(read(eight, on({}, 16)), "on other than 16 cards of a node"));
  CHECK(has_reason(read(imb_test("Allreduce", 1, kImbRow), on(1, {})), "on one rank"));
  CHECK(has_reason(read(imb_test("Allreduce", 2000000000, kImbRow), on(1, {})), "on more than 1048576 ranks"));
  CHECK(has_reason(read(imb_test("Allreduce", 2000000000, kImbRow)), "on more than 1048576 ranks"));
  const std::string most = "# ( 18446744073709551608 additional processes waiting in MPI_Barrier)\n";  // with 8 it is 0
  CHECK(has_reason(read("# Benchmarking Allreduce\n# #processes = 8\n" + most + kImbNames + kImbRow, on(2, {})),
                   "on more than 1048576 ranks"));
  // A job of 32 on two nodes: the first node's ranks alone, and half of them, do not fill two.
  std::string job;
  for (const int n : {8, 16, 32}) job += imb_test("Allreduce", n, kImbRow, kImbNames, 32 - n);
  const Measured some = read(job, on(2, {}));
  REQUIRE(some.rows.size() == 1);
  CHECK(some.rows[0].at.line == 24);
  CHECK(some.rows[0].nodes == 2);
  CHECK(some.rows[0].cards == 16);
  CHECK(has_reason(some, "on other than 2 nodes (--nodes)"));
  CHECK(has_reason(some, "on other than 16 cards of a node (all processes, on --nodes)"));
  // A table alone, without what stands above it.
  const Measured alone =
      read(kImbNames + kImbRow, {.collective = Collective::reduce_scatter, .nodes = 2, .cards = 4, .system = ""});
  REQUIRE(alone.rows.size() == 1);
  CHECK(alone.rows[0].bytes == 4096);
  CHECK(has_reason(read(kImbNames + kImbRow), "state --collective, --nodes and --cards-per-node"));
}

TEST_CASE("IMB: what is no collective of all processes, or no whole line, is skipped with its line") {
  const auto reason = [](const std::string& text, std::string_view part, std::size_t line) {
    const Measured m = read(text, on(2, {}));
    CAPTURE(text);
    CHECK(m.rows.empty());
    REQUIRE(m.skipped.size() == 1);
    CHECK(has(m.skipped[0].reason, part));
    CHECK(m.skipped[0].at.line == line);
  };
  reason(imb_test("PingPong", 2, "         4096         1000         1.72       4.64\n",
                  "       #bytes #repetitions      t[usec]   Mbytes/sec\n"),
         "no column t_max[usec]", 6);
  reason(imb_test("Gatherv", 4, kImbRow), "no counterpart of the collective \"Gatherv\"", 6);
  reason(imb_test("Exchange", 4, kImbRow), "no counterpart of the collective \"Exchange\"", 6);
  reason(imb_test("Allreduce", 4, "  4096  out-of-mem.; needed X=   4.001 GB; use flag \"-mem X\"\n"),
         "not a line of IMB's table: expected the 5 numbers", 6);
  reason(imb_test("Allreduce", 4, "  4096  1000   12.02\n"), "not a line of IMB's table", 6);
  reason(imb_test("Allreduce", 4, "  4096  1000   12.02  27.01  19.67  1.00\n",
                  "  #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]  defects\n"),
         "wrong elements", 6);
  reason(imb_test("Allreduce", 4, "     0   4096  1000   12.02  27.01  19.67\n",
                  "  Group  #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"),
         "several communicators", 6);
  reason("# MPI_Datatype for reductions : MPI_LONG_DOUBLE\n" + imb_test("Reduce", 4, kImbRow),
         "element type \"MPI_LONG_DOUBLE\"", 7);
  reason(imb_test("Allreduce", 4, "4096 1000 12.02 27.01 19.67\n", "#bytes #repetitions\n"), "no column t_max[usec]",
         6);
}

TEST_CASE("IMB: tables of other programs in the same log are named, and their rows listed") {
  const std::string osu = "# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)\n1024   3.25\n";
  const Measured m = read(imb_test("Allreduce", 8, kImbRow) + osu + imb_test("Bcast", 8, kImbRow), on(2, 4));
  CHECK(m.rows.size() == 2);
  REQUIRE(m.remarks.size() == 1);
  CHECK(has(m.remarks[0], ":9: another program's table begins"));
  CHECK(has_reason(m, "of another program's table"));
  CHECK(m.skipped.size() == 1);
  const Measured reverse = read(osu + imb_test("Bcast", 8, kImbRow), on(2, 4));
  REQUIRE(reverse.rows.size() == 1);
  CHECK(reverse.rows[0].time_us == 3.25);
  CHECK(has_reason(reverse, "of another program's table"));
}

TEST_CASE("IMB: a title that lost its number sign begins another test") {
  const std::string bare =
      "Benchmarking Bcast \n" + kImbNames + kImbRow + "\nBenchmarking Reduce \n" + kImbNames + kImbRow;
  const Measured m = read(bare, on(2, 4));
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[0].kind == Collective::broadcast);
  CHECK(m.rows[1].kind == Collective::reduce);
  CHECK(m.rows[1].test != m.rows[0].test);
}

// oneCCL's examples/benchmark has the same columns.
TEST_CASE("oneCCL: tables with IMB's columns, of a block's size but for vectors") {
  const auto test = [](const std::string& name, const std::string& backend) {
    return "options:\n  processes:      8\n  backend:        " + backend +
           "\n  iters:          16\n\ndatatype: bfloat16\nreduction: sum\n\n"
           "#------------------------------------------------------------\n# Benchmarking: " +
           name +
           " \n# #processes: 8\n#------------------------------------------------------------\n\n"
           "        #bytes  #repetitions   t_min[usec]   t_max[usec]   t_avg[usec]  stddev[%]\n"
           "          4096            16         30.00         31.00         30.50       0.50\n\n# All done\n";
  };
  const auto one = [&](const std::string& name, const std::string& backend = "sycl") {
    const Measured m = read(test(name, backend), on({}, 4));
    REQUIRE(m.rows.size() == 1);
    return m.rows[0];
  };
  const Measurement row = one("allreduce");
  CHECK(row.kind == Collective::allreduce);
  CHECK(row.nodes == 2);
  CHECK(row.cards == 4);
  CHECK(row.bytes == 4096);
  CHECK(row.time_us == 31);
  CHECK(row.dtype == Dtype::bf16);
  CHECK(row.algorithm == "auto");
  CHECK(row.note == "oneCCL allreduce");
  CHECK(one("allreduce", "host").algorithm == "MPI");
  for (const char* vector : {"bcast", "reduce", "reduce_scatter"}) CHECK(one(vector).bytes == 4096);
  for (const char* blocks : {"allgather", "allgatherv", "alltoall"}) CHECK(one(blocks).bytes == 8 * 4096);
  CHECK(one("allgatherv").kind == Collective::allgather);
  CHECK(has_reason(read(test("sparse_allreduce", "sycl"), on({}, 4)), "sparse_allreduce"));
  // A script's own lines between IMB's tables are not oneCCL's.
  const Measured imb =
      read(kImbTitle + "backend: ucx\ndatatype: strange\n" + imb_test("Allreduce", 8, kImbRow), on({}, 4));
  REQUIRE(imb.rows.size() == 1);
  CHECK(imb.rows[0].algorithm == "MPI");
  CHECK(imb.rows[0].dtype == Dtype::f32);
}
