// Shipped parameter sets against what NCCL took on machines that they are of.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/measured/table_text.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

constexpr std::array kBytes{4u << 10, 64u << 10, 1u << 20, 16u << 20, 256u << 20};

struct Curve {
  const char* collective;
  unsigned cards;
  std::array<double, kBytes.size()> us;
};

// NCCL 2.27.3 on one node, five sizes of what PyPI aiconfigurator-core 0.12.0 publishes
// (systems/data/l40s and a100_sxm, comm/nccl). That of L40S is not fitted, but for the bandwidths of three links.
constexpr Curve kL40s[] = {{"all_reduce", 2, {6.46, 12.56, 74.76, 850.4, 13373}},
                           {"all_reduce", 4, {12.36, 32.2, 268.3, 4922.3, 78355}},
                           {"all_reduce", 8, {25.76, 164.5, 863.2, 19376, 323906}},
                           {"all_gather", 2, {7.89, 9.31, 48.51, 439, 6931}},
                           {"all_gather", 4, {8.73, 20.97, 154.6, 2646.6, 42720}},
                           {"all_gather", 8, {15.12, 86, 509.9, 12308, 115516}},
                           {"reduce_scatter", 2, {7.7, 9.15, 47.48, 459.3, 7179.5}},
                           {"reduce_scatter", 4, {8.8, 23.15, 152.4, 2598.3, 41142}},
                           {"reduce_scatter", 8, {15.25, 98.37, 540, 9471.7, 107370}},
                           {"alltoall", 2, {9.38, 11.5, 43.39, 401, 6019.9}},
                           {"alltoall", 4, {9.61, 29.95, 185.6, 2691, 44168}},
                           {"alltoall", 8, {12.84, 82.51, 861.6, 11886, 114682}}};
constexpr Curve kA100[] = {{"all_reduce", 2, {10.22, 12.97, 40.84, 128.2, 1430.1}},
                           {"all_reduce", 4, {14.3, 17.8, 29.78, 183.5, 1926.6}},
                           {"all_reduce", 8, {21.43, 28.06, 38.85, 216.5, 2182.5}},
                           {"all_gather", 2, {9.37, 12.52, 19.95, 93.44, 939}},
                           {"all_gather", 4, {11.02, 15.38, 22.53, 118.5, 1106.4}},
                           {"all_gather", 8, {14.65, 21.15, 26.79, 135, 1216.8}},
                           {"reduce_scatter", 2, {9.41, 11.75, 19.4, 82.27, 826}},
                           {"reduce_scatter", 4, {11.21, 13.87, 21.08, 109.3, 1034.8}},
                           {"reduce_scatter", 8, {14.65, 18.04, 23.43, 123.4, 1149.5}},
                           {"alltoall", 2, {11.09, 13.91, 22.79, 98.31, 844.5}},
                           {"alltoall", 4, {12.4, 14.51, 25.2, 104.4, 1070.6}},
                           {"alltoall", 8, {15.64, 14.22, 25.81, 114.3, 1197.9}}};

// RCCL on one node of MI300X: all-reduces as AMD publishes them (rocm.blogs.amd.com, Understanding RCCL Bandwidth and
// xGMI Performance), all-gathers of Azure's nodes (github:rouge3877/ns3-msccl-data, medians of 19 runs). Nothing of
// the set is fitted.
constexpr Curve kMi300x[] = {{"all_reduce", 8, {13.27, 13.77, 27.42, 148.8, 1537.1}},
                             {"all_gather", 8, {18.29, 19.24, 35.36, 95.99, 806.9}}};

// The points and errors (below these, in percent) of gccl validate, by the library's choice of algorithm and protocol.
template <std::size_t N>
void check_errors(const Curve (&curves)[N], const std::string& cluster, int points, double median, double mape) {
  const Folder folder;
  std::string table = kColumns;
  for (const Curve& c : curves)
    for (std::size_t i = 0; i < kBytes.size(); ++i)
      table += fmt::format("m,1,{},{},NCCL default (auto),auto,{},{},,,src,dtype=half\n", c.cards, c.collective,
                           kBytes[i], c.us[i]);
  folder.write("m.csv", table);
  const Ended e = run_gccl({"validate", "m.csv", "--cluster", cluster, "--json", "v.json"}, folder.path);
  CHECK(e.err == "");
  REQUIRE(e.code == 0);
  const Json d = Json::parse(read_text(folder.path / "v.json"));
  CHECK(d["skipped"].empty());
  const Json& of = d["statistics"]["all"]["overall"];
  CHECK(of["points"] == points);
  CHECK(of["median_percent"].get<double>() < median);
  CHECK(of["mape_percent"].get<double>() < mape);
}

}  // namespace

TEST_CASE("predictions for a PCIe box of L40S are within 11 % of NCCL's times in the median") {
  check_errors(kL40s, "l40s-box", 60, 11, 15);
}

TEST_CASE("predictions for eight A100 are within 12 % of NCCL's times in the median") {
  check_errors(kA100, "dgx-a100-superpod", 60, 12, 13);
}

TEST_CASE("predictions for eight MI300X are within 12 % of RCCL's times in the median") {
  check_errors(kMi300x, "mi300x-512", 10, 12, 14);
}

// Eight ways through a node of eight cards use each of its 56 links once, seven rings of one node as well: so rings are
// 8/7 as fast between nodes, as long as NICs carry as much as links do. Measured on MI325X, whose links are the same
// (github:hisohara/ai-scripts, 16 GiB, NCCL_ALGO=Ring).
TEST_CASE("rings of eight cards that are joined pairwise are faster between nodes than on one") {
  const Folder folder;
  std::string table = kColumns;
  for (const auto& [nodes, us] : {std::pair(1, 94222), {2, 91973}, {4, 94942}, {8, 96405}})
    table += fmt::format("m,{},8,all_reduce,Ring,Simple,17179869184,{},,,src,\n", nodes, us);
  folder.write("m.csv", table);
  const Ended e = run_gccl({"validate", "m.csv", "--cluster", "mi300x-512", "--json", "-"}, folder.path);
  REQUIRE(e.code == 0);
  const Json rows = Json::parse(e.out)["rows"];
  REQUIRE(rows.size() == 4);
  for (const Json& row : rows) {
    const double nodes = row["nodes"], ranks = 8 * nodes, ways = nodes > 1 ? 8 : 7;
    const double link_GBps = 2 * (ranks - 1) / ranks * 17179869184. / row["predicted_us"].get<double>() / 1e3 / ways;
    CHECK(link_GBps > 44.5);
    CHECK(link_GBps <= 45.1 + 1e-9);
    CHECK(std::abs(row["error_percent"].get<double>()) < 5);
  }
}
