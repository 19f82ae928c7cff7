// The program as a user meets it: exit codes, whole output files, interrupts. Wrong input is in cli_wrong_input.cpp.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/cli/scenario_text.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

// Takes minutes on the model engine: a ring over 2048 ranks, many times.
std::string long_scenario() {
  std::string bytes;
  for (int i = 1; i <= 100; ++i) bytes += fmt::format("{}{}", i > 1 ? "," : "", i * 1000000);
  return fmt::format(
      R"({{"schema":"gccl/scenario/1","name":"long","cluster":"{}","runs":[{{"collective":"allreduce","bytes":[{}],"algorithms":"ring"}}]}})",
      (kRoot / "topologies/dgx-h100-superpod-2048.json").string(), bytes);
}

}  // namespace

TEST_CASE("the program alone prints help, and its version when asked") {
  const Ended help = run_gccl({});
  CHECK(help.code == 0);
  for (const char* word : {"run", "list", "topology", "verify"}) CHECK(help.out.find(word) != std::string::npos);
  const Ended version = run_gccl({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("gccl "));
  CHECK(run_gccl({"run", "--help"}).code == 0);
}

TEST_CASE("outputs that cannot be written are reported before anything runs") {
  const Folder folder;
  const fs::path file = folder.write("long.json", long_scenario());
  fs::create_symlink("long.json", folder.path / "link.json");
  fs::create_symlink("x", folder.path / "link_to_x");  // which is not there
  const std::pair<std::vector<std::string>, std::string> kCases[] = {
      {{"--json", "/no/such/folder/x.json"}, "/no/such/folder/x.json: cannot be written: No such file or directory"},
      {{"--html", "/no/such/folder/x.html"}, "cannot be written"},
      {{"--trace", folder.path.string()}, "cannot be written: Is a directory"},
      {{"--json", "long.json/x"}, "cannot be written: Not a directory"},
      {{"--json", "x", "--html", "./x"}, "named for two outputs"},
      {{"--json", "x", "--html", (folder.path / "x").string()}, "named for two outputs"},
      {{"--json", "x", "--csv", "link_to_x"}, "link_to_x: named for two outputs"},
      {{"--json", "long.json"}, "long.json: is read, and cannot be an output too"},
      {{"--json", "link.json"}, "link.json: is read, and cannot be an output too"},
      {{"--html", "-"}, "--html: found \"-\", expected a file"},
  };
  for (const auto& [more, expected] : kCases) {
    std::vector<std::string> arguments{"run", file.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended e = run_gccl(arguments, folder.path);
    CAPTURE(e.err);
    CHECK(e.code == 2);
    CHECK(one_line(e.err));
    CHECK(e.err.find(expected) != std::string::npos);
  }
  CHECK(folder.files() == std::set<std::string>{"link.json", "link_to_x", "long.json"});
  // A drawing and numbers as well.
  const fs::path shipped = kRoot / "topologies/pcie-box.json";
  fs::copy_file(shipped, folder.path / "box.json");
  for (const auto& [svg, json, expected] : {std::tuple("x", "./x", "./x: named for two outputs"),
                                            {"box.json", "y", "box.json: is read, and cannot be an output too"},
                                            {"y", "./box.json", "./box.json: is read, and cannot be an output too"}}) {
    const Ended e = run_gccl({"topology", "box.json", "--svg", svg, "--json", json}, folder.path);
    CHECK(e.code == 2);
    CHECK(e.err == std::string("gccl topology: ") + expected + "\n");
  }
  CHECK(folder.files() == std::set<std::string>{"box.json", "link.json", "link_to_x", "long.json"});
  CHECK(read_text(folder.path / "box.json") == read_text(shipped));
  CHECK(read_text(file) == long_scenario());
  Json cluster = Json::parse(read_text(kRoot / "topologies/pcie-box.json"));
  cluster["parameters"] = (kRoot / "cost-models/pcie-gpu.json").string();
  folder.write("c.json", cluster.dump());
  folder.write("s.json",
               R"({"schema":"gccl/scenario/1","name":"t","cluster":"c.json","runs":[{"collective":"barrier"}]})");
  const Ended e = run_gccl({"run", "s.json", "--csv", "./c.json"}, folder.path);
  CHECK(e.code == 2);
  CHECK(e.err == "gccl: ./c.json: is read, and cannot be an output too\n");
  CHECK(read_text(folder.path / "c.json") == cluster.dump());
}

TEST_CASE("an availability study and the rates that it names are no outputs") {
  const Folder folder;
  Json study = Json::parse(read_text(kRoot / "scenarios/availability/meta-rsc.json"));
  study["failures"] = "rates.json";
  study["days"] = 1;
  const std::string text = study.dump(), rates = read_text(kRoot / "cost-models/failures/meta-rsc-1.json");
  folder.write("s.json", text);
  folder.write("rates.json", rates);
  for (const auto& [option, file] : {std::pair("--json", "s.json"), {"--html", "./rates.json"}}) {
    const Ended e = run_gccl({"availability", "s.json", option, file}, folder.path);
    CHECK(e.code == 2);
    CHECK(e.err == fmt::format("gccl: {}: is read, and cannot be an output too\n", file));
  }
  const Ended both = run_gccl({"availability", "s.json", "--json", "-", "--html", "-"}, folder.path);
  CHECK(both.code == 2);
  CHECK(both.out.empty());
  const Ended played = run_gccl({"run", "s.json"}, folder.path);
  CHECK(played.code == 2);
  CHECK(played.err == "gccl: s.json: is an availability study, which gccl availability plays\n");
  CHECK(read_text(folder.path / "s.json") == text);
  CHECK(read_text(folder.path / "rates.json") == rates);
}

TEST_CASE("a full disk is reported") {
  const Folder folder;
  const fs::path file = folder.write("s.json", scenario());
  const Ended e = run_gccl({"run", file.string(), "--json", "/dev/full"});
  CHECK(e.code == 2);
  CHECK(e.err == "gccl: /dev/full: cannot be written: No space left on device\n");
  CHECK(run_gccl({"run", file.string(), "--json", "/dev/null"}).code == 0);
}

TEST_CASE("results go to the terminal, to JSON alone, and to files") {
  const Folder folder;
  const fs::path file = folder.write(
      "s.json",
      scenario(
          R"("runs":[{"collective":"allreduce","bytes":[64,"1MiB"],"algorithms":["all","auto"],"expect":{"max_time_us":"1s"}}])"));
  const Ended table = run_gccl({"run", file.string()});
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  for (const char* word : {"allreduce on pcie-box, 8 ranks", "64 B", "1 MiB", "ring", "held"})
    CHECK(table.out.find(word) != std::string::npos);
  const Ended json = run_gccl({"run", file.string(), "--json", "-"});
  CHECK(json.code == 0);
  const gccl::test::JsonSchema schema(Json::parse(read_text(kRoot / "sim/scenario/result.schema.json")));
  CHECK(schema.accepts(Json::parse(json.out)));
  const Ended files = run_gccl(
      {"run", file.string(), "--json", "r.json", "--html", "r.html", "--trace", "t.json", "--quiet"}, folder.path);
  CHECK(files.code == 0);
  CHECK(files.out.empty());
  CHECK(folder.files() == std::set<std::string>{"r.html", "r.json", "s.json", "t.json"});
  CHECK(Json::parse(read_text(folder.path / "r.json"))["runs"].size() == Json::parse(json.out)["runs"].size());
  CHECK(read_text(folder.path / "r.html").find("</html>") != std::string::npos);
  CHECK(!Json::parse(read_text(folder.path / "t.json")).empty());
}

TEST_CASE("rows go to CSV, alone on standard output or into a file, with the names of the result's fields") {
  const Folder folder;
  const fs::path file = folder.write(
      "s.json",
      scenario(
          R"("runs":[{"label":"a, \"b\"","collective":"allreduce","bytes":[64,4096],"algorithms":"all","repeats":3}])"));
  const Ended both = run_gccl({"run", file.string(), "--csv", "r.csv", "--json", "-"}, folder.path);
  REQUIRE(both.code == 0);
  const Json rows = Json::parse(both.out)["runs"];
  const std::string text = read_text(folder.path / "r.csv");
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::vector<std::string> names;
  std::istringstream head(line);
  for (std::string name; std::getline(head, name, ',');) names.push_back(name);
  for (const auto& [key, value] : rows[0].items())
    CHECK((value.is_structured() || std::find(names.begin(), names.end(), key) != names.end()));
  std::size_t n = 0;
  for (; std::getline(lines, line); ++n) {
    const std::string label = R"("a, ""b""")";
    const std::size_t at = line.find(label);
    REQUIRE(at != std::string::npos);
    line.replace(at, label.size(), "L");
    std::vector<std::string> cells;
    std::istringstream parts(line + ",");
    for (std::string cell; std::getline(parts, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "label" || names[i] == "wall_s" || names[i] == "peak_rss_MB") continue;
      const Json value = rows[n].value(names[i], Json());
      CHECK(cells[i] == (value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  CHECK(n == rows.size());
  const Ended alone = run_gccl({"run", file.string(), "--csv", "-"});
  CHECK(alone.code == 0);
  CHECK(alone.out.starts_with(text.substr(0, text.find('\n') + 1)));
  CHECK(std::count(alone.out.begin(), alone.out.end(), '\n') == std::count(text.begin(), text.end(), '\n'));
  const Ended two = run_gccl({"run", file.string(), "--csv", "-", "--json", "-"});
  CHECK(two.code == 2);
  CHECK(two.err == "gccl: only one of --json and --csv can be written to standard output\n");
  CHECK(run_gccl({"run", file.string(), "--csv", "/dev/full"}).code == 2);
}

TEST_CASE("the table names the winner, chunks and channels, and says what to use") {
  const Folder folder;
  const fs::path file = folder.write("s.json", scenario(R"("runs":[
      {"label":"whole","collective":"allreduce","bytes":[64,"64MiB"],"algorithms":["ring","recursive_doubling","auto"]},
      {"label":"cut","collective":"allreduce","bytes":["64MiB"],"algorithms":"ring","chunks":8,"channels":4}])"));
  const Ended e = run_gccl({"run", file.string()});
  CHECK(e.code == 0);
  for (const char* words :
       {"fastest", "allreduce \"cut\" on pcie-box, 8 ranks, f32, 8 chunks on 4 channels, model engine",
        "  allreduce \"whole\" on pcie-box (model): the fastest at", "allreduce \"whole\" on pcie-box: use "})
    CHECK_MESSAGE(e.out.find(words) != std::string::npos, words);
  const Ended help = run_gccl({"run", "--help"});
  CHECK(help.out.find("ui.perfetto.dev") != std::string::npos);
}

TEST_CASE("a broken expectation gives exit code 1 and says what was found") {
  const Folder folder;
  const fs::path file = folder.write(
      "s.json",
      scenario(R"("runs":[{"collective":"allreduce","bytes":64,"algorithms":"ring","expect":{"max_time_us":0}}])"));
  const Ended e = run_gccl({"run", file.string(), "--quiet"});
  CHECK(e.code == 1);
  CHECK(e.out.starts_with("BROKEN  allreduce: time_us <= 0; found "));
  CHECK(e.out.find("[/runs/0/expect/max_time_us]") != std::string::npos);
}

TEST_CASE("the same seed gives the same result, whatever the number of jobs") {
  const Folder folder;
  const fs::path file = folder.write(
      "s.json",
      scenario(
          R"("placement":"random","runs":[{"collective":"alltoallv","bytes":4096,"counts":{"distribution":"random"},"algorithms":"all"}])"));
  const auto times = [&](const char* seed, const char* jobs) {
    const Json result =
        Json::parse(run_gccl({"run", file.string(), "--json", "-", "--seed", seed, "--jobs", jobs}).out);
    Json all;
    for (const Json& row : result["runs"]) all.push_back({row["time_us"], row["messages"], row["tiers"]});
    return all;
  };
  CHECK(times("1", "1") == times("1", "4"));
  CHECK(times("1", "1") != times("2", "1"));
}

TEST_CASE("an interrupt ends the program and its children at once, without a trace in the file system") {
  const Folder folder;
  const fs::path file = folder.write("long.json", long_scenario());
  for (const auto& [sig, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    Program p({"run", file.string(), "--json", "r.json", "--html", "r.html", "--jobs", "2"}, {.folder = folder.path});
    REQUIRE(p.has_children(std::chrono::seconds(60)));
    kill(p.pid(), sig);
    const Ended e = p.wait();
    CHECK(e.code == code);
    CHECK(e.err == "gccl: interrupted\n");
    CHECK(p.group_ends(std::chrono::seconds(5)));
    CHECK(folder.files() == std::set<std::string>{"long.json"});
  }
}

// As a service manager or a batch system does, one process after the other.
TEST_CASE("where its children are asked to end before it, the program is interrupted all the same") {
  const Folder folder;
  Program p({"run", folder.write("long.json", long_scenario()).string(), "--jobs", "2"}, {.folder = folder.path});
  REQUIRE(p.has_children(std::chrono::seconds(60)));
  const std::string id = std::to_string(p.pid());
  std::istringstream children(read_text("/proc/" + id + "/task/" + id + "/children"));
  for (pid_t child = 0; children >> child;) kill(child, SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the program looks at its children ten times a second
  kill(p.pid(), SIGTERM);
  const Ended e = p.wait();
  CHECK(e.code == 143);
  CHECK(e.err == "gccl: interrupted\n");
  CHECK(p.group_ends(std::chrono::seconds(5)));
}

TEST_CASE("children end when the program is killed") {
  const Folder folder;
  Program p({"run", folder.write("long.json", long_scenario()).string(), "--jobs", "2"}, {.folder = folder.path});
  REQUIRE(p.has_children(std::chrono::seconds(60)));
  kill(p.pid(), SIGKILL);
  CHECK(p.wait().code == 128 + SIGKILL);
  CHECK(p.group_ends(std::chrono::seconds(5)));
}

TEST_CASE("list says what there is, as text and as JSON") {
  for (const char* what : {"algorithms", "collectives", "engines", "topologies", "scenarios"}) {
    CAPTURE(what);
    const Ended text = run_gccl({"list", what});
    CHECK(text.code == 0);
    const Ended json = run_gccl({"list", what, "--json"});
    CHECK(json.code == 0);
    const Json all = Json::parse(json.out)[what];
    CHECK(all.size() >= (what == std::string("engines") ? kEngines.size() : 2));
    for (const Json& entry : all) CHECK(text.out.find(entry["name"].get<std::string>()) != std::string::npos);
  }
  const Folder empty;
  CHECK(run_gccl({"list", "collectives"}, empty.path).code == 0);
}

TEST_CASE("a file of another kind is neither listed nor offered nor in the way; one with a mistake is") {
  const Folder folder;
  fs::create_directory(folder.path / "topologies");
  folder.write("topologies/a-result.json", R"({"runs": [], "schema": "gccl/result/1"})");
  folder.write("topologies/pcie-box.json", R"({"schema": "gccl/parameters/1"})");
  folder.write("topologies/broken.json", "{");
  const std::string listed = run_gccl({"list", "topologies"}, folder.path).out;
  CHECK(listed.find("a-result") == std::string::npos);
  CHECK(listed.find("\nbroken ") != std::string::npos);
  CHECK(run_gccl({"topology", "pcie-box"}, folder.path).out.starts_with("pcie-box\n"));
  const std::string err = run_gccl({"topology", "zzzzzzzzzzzzzzzzzz"}, folder.path).err;
  CHECK_MESSAGE(err.find("a-result") == std::string::npos, err);
  CHECK_MESSAGE(err.find("broken, ") != std::string::npos, err);
}

TEST_CASE("--planner replaces the scenario's, and names that do not exist are wrong input") {
  const Ended wrong = run_gccl({"run", "barrier-latency", "--planner", "ncl"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err == "gccl: --planner: found \"ncl\"; did you mean \"nccl\"?\n");
  const Folder folder;
  const std::string text = R"({"schema":"gccl/scenario/1","name":"p","cluster":"dgx-h100-superpod-2048","ranks":16,)"
                           R"("runs":[{"collective":"allreduce","bytes":1024}]})";
  const Ended e = run_gccl({"run", folder.write("s.json", text).string(), "--planner", "nccl"});
  CHECK(e.code == 0);
  CHECK(e.out.find("planned as nccl would: tree, LL.") != std::string::npos);
}

TEST_CASE("expectations about an engine that --engine leaves out are reported as unchecked") {
  const Folder folder;
  const auto run = [&](const std::string& expect) {
    const std::string text = R"({"schema":"gccl/scenario/1","name":"t","cluster":"pcie-box","runs":[{"collective":)"
                             R"("barrier","engine":["model","simgrid"],"expect":[{"max_time_us":"1s"})" +
                             expect + "]}]}";
    return run_gccl({"run", folder.write("s.json", text).string(), "--quiet", "--engine", "model"});
  };
  const std::string one = R"(,{"engine":"simgrid","max_time_us":0})";
  CHECK(run("").err == "");
  CHECK(run(one).err == "gccl: 1 expectation is not checked: about another engine than --engine model\n");
  CHECK(run(one + one).err == "gccl: 2 expectations are not checked: about another engine than --engine model\n");
  CHECK(run(one).code == 0);
}

#ifndef GCCL_TEST_SIMGRID
TEST_CASE("without SimGrid its engine is wrong input, and what would help is said") {
  const Ended e = run_gccl({"run", "barrier-latency", "--engine", "simgrid"});
  CHECK(e.code == 2);
  CHECK(one_line(e.err));
  CHECK(e.err.find("the simgrid engine needs SimGrid (libsimgrid-dev") != std::string::npos);
}
#endif

TEST_CASE("a folder with a shipped file's name does not hide it") {
  const Folder folder;
  for (const char* name : {"barrier-latency", "pcie-box", "other"}) fs::create_directory(folder.path / name);
  CHECK(run_gccl({"run", "barrier-latency", "--quiet"}, folder.path).code == 0);
  CHECK(run_gccl({"topology", "pcie-box"}, folder.path).out.starts_with("pcie-box\n"));
  CHECK(run_gccl({"run", "other"}, folder.path).err == "gccl: other: is a folder, expected a file\n");
}

TEST_CASE("control characters in names reach neither the terminal nor the drawing") {
  const Folder folder;
  Json cluster = Json::parse(std::ifstream(kRoot / "topologies/pcie-box.json"));
  cluster["parameters"] = (kRoot / "topologies" / cluster["parameters"].get<std::string>()).string();
  cluster["name"] = "box\x1b[2J\x07\u009b\u202e<b>";
  cluster["description"] = "d\x1b]0;title\x07";
  std::ofstream(folder.path / "c.json") << cluster.dump();
  std::ofstream(folder.path / "s.json")
      << R"({"schema":"gccl/scenario/1","name":"n\u001b[31m","cluster":"c.json","runs":[{"collective":"allreduce","bytes":64}]})";
  const auto clean = [](const std::string& text) {
    return !text.empty() &&
           std::none_of(text.begin(), text.end(),
                        [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }) &&
           text.find("\u009b") == std::string::npos && text.find("\u202e") == std::string::npos;
  };
  const std::string file = (folder.path / "c.json").string();
  for (const Ended& e : {run_gccl({"topology", file}), run_gccl({"run", (folder.path / "s.json").string()})}) {
    CHECK(e.code == 0);
    CHECK(clean(e.out));
    CHECK(e.out.find("box?[2J?\?\?<b>") != std::string::npos);
  }
  const Ended svg = run_gccl({"topology", file, "--svg", "-"});
  CHECK(svg.code == 0);
  CHECK(clean(svg.out));
  CHECK(svg.out.find("<b>") == std::string::npos);

  const auto written = [&](const char* option, const std::string& scenario) {
    const Ended e = run_gccl({"run", scenario, option, (folder.path / "out").string(), "--quiet"});
    CHECK(e.code == 0);
    return read_text(folder.path / "out");
  };
  const std::string label = R"("label":"l\u001b[1m\u007f\u009b\u202em")";
  const auto run_with = [&](const std::string& keys) {
    return folder
        .write("l.json", R"({"schema":"gccl/scenario/1","name":"n","cluster":"c.json","runs":[{)" + keys +
                             R"(,"collective":"allreduce","bytes":64}]})")
        .string();
  };
  for (const char* option : {"--csv", "--html"}) CHECK(clean(written(option, run_with(label))));
  CHECK(clean(run_gccl({"run", run_with(label), "--csv", "-"}).out));
  // JSON has escapes for them, and loses nothing.
  const std::string on_stdout = run_gccl({"run", run_with(label), "--json", "-"}).out;
  CHECK(clean(on_stdout));
  CHECK(Json::parse(on_stdout)["runs"][0]["label"] == "l\x1b[1m\x7f\u009b\u202em");
  const std::string torn = run_gccl({"run", run_with(R"("label":"l\nm","expect":{"max_time_us":"1s"})")}).out;
  CHECK(torn.find("l\nm") == std::string::npos);
  CHECK(torn.find("\"l?m\" on ") != std::string::npos);
  CHECK(torn.find("l?m: time_us <= 1e+06") != std::string::npos);
  // A line end in a name ends no line; a description may have several.
  cluster["name"] = "a\nb\tc";
  cluster["description"] = "of\ntwo lines";
  fs::create_directory(folder.path / "topologies");
  folder.write("topologies/t\nu.json", cluster.dump());
  CHECK(run_gccl({"topology", "t\nu"}, folder.path).out.starts_with("a?b?c\nof\ntwo lines\n\n"));
  const std::string listed = run_gccl({"list", "topologies"}, folder.path).out;
  CHECK_MESSAGE(listed.find("\nt?u ") != std::string::npos, listed);
  CHECK_MESSAGE(listed.find(" of?two lines\n") != std::string::npos, listed);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"topology", "no\nsuch"},
                                             {"run", "no\nsuch"},
                                             {"verify", "--algorithm", "no\nsuch"},
                                             {"launch", "-n", "1", "no\nsuch"}})
    CHECK_MESSAGE(one_line(run_gccl(words).err), run_gccl(words).err);
  // Complaints name what they found.
  for (const Ended& e :
       {run_gccl({"run", run_with(R"("al\u001b[1mgo":1)")}),
        run_gccl({"run", run_with(R"("algorithms":"\u001b[1mring")")}),
        run_gccl({"run", run_with(label + R"(,"expect":{"within_percent_of":{"run":"\u001b\u009b","percent":1}})")}),
        run_gccl({"run", "no\x1b[1msuch"}), run_gccl({"topology", "no\x1b[1msuch"}), run_gccl({"list", "\x1b[1m"}),
        run_gccl({"run", file, "--engine", "\x1b[1m"}), run_gccl({"verify", "--algorithm", "\x1b[1mring"}),
        run_gccl({"verify", "--collective", "\x1b[1m"}), run_gccl({"\x1b[1m"}), run_gccl({"run", "--\x1b[1m"})}) {
    CAPTURE(e.err);
    CHECK(e.code == 2);
    CHECK(clean(e.err));
  }
}

TEST_CASE("a prediction that is more than 25 % off is reported, on each engine") {
  const Folder folder;
  const auto run = [&](const std::string& engine, const std::string& more) {
    const std::string text =
        scenario(R"("runs":[{"collective":"allreduce","bytes":64,"algorithms":"ring")" + more + "}]");
    return run_gccl({"run", folder.write("s.json", text).string(), "--engine", engine});
  };
  for (const std::string& engine : kEngines) {
    const Ended late = run(engine, R"(,"stragglers":[{"rank":3,"slowdown":20}])"), even = run(engine, "");
    CHECK(late.code == 0);
    CHECK_MESSAGE(
        late.out.find("prediction (closed form, what auto compares) and simulation differ by more than 25 % at "
                      "1 of 1 points, most for ring at 64 B (" +
                      engine + "): predicted ") != std::string::npos,
        late.out);
    CHECK_MESSAGE(even.out.find("differ by more than 25 %") == std::string::npos, even.out);
  }
}

TEST_CASE("topology --channels shows rings that cross nodes on a rail of their own") {
  const Ended e = run_gccl({"topology", "dgx-h100-superpod-2048", "--channels", "16", "--json", "-"});
  REQUIRE(e.code == 0);
  const auto channels = nlohmann::json::parse(e.out).at("channels");
  REQUIRE(channels.size() == 8);  // as many as a node has NICs
  std::set<std::string> nics;
  for (const auto& ring : channels) {
    std::set<int> ranks;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const auto &here = ring[i], &next = ring[(i + 1) % ring.size()];
      ranks.insert(here.at("rank").get<int>());
      CHECK(here.contains("out") == (here.at("node") != next.at("node")));
      if (!here.contains("out")) continue;
      CHECK(here.at("out") == next.at("in"));
      // A card of such a node has a NIC of its own, of its number.
      CHECK(here.at("out") == "nic" + std::to_string(here.at("rank").get<int>() % 8));
      if (here.at("node") == 0) nics.insert(here.at("out"));
    }
    CHECK(ranks.size() == 16);
  }
  CHECK(nics.size() == 8);
  const Ended text = run_gccl({"topology", "dgx-h100-superpod-2048", "--channels", "16"});
  CHECK(text.out.find("channel 7") != std::string::npos);
  const Ended many = run_gccl({"topology", "pcie-box", "--channels", "9"});
  CHECK(many.code == 2);
  CHECK(many.err.find("--channels: found 9 ranks, expected at most 8") != std::string::npos);
}
