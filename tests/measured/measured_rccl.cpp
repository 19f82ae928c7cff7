// What rccl-tests write with -x FILE -Z csv and -Z json. The lines are those of its Reporter (src/common.cu), of each
// version; the figures follow from nccl-tests' formulas.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/measured/reading.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// One time, with all that a version may write of it.
struct Written {
  std::string name = "AllReduce", type = "float", wrong = "0", time = "50.000000";
  int nodes = 1, processes = 8, cards = 1, cycle = 0, in_place = 0;
  std::uint64_t bytes = 8'000'000, size = 8'000'000;  // size: as the version counts it

  std::string bandwidths(const std::string& between, double us = 50) const {
    const double algbw = double(bytes) / us / 1e3, n = nodes * processes * cards;
    const double factor = name == "AllReduce" ? 2 * (n - 1) / n : (n - 1) / n;
    return fmt::format("{:.6f}{}{:.6f}", algbw, between, algbw * factor);
  }
};

enum class Version { first, without_nodes, with_nodes, of_one_process };

std::string csv(Version v, const std::vector<Written>& all) {
  const std::string comma = v == Version::first ? ", " : ",";
  std::string text = v == Version::first           ? "collective, ranks, rankspernode, gpusperrank, "
                     : v == Version::without_nodes ? "numCycle,collective,ranks,rankspernode,gpusperrank,"
                     : v == Version::with_nodes    ? "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,"
                                                   : "numCycle,collective,gpus,";
  text += fmt::format("size{0}type{0}redop{0}inplace{0}time{0}algbw{0}busbw{0}#wrong\n", comma);
  for (const Written& w : all) {
    if (v != Version::first) text += fmt::format("{},", w.cycle);
    text += w.name + comma;
    if (v == Version::of_one_process)
      text += fmt::format("{},", w.processes * w.cards);
    else
      text += fmt::format("{1}{0}{2}{0}{3}{0}{4}{0}", comma, w.nodes, w.nodes * w.processes, w.processes, w.cards);
    text += fmt::format("{1}{0}{2}{0}sum{0}{3}{0}{4}{0}{5}{0}{6}\n", comma, w.size, w.type, w.in_place, w.time,
                        w.bandwidths(comma), w.wrong);
  }
  return text;
}

std::string json_record(const Written& w) {
  return fmt::format(
      R"({{"numCycle":{}, "name":"{}", "nodes":{}, "ranks":{}, "ranksPerNode":{}, "gpusPerRank":{}, "size":{}, "type":"{}", "redop":"sum", "inPlace":{}, "time":{}, "algBw":{}, "wrong":"{}"}})",
      w.cycle, w.name, w.nodes, w.nodes * w.processes, w.processes, w.cards, w.size, w.type, w.in_place, w.time,
      w.bandwidths(R"(, "busBw":)"), w.wrong);
}

void is_all_reduce(const Measured& m, Rank nodes, Rank cards) {
  REQUIRE(m.rows.size() == 1);
  CHECK(m.rows[0].nodes == nodes);
  CHECK(m.rows[0].cards == cards);
  CHECK(m.rows[0].kind == Collective::allreduce);
  CHECK(m.rows[0].bytes == 8'000'000);
  CHECK(m.rows[0].time_us == 50);
  CHECK(m.rows[0].dtype == Dtype::f32);
  CHECK_FALSE(m.rows[0].in_place);
  CHECK(m.rows[0].algorithm == "NCCL default (auto)");
}

const std::string kRcclOneNode = "rccl-tests count all ranks of a communicator as one node's";

}  // namespace

TEST_CASE("rccl-tests: CSV and JSON of every version are read") {
  for (const Version v : {Version::first, Version::without_nodes, Version::with_nodes, Version::of_one_process}) {
    CAPTURE(int(v));
    const Measured m = read(csv(v, {Written{}}));
    is_all_reduce(m, 1, 8);
    CHECK(m.rows[0].at.line == 2);
    CHECK(m.remarks.size() == (v == Version::of_one_process ? 0 : 1));
  }
  const Measured list = read("[\n" + json_record({}) + "\n]\n");
  is_all_reduce(list, 1, 8);
  CHECK(list.rows[0].at.line == 2);
  is_all_reduce(read("[" + json_record({}) + "]"), 1, 8);
  const Measured lines = read(json_record({}) + "\n" + json_record({.in_place = 1}) + "\n");
  is_all_reduce(lines, 1, 8);
  CHECK(lines.rows[0].at.line == 1);
  is_all_reduce(read(json_record({}) + "\n"), 1, 8);
  is_all_reduce(read(R"([{"numCycle":0, "name":"AllReduce", "gpus":8, "size":8000000, "type":"float", "redop":"sum", )"
                     R"("inPlace":0, "time":50.000000, "algBw":160.000000, "busBw":280.000000, "wrong":"N/A"}])"),
                1, 8);
}

