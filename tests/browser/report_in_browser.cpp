// Opens reports in headless Chromium, with a probe that uses every control, and holds what was drawn against what the
// results contain. Exit code 77: no Chromium here.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "sim/report/html.hpp"

using nlohmann::json;

namespace {

int failures = 0;

void check(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::cerr << "FAILED: " << what << "\n";
}

template <class T>
void check_equal(const json& found, const T& expected, const std::string& what) {
  check(found == json(expected), fmt::format("{}: found {}, expected {}", what, found.dump(), json(expected).dump()));
}

std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}) {
    std::stringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(path, folder, ':');) {
      if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
    }
  }
  return "";
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += char(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// What the probe found on the page; null when it did not get to its end.
json probe(const std::filesystem::path& folder, const std::string& browser, const std::string& name, std::string page) {
  const std::size_t end = page.rfind("</body>");
  page.insert(end, "<script>" + content(GCCL_PROBE) + "</script>\n");
  const auto file = [&](const char* what) { return (folder / (name + what)).string(); };
  std::ofstream(file(".html")) << page;
  const std::string command = fmt::format(
      "timeout 60 '{}' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
      "--disable-extensions "
      "--enable-logging=stderr --window-size=1300,900 --user-data-dir='{}' --dump-dom 'file://{}' >'{}' 2>'{}'",
      browser, file(".profile"), file(".html"), file(".dom"), file(".log"));
  check(std::system(command.c_str()) == 0, name + ": chromium failed: " + content(file(".log")));
  std::istringstream log(content(file(".log")));
  for (std::string line; std::getline(log, line);) {
    check(line.find(":CONSOLE") == std::string::npos, name + ": on the console: " + line);
  }
  const std::string dom = content(file(".dom")), open = "<pre id=\"probe\">";
  const std::size_t begin = dom.find(open);
  check(begin != std::string::npos, name + ": the probe did not finish");
  if (begin == std::string::npos) return nullptr;
  const json found =
      json::parse(decoded(dom.substr(begin + open.size(), dom.find("</pre>", begin) - begin - open.size())));
  for (const json& error : found.at("errors")) check(false, name + ": " + error.get<std::string>());
  return found;
}

json run(const std::string& cluster, const std::string& collective, const std::string& algorithm, std::uint64_t bytes,
         double time_us) {
  const double rate = time_us > 0 ? double(bytes) / time_us / 1e3 : 0;
  return {{"cluster", cluster},
          {"label", ""},
          {"collective", collective},
          {"algorithm", algorithm},
          {"engine", "model"},
          {"ranks", 64},
          {"bytes", bytes},
          {"count", bytes / 4},
          {"dtype", "f32"},
          {"root", 0},
          {"in_place", false},
          {"shares", 1},
          {"lanes", 1},
          {"window", 8},
          {"time_us", time_us},
          {"algbw_GBps", rate},
          {"busbw_GBps", rate},
          {"messages", 126},
          {"message_bytes", 2 * bytes},
          {"wall_s", 0.01},
          {"predicted_us", time_us * 1.1},
          {"auto", false},
          {"fastest", false},
          {"wrong", nullptr},
          {"tiers",
           {{{"tier", "nic"},
             {"links", 8},
             {"bytes", bytes},
             {"busiest_link", "nic0"},
             {"busiest_utilisation", 0.9},
             {"mean_utilisation", 0.4}}}}};
}

json document(const std::string& name, json runs) {
  json clusters = json::array();
  for (const json& r : runs) {
    const json c = {{"name", r.value("cluster", "")}, {"cards", 64}, {"nodes", 8}};
    if (std::find(clusters.begin(), clusters.end(), c) == clusters.end()) clusters.push_back(c);
  }
  return {{"schema", "gccl/result/1"},
          {"version", "0.1.0"},
          {"ok", true},
          {"seed", 1},
          {"clusters", clusters},
          {"scenario", {{"name", name}, {"description", name}, {"file", name}}},
          {"runs", std::move(runs)}};
}

// Two clusters, fourteen algorithms, eleven sizes: algorithm k takes (k + 1) us and 14 - k us for each 16 KiB.
void test_sweep(const std::function<json(const std::string&, const json&)>& open) {
  json runs = json::array(), choices = json::array();
  std::vector<std::pair<double, std::string>> smallest;
  for (const std::string cluster : {"first", "second"}) {
    for (std::uint64_t bytes = 8; bytes <= std::uint64_t(8) << 30; bytes *= 8) {
      for (int k = 0; k < 14; ++k) {
        const double time_us = (k + 1) + double(bytes) * (14 - k) / 16384;
        json one = run(cluster, "allreduce", fmt::format("algorithm{:02}", k), bytes, time_us);
        one["auto"] = k == 13;
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
  const json chart = {{"series", 14}, {"points", 14 * 11}, {"fastest", 11}, {"chosen", 11}};
  check_equal(found.at("charts").size(), 6, "sweep: time, bandwidth and ratio for each cluster");
  for (json one : found.at("charts")) {
    one.erase("title");
    check_equal(one, chart, "sweep: a chart");
  }
  std::sort(smallest.begin(), smallest.end());
  json names = json::array();
  for (const auto& [time, name] : smallest) names.push_back(name);
  check_equal(found.at("tables").at(0).at("ascending"), names, "sweep: sorted by the first size");
  std::reverse(names.begin(), names.end());
  check_equal(found.at("tables").at(0).at("descending"), names, "sweep: sorted downwards");
  check_equal(found.at("tables").at(0).at("fastest"), 11, "sweep: fastest cells");
  check_equal(found.at("tables").at(0).at("chosen"), 11, "sweep: chosen cells");
  // 8 B, 64 B, 512 B and 4 KiB: algorithm00 leads; from 32 KiB on algorithm13. Regret at 8 B: 14.0005/1.0068 - 1.
  const std::string finding = found.at("findings").at(0);
  for (const char* part :
       {"allreduce: algorithm00 is fastest up to 4 KiB, algorithm13 from 32 KiB.",
        "auto chose the fastest at 7 of 11 points", "1291 % at worst (8 B: algorithm13 instead of algorithm00)"}) {
    check(finding.find(part) != std::string::npos, fmt::format("sweep: \"{}\" lacks \"{}\"", finding, part));
  }
}

void test_edges(const std::function<json(const std::string&, const json&)>& open) {
  const std::string hostile =
      "</script><script>window.hostile=1</script><hostile></hostile><img src=x onerror=\"window.hostile=1\">\"'&";
  json runs = json::array();
  // One size, and a name no browser should run: bars.
  for (const char* tail : {"", "1", "2"}) runs.push_back(run(hostile, hostile, hostile + tail, 1024, 5));
  // A barrier has no size and no bandwidth: one chart of bars.
  for (const char* name : {"tree", "ring"}) runs.push_back(run("c", "barrier", name, 0, 7));
  // Zero among the sizes, and a time of zero: the places beside a logarithmic axis. 3 charts of 2 series, 3 points
  // each.
  for (const char* name : {"tree", "ring"}) {
    for (const std::uint64_t bytes : {0, 8, 4096})
      runs.push_back(run("c", "broadcast", name, bytes, bytes == 8 ? 0 : 3));
  }
  // One point; and nothing but zero.
  runs.push_back(run("c", "reduce", "only", 64, 2));
  runs.push_back(run("c", "gather", "nothing", 0, 0));
  // One size, several rank counts: against ranks. 3 charts of 2 series, 2 points each.
  for (const char* name : {"tree", "ring"}) {
    for (const int ranks : {1, 100000}) {
      runs.push_back(run("c", "alltoall", name, 64, ranks * 2.5));
      runs.back()["ranks"] = ranks;
    }
  }
  // The same algorithm with 1 and 4 lanes, and once more because auto chose it: two series, not three.
  for (const int lanes : {1, 4, 4}) {
    runs.push_back(run("c", "scatter", "ring", 64, 9.0 / lanes));
    runs.back()["lanes"] = lanes;
  }
  runs.back()["auto"] = true;
  // Values that are missing.
  runs.push_back(run("c", "allgather", "partial", 64, 1));
  for (const char* key : {"predicted_us", "busbw_GBps", "algbw_GBps", "wall_s", "messages"}) runs.back()[key] = nullptr;
  runs.back().erase("tiers");
  runs.push_back({{"cluster", "c"}, {"collective", "sendrecv"}, {"algorithm", "bare"}});
  // Operations, some of no length.
  runs.push_back(run("c", "sequence", hostile, 0, 30));
  for (int i = 0; i < 5; ++i) {
    runs.back()["operations"].push_back({{"collective", hostile},
                                         {"algorithm", "ring"},
                                         {"ranks", 4},
                                         {"bytes", 8},
                                         {"begin_us", i * 5},
                                         {"end_us", i * 10}});
  }
  runs.push_back(run("c", "sequence", "", 0, 0));
  runs.back()["label"] = "empty";
  runs.back()["operations"] = json::array();
  json result = document(hostile, std::move(runs));
  result["expectations"] = {{{"pointer", hostile}, {"text", hostile}, {"found", hostile}, {"ok", false}}};
  const json found = open("edges", result);
  if (found.is_null()) return;
  check_equal(found.at("title"), hostile, "edges: the heading");
  json charts = json::array();
  for (const json& c : found.at("charts"))
    charts.push_back({c.at("series"), c.at("points"), c.at("fastest"), c.at("chosen")});
  const json expected = {{3, 3, 0, 0}, {3, 3, 0, 0},                // hostile bars
                         {2, 2, 0, 0},                              // barrier: time only
                         {2, 6, 3, 0}, {2, 6, 3, 0}, {2, 4, 2, 0},  // broadcast; no ratio to a time of zero
                         {1, 1, 0, 0}, {1, 1, 0, 0},                // one point
                         {1, 1, 0, 0},                              // nothing but zero
                         {2, 4, 2, 0}, {2, 4, 2, 0}, {2, 4, 2, 0},  // against ranks
                         {2, 2, 0, 1}, {2, 2, 0, 1},                // lanes
                         {1, 1, 0, 0}};                             // partial; of the bare run nothing can be drawn
  check_equal(charts, expected, "edges: series, points, fastest, chosen of each chart");
  check_equal(found.at("timelines"), json{5, 0}, "edges: operations drawn");
}

void test_empty(const std::function<json(const std::string&, const json&)>& open) {
  for (const json& result : {json::object(), document("none", json::array())}) {
    const json found = open("empty", result);
    if (!found.is_null()) check_equal(found.at("charts"), json::array(), "empty: no chart");
  }
}

}  // namespace

int main() {
  const std::string browser = chromium();
  if (browser.empty()) {
    std::cout << "SKIPPED: no Chromium on this machine (Debian: apt-get install chromium)\n";
    return 77;
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "gccl-browser-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) {
    std::cerr << "cannot make a folder like " << pattern << "\n";
    return 1;
  }
  const auto open = [&](const std::string& name, const json& result) {
    const std::string drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>window.hostile=1</script></svg>";
    return probe(pattern, browser, name, gccl::sim::html_report(result, {{"c", drawing}, {"first", drawing}}));
  };
  test_sweep(open);
  test_edges(open);
  test_empty(open);
  if (failures == 0)
    std::filesystem::remove_all(pattern);
  else
    std::cerr << failures << " failures; pages are in " << pattern << "\n";
  return failures == 0 ? 0 : 1;
}
