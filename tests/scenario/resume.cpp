// Runs that are really interrupted keep their finished points, and only points that are still right are taken again.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

constexpr int kPoints = 40;

const fs::path kCluster = kRoot / "topologies/dgx-h100-superpod-2048.json";

// Forty points: at 96 ranks some tens of milliseconds each.
std::string scenario(const fs::path& cluster = kCluster, const std::string& more = "", const std::string& top = "",
                     const std::string& before = "", int ranks = 16) {
  std::string bytes;
  for (int i = 1; i <= kPoints; ++i) bytes += fmt::format("{}{}", i > 1 ? "," : "", i * 100000);
  return fmt::format(
      R"({{"schema":"gccl/scenario/1","name":"t","cluster":"{}","ranks":{}{},"runs":[{}{{"collective":"allreduce","bytes":[{}],"algorithms":"ring"{}}}]}})",
      cluster.string(), ranks, top, before, bytes, more);
}
std::string long_scenario() { return scenario(kCluster, "", "", "", 96); }

std::size_t lines(const fs::path& file) {
  const std::string text = fs::exists(file) ? read_text(file) : "";
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}

// The journal's rows by size: every whole line after the first must be one.
std::map<std::uint64_t, Json> rows_in(const fs::path& journal) {
  std::map<std::uint64_t, Json> rows;
  std::ifstream in(journal);
  std::string line;
  std::getline(in, line);
  CHECK(line == R"({"schema":"gccl/journal/1"})");
  while (std::getline(in, line)) {
    const Json entry = Json::parse(line);
    rows[entry.at("row").at("bytes")] = entry.at("row");
  }
  return rows;
}

Json without_measured(Json result) {
  for (Json& row : result["runs"])
    for (const char* key : {"wall_s", "peak_rss_MB"}) row.erase(key);
  return result;
}

// How many points the program took from the journal, by its own word; checks that each such row is the journal's own,
// to the wall time that simulating it took.
std::size_t resumed(const Folder& folder, const std::string& file, const Json& whole) {
  const auto kept = rows_in(folder.path / "j");
  const Ended e = run_gccl({"run", file, "--resume", "j", "--json", "-"}, folder.path);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json result = Json::parse(e.out);
  CHECK(without_measured(result) == without_measured(whole));
  std::size_t same = 0;
  for (const Json& row : result["runs"])
    if (const auto at = kept.find(row["bytes"]); at != kept.end()) same += row["wall_s"] == at->second["wall_s"];
  CHECK(same == kept.size());
  if (!kept.empty())
    CHECK(e.err.starts_with(fmt::format("gccl: j: {} of {} points were finished before", kept.size(), kPoints)));
  CHECK(lines(folder.path / "j") == kPoints + 1);
  return kept.size();
}

// "12 of 60 points": the number the message begins with, and what follows the numbers.
std::pair<std::size_t, std::string> said(const Ended& e) {
  std::size_t known = 0;
  const std::string begin = "gccl: j: ", text = e.err;
  REQUIRE(text.starts_with(begin));
  known = std::stoul(text.substr(begin.size()));
  return {known, text.substr(text.find("before") + 6)};
}

}  // namespace

