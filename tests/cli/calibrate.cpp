// `gccl calibrate` on real ranks: its files are read, and say what other measurements of the same ranks say.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/parameters.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

namespace {

using namespace gccl::test;
using Words = std::vector<std::string>;

// gccl launch -n RANKS -- gccl WORDS, in a folder; nodes: so many names of machines are pretended, and the first ones
// have the more ranks.
Ended on_ranks(int ranks, int nodes, Words words, const Surroundings& around) {
  Words all = {"launch", "-n", std::to_string(ranks), "--"};
  if (nodes > 1)
    for (const std::string& word :
         {std::string("sh"), std::string("-c"),
          fmt::format("GCCL_HOST=node$((GCCL_RANK * {} / {})); export GCCL_HOST; exec \"$@\"", nodes, ranks),
          std::string("sh")})
      all.push_back(word);
  all.emplace_back(GCCL_PROGRAM);
  all.insert(all.end(), words.begin(), words.end());
  return Program(all, around).wait();
}

// gccl calibrate, and longer, as it then asks for, where other work made its times tell nothing.
Ended calibrate(int ranks, int nodes, const Words& words, const Folder& folder) {
  const std::set<std::string> before = folder.files();
  Ended ended;
  for (const char* seconds : {"0.6", "2", "6", "20"}) {
    Words all = {"calibrate", "--seconds", seconds, "--max-bytes", "256KiB", "--factor", "8"};
    all.insert(all.end(), words.begin(), words.end());
    ended = on_ranks(ranks, nodes, all, {.folder = folder.path});
    if (ended.err.find("measure longer (--seconds)") == std::string::npos) break;
    CHECK(ended.code == 1);
    CHECK(folder.files() == before);
  }
  return ended;
}

nlohmann::json json_of(const fs::path& file) { return nlohmann::json::parse(read_text(file)); }

void check_sources_of(const nlohmann::json& v) {
  if (!v.is_object()) return;
  bool numbers = false;
  for (const auto& [key, value] : v.items()) {
    numbers = numbers || value.is_number();
    check_sources_of(value);
  }
  CAPTURE(v.dump());
  CHECK((!numbers || v.contains("source") || v.contains("sources")));
}

// What an exchange of two ranks takes: by the cluster, and as gccl bench measures it, the best of a few. In place, so
// that what is sent has just been written, as in gccl calibrate: out of place it stays the same, and from the second
// time on the peer has it in its own cache (256 KiB in 11 us instead of 40).
double predicted_us(const Folder& folder, const std::string& cluster, int bytes) {
  folder.write(
      "exchange.json",
      fmt::format(
          R"({{"schema":"gccl/scenario/1","name":"x","cluster":"{}","ranks":2,"runs":[{{"collective":"sendrecv",)"
          R"("bytes":{},"in_place":true,"algorithms":["direct"]}}]}})",
          cluster, bytes));
  const Ended ended = run_gccl({"run", "exchange.json", "--json", "-"}, folder.path);
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  return nlohmann::json::parse(ended.out)["runs"][0]["time_us"];
}

double benched_us(const Folder& folder, const std::string& backend, int bytes) {
  double best = 1e12;
  for (int i = 0; i < 5; ++i) {
    const std::string size = std::to_string(bytes);
    const Ended ended = on_ranks(2, 1,
                                 {"bench", "--backend", backend, "--collective", "sendrecv", "--algorithm", "direct",
                                  "--min-bytes", size, "--max-bytes", size, "--in-place", "--json", "bench.json"},
                                 {.folder = folder.path});
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    best = std::min(best, json_of(folder.path / "bench.json")["runs"][0]["time_us"].get<double>());
  }
  return best;
}

}  // namespace

