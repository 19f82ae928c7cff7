// The report of a sweep: its charts, colours and sorted tables, and what can be saved of them.
#include <algorithm>
#include <sstream>

#include "sim/report/csv.hpp"
#include "tests/browser/pages.hpp"

namespace pages {
namespace {

// The CSV of all runs, then for each section its charts as SVG and its runs as CSV.
void check_saved(const json& saved, const json& result) {
  check_equal(saved.size(), 1 + 2 * (3 + 1), "sweep: saved files");
  std::size_t drawings = 0, tables = 0;
  for (const json& one : saved) {
    if (one.at("type") == "image/svg+xml") {
      ++drawings;
      check(one.at("name").get<std::string>().ends_with(".svg"), "sweep: " + one.at("name").dump());
      check_equal(one.at("root"), "svg", "sweep: a saved chart is a drawing");
      check(one.at("bare") == true, "sweep: a saved chart needs the page's style");
      check_equal(one.at("series"), 14 + 15, "sweep: series and marked points of a saved chart");
      check_equal(one.at("fills"), 12, "sweep: colours of a saved chart");
      const json& names = one.at("names");
      for (int k = 0; k < 14; ++k)
        check(std::count(names.begin(), names.end(), fmt::format("algorithm{:02}", k)) == 1,
              "sweep: a name in a saved chart");
    } else {
      ++tables;
      // Every run is one line; numbers may be written differently by the page and the program, so values are compared.
      std::istringstream lines(one.at("content").get<std::string>());
      std::string line;
      std::getline(lines, line);
      std::string head = gccl::sim::result_csv(result);
      check_equal(json(line), head.substr(0, head.find('\n')), "sweep: the columns of a saved table");
      const std::size_t of_all = one.at("name") == "sweep.csv" ? 0 : tables == 3 ? 154 : 0;
      const std::size_t expected = one.at("name") == "sweep.csv" ? 308 : 154;
      std::size_t rows = 0;
      for (; std::getline(lines, line); ++rows) {
        if (rows + of_all >= result.at("runs").size()) break;
        const json& run = result.at("runs").at(rows + of_all);
        std::vector<std::string> cells;
        std::istringstream parts(line);
        for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
        const auto cell = [&](const char* name) {
          const auto& all = gccl::sim::csv_columns();
          return cells.at(std::size_t(std::find(all.begin(), all.end(), name) - all.begin()));
        };
        const bool same = run.at("cluster") == cell("cluster") && run.at("algorithm") == cell("algorithm") &&
                          std::stod(cell("bytes")) == run.at("bytes") &&
                          std::stod(cell("time_us")) == run.at("time_us") && cell("auto") == run.at("auto").dump() &&
                          cell("wrong").empty();
        check(same && line.ends_with(run.contains("faults") ? ",true" : ","), "sweep: a saved row: " + line);
      }
      check_equal(json(rows), expected, "sweep: saved rows in " + one.at("name").dump());
    }
  }
  check_equal(json(drawings), 6, "sweep: saved charts");
  check_equal(json(tables), 3, "sweep: saved tables");
}

}  // namespace

// Two clusters, fourteen algorithms, eleven sizes: algorithm k takes (k + 1) us and 14 - k us for each 16 KiB.
void test_sweep(const Open& open) {
  json runs = json::array(), choices = json::array();
  std::vector<std::pair<double, std::string>> smallest;
  for (const std::string cluster : {"first", "second"}) {
    for (std::uint64_t bytes = 8; bytes <= std::uint64_t(8) << 30; bytes *= 8) {
      for (int k = 0; k < 14; ++k) {
        const double time_us = (k + 1) + double(bytes) * (14 - k) / 16384;
        json one = run(cluster, "allreduce", fmt::format("algorithm{:02}", k), bytes, time_us);
        one["auto"] = k == 13;
        if (runs.empty()) one["faults"] = {{"completed", true}};
        runs.push_back(one);
        if (bytes == 8 && cluster == "first") smallest.push_back({time_us, one["algorithm"]});
      }
      const double best = bytes < 16384 ? 1 + double(bytes) * 14 / 16384 : 14 + double(bytes) / 16384;
      const double chosen = 14 + double(bytes) / 16384;
      choices.push_back({{"cluster", cluster},
                         {"collective", "allreduce"},
                         {"engine", "model"},
                         {"ranks", 64},
                         {"bytes", bytes},
                         {"dtype", "f32"},
                         {"chosen", "algorithm13"},
                         {"chosen_us", chosen},
                         {"fastest", bytes < 16384 ? "algorithm00" : "algorithm13"},
                         {"fastest_us", best},
                         {"regret_percent", (chosen / best - 1) * 100}});
    }
  }
  json result = document("sweep", std::move(runs));
  result["choices"] = choices;
  const json found = open("sweep", result);
  if (found.is_null()) return;
  json seen = json::array();
  for (std::uint64_t bytes = 8; bytes <= std::uint64_t(8) << 30; bytes *= 8)
    seen.push_back(bytes < 16384 ? "algorithm00" : "algorithm13");
  const json chart = {{"series", 14},  {"points", 14 * 11}, {"fastest", 11}, {"chosen", 11},
                      {"colours", 12}, {"dashed", 0},       {"on_top", seen}};
  check_equal(found.at("charts").size(), 6, "sweep: time, bandwidth and ratio for each cluster");
  for (json one : found.at("charts")) {
    one.erase("title");
    check_equal(one, chart, "sweep: a chart");
  }
  check_equal(found.at("palettes").size(), 3, "sweep: colours for light paper, dark paper and print");
  for (const json& least : found.at("palettes"))
    check(least.get<double>() > 17, fmt::format("sweep: two colours are only {} apart", least.dump()));
  std::sort(smallest.begin(), smallest.end());
  json names = json::array();
  for (const auto& [time, name] : smallest) names.push_back(name);
  check_equal(found.at("tables").at(0).at("ascending"), names, "sweep: sorted by the first size");
  std::reverse(names.begin(), names.end());
  check_equal(found.at("tables").at(0).at("descending"), names, "sweep: sorted downwards");
  check_equal(found.at("tables").at(0).at("fastest"), 11, "sweep: fastest cells");
  check_equal(found.at("tables").at(0).at("chosen"), 11, "sweep: chosen cells");
  // 8 B, 64 B, 512 B and 4 KiB: algorithm00 leads; from 32 KiB on algorithm13. Regret at 8 B: 14.0005/1.0068 - 1.
  check_equal(found.at("headlines"),
              json{"allreduce on first: use algorithm00 to 4 KiB, algorithm13 above: 16.4 GB/s bus bandwidth at 8 GiB "
                   "(524.3 ms); the busiest nic link is 90 % busy: its bandwidth is the limit.",
                   "allreduce on second: use algorithm00 to 4 KiB, algorithm13 above: 16.4 GB/s bus bandwidth at 8 GiB "
                   "(524.3 ms); the busiest nic link is 90 % busy: its bandwidth is the limit."},
              "sweep: headlines");
  check_equal(
      found.at("findings").at(0),
      "allreduce: auto chose the fastest of those simulated at 7 of 11 points; 328 % slower on average, 1291 % at "
      "worst (8 B: algorithm13 instead of algorithm00).",
      "sweep: what the choices were worth");
  check_saved(found.at("saved"), result);
}

}  // namespace pages
