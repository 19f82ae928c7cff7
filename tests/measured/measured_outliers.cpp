// Which measured points are outliers.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "sim/measured/validation/outliers.hpp"
#include "tests/measured/table_text.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// The sizes of 2, 4, 8 and 16 nodes.
std::vector<Measurement> four_scales() {
  std::vector<Measurement> rows;
  for (const Rank nodes : {2u, 4u, 8u, 16u})
    for (int k = 10; k <= 30; k += 2)
      rows.push_back(measured_row(nodes, 4, Count(1) << k, 20 + nodes + double(Count(1) << k) / 20e3));
  return rows;
}

}  // namespace

TEST_CASE("a point several times slower than those beside it is an outlier, a step up is none") {
  std::vector<Measurement> curve;
  for (int k = 3; k <= 30; ++k) curve.push_back(measured_row(2, 4, Count(1) << k, 20 + double(Count(1) << k) / 20e3));
  for (const std::string& why : outliers_of(curve)) CHECK(why.empty());
  const auto planted = [&](std::vector<std::pair<std::size_t, double>> factors) {
    std::vector<Measurement> rows = curve;
    for (const auto& [i, f] : factors) rows[i].time_us *= f;
    std::vector<std::size_t> found;
    const auto why = outliers_of(rows);
    for (std::size_t i = 0; i < why.size(); ++i)
      if (!why[i].empty()) found.push_back(i);
    return found;
  };
  CHECK(planted({{5, 3}}) == std::vector<std::size_t>{5});
  CHECK(planted({{24, 3}}) == std::vector<std::size_t>{24});  // where time grows with size
  CHECK(planted({{0, 2.5}}) == std::vector<std::size_t>{0});
  CHECK(planted({{27, 2.5}}) == std::vector<std::size_t>{27});
  CHECK(planted({{5, 4}, {12, 6}}) == std::vector<std::size_t>{5, 12});
  CHECK(planted({{5, 1.8}}).empty());
  CHECK(planted({{0, 0.01}}) == std::vector<std::size_t>{0});  // nothing was sent, and the next is not slow beside it
  CHECK(planted({{9, 0.2}}) == std::vector<std::size_t>{9});
  CHECK(planted({{9, 0.3}}).empty());
  const auto why_times = [&](double factor) {
    std::vector<Measurement> rows = curve;
    rows[5].time_us *= factor;
    return outliers_of(rows)[5];
  };
  CHECK(why_times(20) == "20 times what the sizes beside it suggest");
  CHECK(why_times(400) == "400 times what the sizes beside it suggest");
  // Another protocol from 64 KiB on: three times as slow, and it stays.
  std::vector<std::pair<std::size_t, double>> step;
  for (std::size_t i = 13; i < 28; ++i) step.emplace_back(i, 3.0);
  CHECK(planted(step).empty());
}

TEST_CASE("a latency and a bandwidth have no outliers, however far apart sizes are") {
  for (const double step : {2.0, 64.0, 1024.0, 65536.0})
    for (const double start : {1.0, 8.0, 1024.0}) {
      CAPTURE(step);
      CAPTURE(start);
      std::vector<Measurement> rows;
      for (double bytes = start; bytes < 1e11; bytes *= step)
        rows.push_back(measured_row(2, 4, Count(bytes), 20 + bytes / 200e3));
      for (const std::string& why : outliers_of(rows)) CHECK(why.empty());
    }
  // Longer messages take no twentieth of what shorter ones take.
  const auto why = outliers_of({measured_row(2, 4, 16, 20), measured_row(2, 4, 1 << 10, 20),
                                measured_row(2, 4, 1 << 20, 1), measured_row(2, 4, 1 << 30, 5000)});
  for (const std::size_t i : {0, 1, 2, 3}) CHECK(why[i].empty() == (i != 2));
}

TEST_CASE("outliers are also found between neighbouring numbers of nodes, one node aside") {
  std::vector<Measurement> rows = four_scales();
  for (int k = 10; k <= 30; k += 2)
    rows.push_back(measured_row(1, 4, Count(1) << k, 1 + double(Count(1) << k) / 200e3));
  for (const std::string& why : outliers_of(rows)) CHECK(why.empty());
  std::set<std::size_t> slow;
  for (std::size_t i = 0; i < rows.size(); ++i)  // too many sizes in a row for those beside them to say so
    if (rows[i].nodes == 8 && rows[i].bytes >= 1 << 14 && rows[i].bytes <= 1 << 20) {
      rows[i].time_us *= 3;
      slow.insert(i);
    }
  const auto why = outliers_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(why[i].empty() != bool(slow.count(i)));
  CHECK(why[*slow.begin()].find("numbers of nodes") != std::string::npos);
}

TEST_CASE("where most sizes of a number of nodes are slow none of them is an outlier") {
  for (const Rank nodes : {2u, 4u, 8u, 16u})
    for (const Count least : {0, 1 << 20}) {  // all sizes, and six of the eleven
      CAPTURE(nodes);
      CAPTURE(least);
      std::vector<Measurement> rows = four_scales();
      for (Measurement& m : rows)
        if (m.nodes == nodes && m.bytes >= least) m.time_us *= 5;
      const auto why = outliers_of(rows);
      CHECK(std::all_of(why.begin(), why.end(), [](const std::string& w) { return w.empty(); }));
    }
  // Nor where there is one size: nothing says whether the others are slow.
  std::vector<Measurement> rows;
  for (const Rank nodes : {2u, 4u, 8u, 16u}) rows.push_back(measured_row(nodes, 4, 1 << 20, nodes == 16 ? 6000 : 100));
  for (const std::string& why : outliers_of(rows)) CHECK(why.empty());
}

TEST_CASE("repeated runs of a curve are judged each for itself") {
  std::vector<Measurement> rows;
  for (const double slow : {1.0, 8.0})
    for (int k = 3; k <= 20; ++k)
      rows.push_back(measured_row(2, 4, Count(1) << k, slow * (20 + double(Count(1) << k) / 20e3)));
  for (const std::string& why : outliers_of(rows)) CHECK(why.empty());
}