TEST_CASE("calibrated parameters and clusters of real ranks are read, and each number has a source") {
  struct Ranks {
    int ranks, nodes;
    const char* backends;
    std::vector<std::string> links, transports;
  };
  const JsonSchema parameters(json_of(kRoot / "libgccl/cluster/parameters.schema.json"));
  const JsonSchema clusters(json_of(kRoot / "libgccl/cluster/cluster.schema.json"));
  for (const Ranks& r :
       {Ranks{2, 1, "shm,tcp", {"memory"}, {"shared-memory"}}, Ranks{4, 1, "tcp", {"memory"}, {"tcp-loopback"}},
        Ranks{2, 2, "shm,tcp", {"bus", "nic"}, {"tcp"}},
        Ranks{4, 2, "shm,tcp", {"bus", "memory", "nic"}, {"shared-memory", "tcp"}},
        Ranks{5, 3, "shm,tcp", {"bus", "memory", "nic"}, {"shared-memory", "tcp"}}}) {
    CAPTURE(r.ranks);
    CAPTURE(r.nodes);
    CAPTURE(r.backends);
    const Folder folder;
    fs::create_directory(folder.path / "sub");
    const Ended ended = calibrate(r.ranks, r.nodes,
                                  {"-o", "p.json", "--cluster-out", "sub/c.json", "--json", "all.json", "--name",
                                   "mine", "--backend", r.backends},
                                  folder);
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    for (const char* text : {"half a round trip", "one to many", "combining", "compiled in", "GCCL_PARAMETERS=p.json"})
      CHECK_MESSAGE(ended.out.find(text) != std::string::npos, text);
    const nlohmann::json set = json_of(folder.path / "p.json"), cluster = json_of(folder.path / "sub/c.json");
    CHECK(parameters.accepts(set));
    CHECK(clusters.accepts(cluster));
    CHECK(set["name"] == "mine");
    check_sources_of(set);
    std::vector<std::string> links, transports;
    for (const auto& [name, link] : set["links"].items()) links.push_back(name);
    for (const auto& [name, costs] : set["transports"].items()) transports.push_back(name);
    CHECK(links == r.links);
    CHECK(transports == r.transports);
    CHECK(gccl::load_parameters(folder.path / "p.json").backends == r.backends);
    const auto loaded = gccl::load_cluster(folder.path / "sub/c.json");
    CHECK(loaded->cards() == unsigned(r.ranks));
    CHECK(loaded->nodes() == unsigned(r.nodes));
    const nlohmann::json all = json_of(folder.path / "all.json");
    CHECK(all["schema"] == "gccl/calibration/1");
    // Nodes with several ranks have a rate of all of them, whatever the other nodes have.
    CHECK(all["classes"].back()["at_once"].is_null() == (r.nodes == 1 || r.ranks == r.nodes));
    CHECK(run_gccl({"topology", "sub/c.json"}, folder.path).code == 0);
    const Ended bench = on_ranks(r.ranks, r.nodes, {"bench", "--max-bytes", "4KiB", "--backend", r.backends},
                                 {.folder = folder.path, .environment = {"GCCL_PARAMETERS=p.json"}});
    CHECK_MESSAGE(bench.code == 0, bench.err);
  }
}

TEST_CASE("ranks that wait while others measure wait longer than a call may take") {
  const Folder folder;
  const Ended ended = on_ranks(3, 1, {"calibrate", "-o", "p.json", "--seconds", "6", "--max-bytes", "64KiB"},
                               {.folder = folder.path, .environment = {"GCCL_TIMEOUT_MS=2000"}});
  CHECK_MESSAGE(ended.code == 0, ended.err);
}

TEST_CASE("the node with the most ranks stands for all") {
  const Folder folder;
  const Ended ended = Program({"launch", "-n", "5", "--", "sh", "-c",
                               "export GCCL_HOST=$((GCCL_RANK > 1)); exec " GCCL_PROGRAM
                               " calibrate -o p.json --seconds 4 --max-bytes 64KiB --json all.json"},
                              {.folder = folder.path})
                          .wait();
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  const nlohmann::json classes = json_of(folder.path / "all.json")["classes"];
  CHECK(classes[0]["ranks"] == nlohmann::json({2, 3}));
  CHECK(classes[1]["ranks"] == nlohmann::json({2, 0}));
}

TEST_CASE("machines may have different numbers of processors") {
  const Folder folder;
  folder.write("2", "0-1\n"), folder.write("4", "0-3\n");
  const std::string bound = "mount --bind " + folder.path.string() + "/$1 /sys/devices/system/cpu/online";
  if (Program({"launch", "-n", "1", "--", "unshare", "-m", "sh", "-c", bound, "sh", "2"}).wait().code != 0) {
    MESSAGE("not tried: it takes the right to mount");
    return;
  }
  const Ended ended = Program({"launch", "-n", "6", "--", "sh", "-c",
                               "n=$((GCCL_RANK / 3 * 2 + 2)); export GCCL_HOST=$n; exec unshare -m sh -c '" + bound +
                                   "; exec " GCCL_PROGRAM
                                   " calibrate -o p.json --seconds 0.5 --max-bytes 64KiB --json all.json' sh $n"},
                              {.folder = folder.path})
                          .wait();
  REQUIRE_MESSAGE(ended.code <= 1, ended.err);
  CHECK_MESSAGE(ended.err.find("Comm_create") == std::string::npos, ended.err);
}