TEST_CASE("rccl-tests: ranks of several nodes are put on as many as the caller states") {
  const std::string sixteen = csv(Version::with_nodes, {Written{.processes = 16}});
  const auto stating = [&](std::optional<Rank> nodes, std::optional<Rank> cards) {
    return read(sixteen, {.collective = {}, .nodes = nodes, .cards = cards, .system = ""});
  };
  const Measured nothing_stated = read(sixteen);
  is_all_reduce(nothing_stated, 1, 16);
  REQUIRE(nothing_stated.remarks.size() == 1);
  CHECK(has(nothing_stated.remarks[0], kRcclOneNode));
  for (const Measured& m : {stating(2, 8), stating(2, {}), stating({}, 8)}) {
    is_all_reduce(m, 2, 8);
    CHECK(m.remarks.empty());
  }
  CHECK(has_reason(stating(3, {}), "on other than 3 nodes"));
  CHECK(has_reason(stating(2, 4), "on other than 4 cards of a node"));
  // A process of four cards each.
  is_all_reduce(read(csv(Version::with_nodes, {Written{.processes = 2, .cards = 4}})), 1, 8);
  // Where the file says that there were several nodes, it is believed, and bandwidths are compared with that.
  const Measured two = read(csv(Version::with_nodes, {Written{.nodes = 2, .processes = 8}}));
  is_all_reduce(two, 2, 8);
  CHECK(two.remarks.empty());
}

TEST_CASE("rccl-tests: times in place stand for nothing where there are others") {
  const Measured both = read(csv(Version::with_nodes, {Written{}, Written{.time = "44.000000", .in_place = 1}}));
  is_all_reduce(both, 1, 8);
  CHECK(has_reason(both, "in place, where the file has times out of place"));
  const Measured alone = read(csv(Version::with_nodes, {Written{.in_place = 1}}));  // -O 0
  REQUIRE(alone.rows.size() == 1);
  CHECK(alone.rows[0].in_place);
}

TEST_CASE("rccl-tests: sizes of blocks, which earlier versions wrote, become those of the whole") {
  const auto bytes = [](const Written& w) { return read(csv(Version::with_nodes, {w})).rows.at(0).bytes; };
  for (const char* name : {"ReduceScatter", "Scatter"}) {
    CHECK(bytes({.name = name, .size = 1'000'000}) == 8'000'000);
    CHECK(bytes({.name = name, .size = 8'000'000}) == 8'000'000);
  }
  CHECK(bytes({.name = "AllGather"}) == 8'000'000);
  CHECK(bytes({.name = "AlltoAll"}) == 8'000'000);
}

TEST_CASE("rccl-tests: what cannot be used is skipped, each with its reason") {
  const auto reason = [](const Written& w, std::string_view part) {
    CAPTURE(part);
    const Measured of_csv = read(csv(Version::with_nodes, {w})), of_json = read("[" + json_record(w) + "]");
    CHECK(of_csv.rows.empty());
    CHECK(has_reason(of_csv, part));
    CHECK(has_reason(of_json, part));
  };
  reason({.wrong = "3"}, "wrong elements");
  reason({.type = "float6"}, "element type \"float6\"");
  reason({.name = "HyperCube"}, "no counterpart of the collective \"HyperCube\"");
  reason({.processes = 1}, "on one rank");
  CHECK(has_reason(read(csv(Version::with_nodes, {Written{.time = "nan"}})), "its time is no number"));
  CHECK(has(wrong(csv(Version::with_nodes, {Written{}}) + "0,AllReduce,1\n"), ":3: has 3 fields, expected 14"));
  std::string text = csv(Version::with_nodes, {Written{}});
  text.replace(text.find("8000000"), 7, "8M");
  CHECK(has(wrong(text), ":2: size: found \"8M\", expected a whole number"));
  // Times in another unit are found by the bandwidths that the file states.
  CHECK(read(csv(Version::of_one_process, {Written{.time = "0.050000"}})).remarks.size() == 1);
  // Stress cycles are runs of their own.
  CHECK(read(csv(Version::with_nodes, {Written{}, Written{.cycle = 1}})).rows.at(1).test == 1);
}

TEST_CASE("tables of nccl-tests' columns as CSV are read; the first times are those out of place") {
  const Measured m = read(
      "# all_reduce_perf on 8 cards\n"
      "size,count,type,redop,root,time,algbw,busbw,#wrong,time,algbw,busbw,#wrong\n"
      "8000000,2000000,float,sum,-1,50.0,160.0,280.0,0,40.0,200.0,350.0,0\n",
      {.collective = Collective::allreduce, .nodes = 1, .cards = 8, .system = ""});
  is_all_reduce(m, 1, 8);
  CHECK(m.rows[0].at.line == 3);
  CHECK(has_reason(read("size,time,algbw,busbw\n8000000,50.0,160.0,280.0\n"),
                   "state --collective, --nodes and --cards-per-node"));
}