TEST_CASE("an interrupted or killed run goes on where it stopped, with the same result") {
  const Folder folder;
  const std::string file = folder.write("s.json", long_scenario()).string();
  const Json whole = Json::parse(run_gccl({"run", file, "--json", "-"}, folder.path).out);
  for (const auto& kind : {std::pair(SIGINT, "1"), std::pair(SIGTERM, "3"), std::pair(SIGKILL, "3")}) {
    const int sig = kind.first;
    const std::string jobs = kind.second;
    CAPTURE(sig);
    CAPTURE(jobs);
    const fs::path journal = folder.path / "j";
    fs::remove(journal);
    Program p({"run", file, "--resume", "j", "--json", "r.json", "--jobs", jobs}, {.folder = folder.path});
    for (int i = 0; lines(journal) < 6 && i < 60'000; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(p.pid(), sig);
    const Ended e = p.wait();
    CHECK(e.code == 128 + sig);
    CHECK(p.group_ends(std::chrono::seconds(30)));
    const std::size_t kept = rows_in(journal).size();
    CHECK(kept >= 5);
    CHECK(kept < kPoints);
    if (sig != SIGKILL)
      CHECK(e.err == fmt::format("gccl: interrupted; {} of {} points are in j: the same command goes on from there\n",
                                 kept, kPoints));
    CHECK(!fs::exists(folder.path / "r.json"));
    CHECK(resumed(folder, file, whole) == kept);
    CHECK(resumed(folder, file, whole) == kPoints);  // nothing is left to do
  }
}

TEST_CASE("a full disk leaves whole lines, the run ends, and the next one goes on") {
  const Folder folder;
  const std::string file = folder.write("s.json", scenario()).string();
  const Json whole = Json::parse(run_gccl({"run", file, "--json", "-"}, folder.path).out);
  Program p({"run", file, "--resume", "j", "--quiet"}, {.folder = folder.path, .file_bytes_max = 8000});
  const Ended e = p.wait();
  CHECK(e.code == 0);
  CHECK(e.err == "gccl: j: cannot be written: File too large; the points finished since are not in it\n");
  const std::size_t kept = rows_in(folder.path / "j").size();
  CHECK(kept > 0);
  CHECK(kept < kPoints);
  CHECK(read_text(folder.path / "j").back() == '\n');
  CHECK(resumed(folder, file, whole) == kept);
}

TEST_CASE("a torn last line is taken away, damaged lines are left out and counted") {
  const Folder folder;
  const std::string file = folder.write("s.json", scenario()).string();
  const Ended first = run_gccl({"run", file, "--resume", "j", "--json", "-"}, folder.path);
  REQUIRE(first.code == 0);
  const std::string text = read_text(folder.path / "j");
  const std::size_t half = text.size() - 40;
  folder.write("j", text.substr(0, half));
  const std::size_t kept = rows_in(folder.write("j", text.substr(0, text.rfind('\n', half) + 1))).size();
  folder.write("j", text.substr(0, half));
  const Ended torn = run_gccl({"run", file, "--resume", "j", "--quiet"}, folder.path);
  CHECK(said(torn) == std::pair(kept, std::string("\n")));
  CHECK(lines(folder.path / "j") == kPoints + 1);
  rows_in(folder.path / "j");
  std::string damaged = text;
  damaged[text.find('\n') + 5] = '\\';
  folder.write("j", damaged);
  const Ended e = run_gccl({"run", file, "--resume", "j", "--quiet"}, folder.path);
  CHECK(said(e) == std::pair(std::size_t(kPoints - 1), std::string("; 1 damaged line is left out\n")));
  for (std::size_t n : {0, 1, 10, 26}) {  // the program was killed while it wrote the first line
    folder.write("j", text.substr(0, n));
    CHECK(run_gccl({"run", file, "--resume", "j", "--quiet"}, folder.path).err.empty());
    CHECK(lines(folder.path / "j") == kPoints + 1);
  }
}

TEST_CASE("rows that were changed in the journal are simulated again") {
  const Folder folder;
  const std::string file = folder.write("s.json", scenario()).string();
  const Ended whole = run_gccl({"run", file, "--resume", "j", "--json", "-"}, folder.path);
  REQUIRE(whole.code == 0);
  const std::string text = read_text(folder.path / "j");
  const std::size_t begin = text.find('\n') + 1, end = text.find('\n', begin);
  const Json entry = Json::parse(text.substr(begin, end - begin));
  Json faster = entry, other = entry;
  faster["row"]["time_us"] = 0.001;
  other["key"] = std::string(32, '0');
  Json short_row = entry, no_row = entry, unchecked = entry;
  short_row["row"] = {{"time_us", 5}};
  no_row["row"] = nullptr;
  unchecked.erase("check");
  for (const Json& changed : {faster, other, short_row, no_row, unchecked}) {
    folder.write("j", text.substr(0, begin) + changed.dump() + text.substr(end));
    const Ended e = run_gccl({"run", file, "--resume", "j", "--json", "-"}, folder.path);
    CAPTURE(changed.dump().substr(0, 200));
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    CHECK(without_measured(Json::parse(e.out)) == without_measured(Json::parse(whole.out)));
    CHECK(said(e) == std::pair(std::size_t(kPoints - 1), std::string("; 1 damaged line is left out\n")));
  }
}

TEST_CASE("points of another scenario, cluster, parameter set or seed are not taken, and this is said") {
  const Folder folder;
  const fs::path topologies = kRoot / "topologies";
  Json cluster = Json::parse(read_text(topologies / "dgx-h100-superpod-2048.json"));
  fs::copy(kRoot / "cost-models", folder.path / "cost-models");
  fs::create_directory(folder.path / "topologies");
  const auto write_cluster = [&] {
    folder.write("topologies/c.json", cluster.dump());
    return folder.path / "topologies/c.json";
  };
  const fs::path at = write_cluster();
  const auto run = [&](const std::string& text, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", folder.write("s.json", text).string(), "--resume", "j", "--quiet"});
    const Ended e = run_gccl(more, folder.path);
    CAPTURE(e.err);
    CHECK(e.code == 0);
    return e;
  };
  CHECK(run(scenario(at)).err.empty());
  const auto all = std::pair(std::size_t(kPoints), std::string("\n"));
  const auto none = [](int other) {
    return std::pair(std::size_t(0),
                     fmt::format("; {} entries of another scenario, cluster, seed or program are not used\n", other));
  };
  // What has no influence on a row: expectations, the runs before it, outputs, jobs.
  CHECK(said(run(scenario(at, R"(,"expect":{"max_time_us":"10s"})"))) == all);
  CHECK(said(run(scenario(at), {"--jobs", "3"})) == all);
  CHECK(run(scenario(at, "", "", R"({"collective":"barrier"},)")).err.starts_with("gccl: j: 40 of 41 points"));
  int entries = kPoints + 1;
  const auto other = [&](const Ended& e) {
    CHECK(said(e) == none(entries));
    entries += kPoints;
  };
  other(run(scenario(at, R"(,"dtype":"bf16")")));
  other(run(scenario(at, R"(,"window":2)")));
  other(run(scenario(at, R"(,"stragglers":[{"rank":3,"slowdown":2}])")));
  other(run(scenario(at), {"--seed", "7"}));
  other(run(scenario(at), {"--planner", "openmpi"}));
  other(run(scenario(at, "", R"(,"placement":"round_robin")")));
  for (std::size_t i = 1; i < kEngines.size(); ++i) other(run(scenario(at), {"--engine", kEngines[i]}));
  cluster["fabric"]["oversubscription"] = 4;
  write_cluster();
  other(run(scenario(at)));
  // The set that the cluster names, and the one that this is based on.
  for (fs::path set = at.parent_path() / cluster["parameters"].get<std::string>();;) {
    Json parameters = Json::parse(read_text(set));
    parameters["eager_bytes"] = 12345;
    std::ofstream(set) << parameters.dump();
    other(run(scenario(at)));
    if (!parameters.contains("base")) break;
    set = set.parent_path() / parameters["base"].get<std::string>();
  }
  CHECK(entries > int(8 + kEngines.size()) * kPoints);
}

TEST_CASE("what decides for ranks that go on without others is a part of their points") {
  const Folder folder;
  folder.write(
      "s.json",
      fmt::format(
          R"({{"schema":"gccl/scenario/1","name":"t","cluster":"{}","ranks":16,"runs":[{{"collective":"allreduce","bytes":"256KiB","algorithms":"auto","engine":"protocol","repeats":12,"faults":[{{"kind":"rank_crash","rank":5,"at_us":100}}],"recovery":{{"policy":"shrink","detection_us":"200ms"}}}}]}})",
          kCluster.string()));
  const auto time_by = [&](const std::string& algorithm, bool resume) {
    folder.write(
        "t.json",
        fmt::format(
            R"({{"schema":"gccl/table/1","name":"t","machine":{{"cluster":"dgx-h100-superpod-2048","nodes":256,"cards_per_node":8}},"entries":[{{"collective":"allreduce","ranks_min":15,"ranks_max":15,"algorithm":"{}","chunks":1,"channels":1}}]}})",
            algorithm));
    std::vector<std::string> words{"run", "s.json", "--json", "-"};
    if (resume) words.insert(words.end(), {"--resume", "j"});
    const Ended e = Program(words, {.folder = folder.path, .environment = {"GCCL_TUNING_FILE=t.json"}}).wait();
    REQUIRE_MESSAGE(e.code == 0, e.err);
    return Json::parse(e.out).at("runs").at(0).at("time_us").get<double>();
  };
  const double ring = time_by("ring", false), tree = time_by("binomial_tree", false);
  CHECK(ring != tree);
  CHECK(time_by("ring", true) == ring);
  CHECK(time_by("binomial_tree", true) == tree);
}

TEST_CASE("whether elements are checked is a part of a point, stated or asked for by another engine of the run") {
  const Folder folder;
  const auto run = [&](const char* engines, const char* expect) {
    folder.write(
        "s.json",
        fmt::format(
            R"({{"schema":"gccl/scenario/1","name":"t","cluster":"{}","ranks":8,"runs":[{{"collective":"allreduce","bytes":"64KiB","algorithms":"ring","engine":{}{}}}]}})",
            kCluster.string(), engines, expect));
    const Ended e = run_gccl({"run", "s.json", "--resume", "j", "--json", "-"}, folder.path);
    REQUIRE_MESSAGE(e.code == 0, e.err);
    return Json::parse(e.out)["runs"][0]["wrong"];
  };
  CHECK(run(R"("model")", "").is_null());
  CHECK(run(R"(["model", "protocol"])", R"(,"expect":{"correct":true})") == 0);
}

TEST_CASE("a shipped parameter set that changed gives other points, though the cluster names it without its file") {
  const Folder folder;
  fs::copy(kRoot / "cost-models", folder.path / "cost-models");
  Json cluster = Json::parse(read_text(kRoot / "topologies/dgx-h100-superpod-2048.json"));
  cluster["parameters"] = "nvidia-h100";
  const std::string file = folder.write("s.json", scenario(folder.write("c.json", cluster.dump()))).string();
  const auto run = [&] {
    const Ended e = run_gccl({"run", file, "--resume", "j", "--quiet"}, folder.path);
    CHECK(e.code == 0);
    return e;
  };
  CHECK(run().err.empty());
  CHECK(said(run()).first == kPoints);
  Json set = Json::parse(read_text(folder.path / "cost-models/nvidia-h100.json"));
  set["card"]["overhead_ns"] = 90000;
  folder.write("cost-models/nvidia-h100.json", set.dump());
  CHECK(said(run()).first == 0);
}

TEST_CASE("what cannot be a journal is refused and left as it is") {
  const Folder folder;
  const std::string file = folder.write("s.json", scenario()).string();
  folder.write("result.json", "{\"schema\":\"gccl/result/1\"}\n");
  const std::pair<std::string, std::string> kCases[] = {
      {"result.json", "gccl: result.json: is no journal of gccl (its first line is not "},
      {"/dev/full", "gccl: /dev/full: is no regular file, as a journal must be\n"},
      {"no/folder/j", "gccl: no/folder/j: cannot be written: No such file or directory\n"},
      {".", "gccl: .: cannot be written: Is a directory\n"},
  };
  for (const auto& [name, expected] : kCases) {
    const Ended e = run_gccl({"run", file, "--resume", name}, folder.path);
    CAPTURE(e.err);
    CHECK(e.code == 2);
    CHECK(e.err.starts_with(expected));
  }
  CHECK(read_text(folder.path / "result.json") == "{\"schema\":\"gccl/result/1\"}\n");
  CHECK(run_gccl({"run", file, "--resume", "x", "--json", "./x"}, folder.path).err ==
        "gccl: x: named for two outputs\n");
  const int fd = open((folder.path / "j").c_str(), O_RDWR | O_CREAT, 0600);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  REQUIRE(fcntl(fd, F_SETLK, &lock) == 0);
  const Ended e = run_gccl({"run", file, "--resume", "j"}, folder.path);
  CHECK(e.code == 2);
  CHECK(e.err == "gccl: j: is in use by another gccl\n");
  close(fd);
}