// Wrong units are looked for (bits for bytes are 8 times; under sanitizers only those of a thousand), not accuracy.
// Machines with other work may be slow for one of the two, so they get some tries; a wrong unit fails all of them.
TEST_CASE("an exchange on the calibrated cluster takes as long as real ranks take, within a factor") {
  for (const char* backend : {"shm", "tcp"}) {
    CAPTURE(backend);
    std::map<int, std::string> apart = {{64, ""}, {262144, ""}};  // sizes that have not agreed yet, and what they found
    for (int i = 0; i < 5 && !apart.empty(); ++i) {
      const Folder folder;
      const Ended ended = calibrate(2, 1, {"-o", "p.json", "--cluster-out", "c.json", "--backend", backend}, folder);
      REQUIRE_MESSAGE(ended.code == 0, ended.err);
      for (auto size = apart.begin(); size != apart.end();) {
        const double predicted = predicted_us(folder, "c.json", size->first),
                     benched = benched_us(folder, backend, size->first);
        size->second += fmt::format("{:.3f} us predicted, {:.3f} us measured; ", predicted, benched);
        const double most = 5 * GCCL_TEST_SLOWDOWN;
        const bool agree = predicted < most * benched && benched < most * predicted;
        size = agree ? apart.erase(size) : std::next(size);
      }
    }
    for (const auto& size : apart) FAIL_CHECK(size.first << " bytes: " << size.second);
  }
}

TEST_CASE("what gccl calibrate cannot do is said once, with what to type, and nothing is written") {
  const Folder folder;
  folder.write("used.json", R"({"schema":"gccl/parameters/1","name":"u","card":{"overhead_ns":1,"combine_GBps":1,)"
                            R"("copy_GBps":1},"eager_bytes":1,"transports":{"tcp":{"overhead_ns":1}}})");
  const std::set<std::string> before = folder.files();
  struct Case {
    int ranks;
    Words words;
    std::string text;
    Words environment = {};
  };
  const Case kCases[] = {
      {1, {"-o", "p.json"}, "gccl launch -n 2 -- gccl calibrate -o PARAMS.json"},
      {2, {}, "--output is required"},
      {2, {"-o", "p.json", "--secnds", "1"}, "--seconds"},
      {2, {"-o", "p.json", "--max-bytes", "much"}, "--max-bytes: \"much\" is no size"},
      {2, {"-o", "p.json", "--min-bytes", "0"}, "--min-bytes: \"0\" is no size"},
      {2, {"-o", "p.json", "--min-bytes", "1MiB", "--max-bytes", "1MiB"}, "at least 8 times the smallest"},
      {2, {"-o", "p.json", "--min-bytes", "1", "--max-bytes", "2"}, "the largest size is 2 B, and times of so short"},
      {2, {"-o", "p.json", "--min-bytes", "64KiB", "--max-bytes", "256KiB"}, "at least 8 times the smallest"},
      {2, {"-o", "p.json", "--max-bytes", "1MiB", "--factor", "1024"}, "the largest size is 8 KiB"},
      {2, {"-o", "-", "--cluster-out", "c.json"}, "give -o a file's name"},
      {2, {"-o", "p.json", "--cluster-out", "./p.json"}, "named for two outputs"},
      {2, {"-o", "no/p.json"}, "no/p.json: cannot be written: No such file or directory"},
      {2, {"-o", "used.json"}, "used.json: is read, and cannot be an output too", {"GCCL_PARAMETERS=used.json"}},
  };
  for (const Case& c : kCases) {
    CAPTURE(c.text);
    Words words = c.words;
    words.insert(words.begin(), "calibrate");
    const Ended ended = on_ranks(c.ranks, 1, words, {.folder = folder.path, .environment = c.environment});
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    const std::size_t at = ended.err.find(c.text);
    CHECK_MESSAGE(at != std::string::npos, ended.err);
    CHECK(ended.err.find(c.text, at + 1) == std::string::npos);
    CHECK(folder.files() == before);
  }
}

TEST_CASE("an output of gccl calibrate that cannot be written is exit code 2, and what is written is said") {
  const Folder folder;
  const auto calibrated = [&](const Words& outputs) {
    const Ended ended = calibrate(2, 1, outputs, folder);
    CAPTURE(ended.err);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.find("/dev/full: cannot be written") != std::string::npos);
    return ended.err;
  };
  CHECK(calibrated({"-o", "p.json", "--cluster-out", "/dev/full", "--json", "a.json"})
            .find("what is written of this calibration: p.json, a.json\n") != std::string::npos);
  CHECK(folder.files() == std::set<std::string>{"a.json", "p.json"});
  // A cluster would name parameters that are not there, or others.
  const std::string err = calibrated({"-o", "/dev/full", "--cluster-out", "c.json"});
  CHECK(err.find("c.json: not written: it names /dev/full") != std::string::npos);
  CHECK(err.find("what is written of this calibration: nothing\n") != std::string::npos);
  CHECK(folder.files() == std::set<std::string>{"a.json", "p.json"});
}
