// Opens reports in headless Chromium, with a probe that uses every control, and holds what was drawn against what the
// results contain. Exit code 77: no Chromium here.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "sim/report/html.hpp"
#include "tests/browser/pages.hpp"
#include "tests/support/folder.hpp"

using namespace pages;

namespace {

// Two engines: one chart, the second engine dashed, each with its own fastest.
void test_engines(const Open& open) {
  json runs = json::array();
  for (const char* engine : {"model", "simgrid", "flow"})
    for (const std::uint64_t bytes : {1024, 1048576})
      for (const char* name : {"ring", "tree"}) {
        const bool first = (name == std::string("ring")) == (engine != std::string("simgrid"));
        runs.push_back(run("c", "allreduce", name, bytes, first ? 10 : 20));
        runs.back()["engine"] = engine;
      }
  const json found = open("engines", document("engines", std::move(runs)));
  if (found.is_null()) return;
  check_equal(found.at("charts").size(), 3, "engines: one group of charts");
  for (const json& chart : found.at("charts")) {
    check_equal(chart.at("series"), 6, "engines: series");
    check_equal(chart.at("dashed"), 4, "engines: dashed series");
    check_equal(chart.at("colours"), 2, "engines: one colour for each algorithm");
    check_equal(chart.at("fastest"), 6, "engines: the fastest of each engine at each size");
  }
  check_equal(found.at("headlines").size(), 1, "engines: headlines");
  const std::string note = found.at("findings").at(0);
  check(note ==
            "allreduce (model engine): model and simgrid differ by more than 10 % at 4 of 4 points, most for ring at "
            "1 KiB: model 10 us, simgrid 20 us; the fastest differs at 2 of 2 sizes.",
        "engines: " + note);
}

// Of two that take as long the one that the result marks is marked here too; who chose in place of the planner is said.
void test_marks(const Open& open) {
  json runs = json::array();
  for (const std::uint64_t bytes : {1024, 1048576})
    for (const char* name : {"ring", "tree"}) {
      runs.push_back(run("c", "allreduce", name, bytes, 10));
      runs.back()["auto"] = runs.back()["fastest"] = name == std::string("tree");
      if (bytes == 1024 && name == std::string("tree")) runs.back()["decided_by"] = "GCCL_ALGO";
    }
  const json found = open("marks", document("marks", std::move(runs)));
  if (found.is_null()) return;
  for (const json& chart : found.at("charts"))
    check_equal(chart.at("on_top"), json{"tree", "tree"}, "marks: the fastest");
  check_equal(found.at("findings").at(0), "allreduce: GCCL_ALGO chose for auto at 1 of 2 points.", "marks: who chose");
  check(found.at("method").get<std::string>().find("environmentGCCL_ALGO chose for auto") != std::string::npos,
        "marks: the command is not all that it takes: " + found.at("method").dump());
}

// What is repeated is no sequence of several collectives, and another engine's is another card.
void test_operations(const Open& open) {
  json runs = json::array();
  const auto add = [&](const char* collective, const char* algorithm, const char* engine, int ranks) {
    runs.push_back(run("c", collective, algorithm, 1024, 30));
    runs.back().update({{"engine", engine}, {"ranks", ranks}});
    runs.back()["operations"] = json::array({{{"collective", "allreduce"},
                                              {"algorithm", "ring"},
                                              {"ranks", ranks},
                                              {"bytes", 1024},
                                              {"begin_us", 0},
                                              {"end_us", 30}}});
  };
  for (const char* engine : {"model", "flow"}) add("sequence", "concurrent", engine, 8);
  for (const int ranks : {8, 16}) add("allreduce", "ring", "model", ranks);
  const json found = open("operations", document("operations", std::move(runs)));
  if (found.is_null()) return;
  check_equal(found.at("titles"), json{"sequence (model engine)", "sequence (flow engine)", "allreduce"},
              "operations: cards");
  check_equal(found.at("choices"), json{"ring, 8 ranks, 1 KiB, 30 \u00b5s", "ring, 16 ranks, 1 KiB, 30 \u00b5s"},
              "operations: runs of a card");
  check_equal(found.at("printed_runs"), json{"ring, 16 ranks, 1 KiB, 30 \u00b5s: one of 2 runs"},
              "operations: what the reader chose stands on paper");
}

// Nothing that was run is left out: what asks for something else has a section of its own, with what tells it apart in
// the title, and what takes another time a point.
void test_all_shown(const Open& open) {
  json runs = json::array();
  const auto add = [&](const json& more) {
    runs.push_back(run("c", "allreduce", "ring", 1024, 10 + double(runs.size())));
    runs.back().update(
        {{"run", 0}, {"like_run", 0}, {"world_ranks", 128}, {"groups", 2}, {"op", "sum"}, {"index", runs.size()}});
    runs.back().update({{"planned", true}, {"planner", "nccl"}});
    runs.back().update(more);
  };
  add(json::object());
  add({{"world_ranks", 256}, {"groups", 4}});
  add({{"world_ranks", 256}});
  add({{"op", "max"}});
  add({{"run", 1}, {"like_run", 1}});
  add({{"planner", "openmpi"}});  // as the first, planned otherwise
  add(json::object());            // the same once more, with another time
  json result = document("it's all", std::move(runs));
  result["scenario"]["file"] = "it's all.json";
  const json found = open("all", result);
  if (found.is_null()) return;
  check_equal(found.at("titles"),
              json{"allreduce (2 groups, of 128 ranks, sum, run 0)", "allreduce (4 groups, of 256 ranks, sum)",
                   "allreduce (2 groups, of 256 ranks, sum)", "allreduce (2 groups, of 128 ranks, max)",
                   "allreduce (2 groups, of 128 ranks, sum, run 1)"},
              "all: sections");
  std::size_t points = 0;
  for (const json& chart : found.at("charts"))
    if (chart.at("title") == "Time") points += chart.at("points").get<std::size_t>();
  check_equal(json(points), 7, "all: points");
  check_equal(found.at("command"), "gccl run 'it'\\''s all.json' --engine model --seed 1 --html REPORT.html",
              "all: the command");
  for (json& r : result["runs"]) r["planner"] = "nccl";
  const json planned = open("planned", result);
  if (!planned.is_null())
    check_equal(planned.at("command"),
                "gccl run 'it'\\''s all.json' --engine model --planner nccl --seed 1 --html REPORT.html",
                "all: the command with a planner");
}

void test_edges(const Open& open) {
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
  // The same algorithm with 1 and 4 channels, and once more because auto chose it: two series, not three.
  for (const int channels : {1, 4, 4}) {
    runs.push_back(run("c", "scatter", "ring", 64, 9.0 / channels));
    runs.back()["channels"] = channels;
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

// Words without a blank break, wherever names and descriptions stand.
void test_long_words(const Open& open) {
  const std::string word(300, 'x');
  json runs = json::array();
  for (const char* name : {"ring", "hierarchical(recursive_doubling,recursive_doubling)"})
    for (const std::uint64_t bytes : {64, 4096}) {
      runs.push_back(run(word, "allreduce", name, bytes, 5));
      runs.back()["label"] = word;
      runs.push_back(run("c", "allreduce", name, bytes, 5));
    }
  const json found = open("long", document(word, std::move(runs)));
  if (!found.is_null()) check_equal(found.at("title"), word, "long: the heading");
}

void test_empty(const Open& open) {
  for (const json& result : {json::object(), document("none", json::array())}) {
    const json found = open("empty", result);
    if (!found.is_null()) check_equal(found.at("charts"), json::array(), "empty: no chart");
  }
}

// Pages without scripts: at a phone's width nothing but what scrolls by itself is wider.
void test_other_pages(const std::filesystem::path& folder, const std::string& browser) {
  const std::pair<const char*, const char*> kPages[] = {
      {"tune", "tune l40s-box --collectives allreduce --bytes 8,1MiB --ranks 2,8 --confirm 0 --html"},
      {"step", "run decode-tensor-8 --html"},
      {"availability", "availability availability/meta-rsc --html"},
      {"validation", "validate long.csv --cluster pcie-box --html"}};
  std::ofstream csv(folder / "long.csv");
  csv << "system,collective,bytes,time_us,nodes,gpus_per_node\n";
  for (const std::string& system : {std::string(200, 'x'), std::string("short")})
    for (const int bytes : {64, 4096}) csv << system << ",allreduce," << bytes << ",20,1,8\n";
  csv.close();
  for (const auto& [name, command] : kPages) {
    const std::string page = (folder / name).string() + ".html", frame = page + ".frame.html", dom = page + ".dom";
    check(gccl::test::shell(fmt::format("'{}' {} '{}' >'{}' 2>&1", GCCL_PROGRAM, command, page, dom), folder) == 0,
          fmt::format("{}: the program failed: {}", name, content(dom)));
    std::ofstream(frame) << fmt::format(
        "<!DOCTYPE html><iframe src='{}.html' style='width:390px;height:800px;border:0'></iframe><script>"
        "onload = () => {{ document.title = 'width ' + "
        "document.querySelector('iframe').contentDocument.documentElement.scrollWidth; }};</script>",
        name);
    check(gccl::test::shell(
              fmt::format("timeout 120 '{}' --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
                          "--no-first-run --disable-extensions --allow-file-access-from-files --window-size=800,900 "
                          "--user-data-dir='{}.profile' --dump-dom 'file://{}' >'{}' 2>/dev/null",
                          browser, page, frame, dom)) == 0,
          fmt::format("{}: chromium failed", name));
    const std::string found = content(dom), title = "<title>width ";
    const std::size_t at = found.find(title);
    check(at != std::string::npos, fmt::format("{}: the page was not opened", name));
    if (at == std::string::npos) continue;
    const int width = std::atoi(found.c_str() + at + title.size());
    check(width > 0 && width <= 390, fmt::format("{}: the page is {} wide on a phone", name, width));
  }
}

}  // namespace

int main() {
  const std::string browser = chromium();
  if (browser.empty()) {
    std::cout << "SKIPPED: no Chromium on this machine (Debian: apt-get install chromium)\n";
    return 77;
  }
  gccl::test::Folder folder;
  const Open open = [&](const std::string& name, const json& result) {
    const std::string drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>window.hostile=1</script></svg>";
    const std::string page = gccl::sim::html_report(result, {{"c", drawing}, {"first", drawing}});
    probe(folder.path, browser, name + "-phone", page, 390);
    return probe(folder.path, browser, name, page, 1300);
  };
  test_sweep(open);
  test_edges(open);
  test_engines(open);
  test_marks(open);
  test_operations(open);
  test_all_shown(open);
  test_long_words(open);
  test_empty(open);
  test_other_pages(folder.path, browser);
  folder.kept = failures > 0;
  if (folder.kept) std::cerr << failures << " failures; pages are in " << folder.path << "\n";
  return failures == 0 ? 0 : 1;
}
