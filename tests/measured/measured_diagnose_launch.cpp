// A diagnosis of calls that all take longer by the same time, as where one process launches for all cards.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/measured/table_text.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

struct Point {
  double bytes, us;
};
// All-reduces of eight MI300X: by a process for each card (rocm.blogs.amd.com, Understanding RCCL Bandwidth and xGMI
// Performance), and by one for all of them (AMD's acceptance guide for these servers).
constexpr Point kEightProcesses[] = {{4096, 13.27},     {16384, 13.54},     {65536, 13.77},     {262144, 16.87},
                                     {1048576, 27.42},  {4194304, 51.72},   {16777216, 148.8},  {67108864, 429.1},
                                     {268435456, 1537}, {1073741824, 5971}, {4294967296, 23680}};
constexpr Point kOneProcess[] = {{4096, 45.01},       {16384, 55.7},        {65536, 44.35},     {262144, 59.18},
                                 {1048576, 58.47},    {4194304, 90.74},     {16777216, 169.7},  {67108864, 428.1},
                                 {268435456, 1546.5}, {1073741824, 6003.9}, {4294967296, 23849}};

std::string row(int nodes, double bytes, double us) {
  return fmt::format("s,{},8,all_reduce,NCCL default (auto),auto,{:.0f},{},,,src,\n", nodes, bytes, us);
}

Json diagnosed(const std::string& rows, const std::string& cluster) {
  const Folder folder;
  folder.write("m.csv", kColumns + rows);
  const Ended e = run_gccl({"diagnose", "m.csv", "--cluster", cluster, "--json", "-"}, folder.path);
  CHECK(e.err == "");
  const Json d = Json::parse(e.out)["diagnoses"][0];
  CHECK(e.code == (d["verdict"] == "healthy" ? 0 : 1));
  return d;
}

template <std::size_t N>
Json diagnosed(const Point (&points)[N]) {
  std::string rows;
  for (const Point& p : points) rows += row(1, p.bytes, p.us);
  return diagnosed(rows, "mi300x-512");
}

}  // namespace

TEST_CASE("one process for eight cards is named, a process for each is healthy") {
  CHECK(diagnosed(kEightProcesses)["verdict"] == "healthy");
  const Json d = diagnosed(kOneProcess);
  CAPTURE(d["hypotheses"].dump(1));
  CHECK(d["verdict"] == "explained");
  CHECK(d["cause"] == "launch");
  CHECK(d["hypotheses"][0]["check"].get<std::string>().find("one process") != std::string::npos);
}

TEST_CASE("launches that take 40 us longer are named on one node and on several") {
  for (const int nodes : {1, 4}) {
    CAPTURE(nodes);
    std::string asked = kColumns;
    for (double bytes = 4 << 10; bytes <= 1 << 30; bytes *= 4) asked += row(nodes, bytes, 1);
    const Folder folder;
    folder.write("m.csv", asked);
    const Ended v = run_gccl({"validate", "m.csv", "--cluster", "dgx-h100-superpod-2048", "--json", "-"}, folder.path);
    REQUIRE(v.code == 0);
    std::string rows;
    const Json predicted = Json::parse(v.out)["rows"];
    for (const Json& r : predicted) rows += row(nodes, r["bytes"], r["predicted_us"].get<double>() + 40);
    const Json d = diagnosed(rows, "dgx-h100-superpod-2048");
    CAPTURE(d["hypotheses"].dump(1));
    CHECK(d["cause"] == "launch");
  }
}

TEST_CASE("longer launches are no cause where an MPI library carried out all rows") {
  std::string rows;
  for (double bytes = 4 << 10; bytes <= 1 << 24; bytes *= 4)
    rows += fmt::format("s,2,8,all_reduce,ring_ompi,auto,{:.0f},{},,,src,\n", bytes, 100 + bytes / 1e4);
  const Json d = diagnosed(rows, "dgx-h100-superpod-2048");
  REQUIRE(d["hypotheses"].size() > 2);
  for (const Json& h : d["hypotheses"]) CHECK(h["cause"] != "launch");
}
