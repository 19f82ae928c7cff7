// `gccl validate`: what it writes, what it leaves out and what it refuses.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/measured/table_text.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;
using Json = nlohmann::json;

TEST_CASE("gccl validate: errors, statistics and outliers of a table, on every engine") {
  const Folder folder;
  folder.write("two.json", kFourCards);
  // 2 ranks, 1 MiB: 2 x (2 us + 52.4288 us) = 108.86 us. Measured: exactly that, and twice that.
  folder.write("m.csv", kColumns +
                            "box,1,2,all_reduce,ring,auto,1048576,108.8576,,,src,n\n"
                            "box,1,2,all_reduce,ring,auto,2097152,427.4304,,,src,n\n"
                            "box,1,2,moe_combine,x,auto,64,1,,,src,n\n");
  std::vector<std::string> engines = kEngines;
  engines.push_back("closed");
  for (const std::string& engine : engines) {
    CAPTURE(engine);
    const Ended e = run_gccl({"validate", "m.csv", "--cluster", "two.json", "--engine", engine, "--json", "v.json",
                              "--csv", "v.csv", "--html", "v.html"},
                             folder.path);
    CHECK(e.err == "");
    REQUIRE(e.code == 0);
    const Json d = Json::parse(read_text(folder.path / "v.json"));
    const JsonSchema schema(Json::parse(read_text(kRoot / "sim/measured/validation.schema.json")));
    CHECK(schema.accepts(d));
    REQUIRE(d["rows"].size() == 2);
    const Json& first = d["rows"][0];
    CHECK(first["system"] == "box");
    CHECK(first["gpus_per_node"] == 2);
    CHECK(first["measured_us"] == 108.8576);
    CHECK(std::abs(first["error_percent"].get<double>()) < 2);
    CHECK(std::abs(d["rows"][1]["error_percent"].get<double>() + 50) < 2);
    const double a = std::abs(first["error_percent"].get<double>()),
                 b = std::abs(d["rows"][1]["error_percent"].get<double>());
    const Json& overall = d["statistics"]["all"]["overall"];
    CHECK(overall["points"] == 2);
    CHECK(overall["mape_percent"].get<double>() == doctest::Approx((a + b) / 2));
    CHECK(overall["worst_percent"].get<double>() == doctest::Approx(b));
    CHECK(d["skipped"][0]["rows"] == 1);
    CHECK(d["skipped"][0]["first"][0] == "m.csv:4");
    CHECK(e.out.find("all_reduce < 64 MiB") != std::string::npos);
    CHECK(e.out.find("m.csv:3") != std::string::npos);
    CHECK(read_text(folder.path / "v.csv")
              .starts_with("system,nodes,gpus_per_node,collective,algorithm,protocol,bytes,measured_us,"));
    const std::string page = read_text(folder.path / "v.html");
    CHECK(page.find("<svg") != std::string::npos);
    for (const char* outside : {"http://", "https://", "src=", "<script"})
      CHECK(page.find(outside) == std::string::npos);
  }
}

TEST_CASE("gccl validate: a system without a name has one in the figures, which one system alone has no row of") {
  const Folder folder;
  folder.write("two.json", kFourCards);
  const std::string row = ",1,2,all_reduce,ring,auto,1048576,108.8576,,,src,n\n";
  const auto page_of = [&](const std::string& rows) {
    folder.write("m.csv", kColumns + rows);
    REQUIRE(run_gccl({"validate", "m.csv", "--cluster", "two.json", "--html", "v.html"}, folder.path).code == 0);
    return read_text(folder.path / "v.html");
  };
  const auto rows_of = [](const std::string& page) {  // of the figures
    std::size_t n = 0;
    const std::size_t begin = page.find("<h3>Errors"), end = page.find("</table>", begin);
    for (std::size_t at = begin; (at = page.find("<tr>", at)) < end; ++at) ++n;
    return n;
  };
  const std::string one = page_of(row), two = page_of(row + "box" + row);
  CHECK(one.find(">1 measured point,") != std::string::npos);
  CHECK(rows_of(one) == 3);  // the head, all points, the collective
  CHECK(rows_of(two) == 5);
  CHECK(two.find(">2 measured points,") != std::string::npos);
  CHECK(two.find(">(no name)<") != std::string::npos);
}

TEST_CASE("gccl validate: --parameters replaces those of the cluster") {
  const Folder folder;
  folder.write("two.json", kFourCards);
  folder.write("m.csv", kColumns + "box,1,2,all_reduce,ring,auto,1048576,100,,,src,n\n");
  folder.write("fast.json", R"({"schema":"gccl/parameters/1","name":"fast","card":{"overhead_ns":0,"combine_GBps":0,
    "copy_GBps":0},"eager_bytes":0,"links":{"wire":{"bandwidth_GBps":100,"latency_ns":0}}})");
  const Ended e =
      run_gccl({"validate", "m.csv", "--cluster", "two.json", "--parameters", "fast.json", "--json", "-"}, folder.path);
  REQUIRE(e.code == 0);
  const Json d = Json::parse(e.out);
  CHECK(d["parameters"] == "fast.json");
  CHECK(d["rows"][0]["predicted_us"].get<double>() == doctest::Approx(10.48576).epsilon(0.02));  // 1 MiB at 100 GB/s
}

TEST_CASE("gccl validate --live leaves no ranks behind when it is ended") {
  for (const int signal : {SIGTERM, SIGKILL}) {
    CAPTURE(signal);
    Program validate({"validate", "--live", "--cards-per-node", "2"});
    const auto children = [](pid_t of) {
      const std::string id = std::to_string(of);
      std::istringstream text(read_text("/proc/" + id + "/task/" + id + "/children"));
      return std::vector<pid_t>(std::istream_iterator<pid_t>(text), {});
    };
    // Ranks that are stopped measure for ever.
    std::vector<pid_t> ranks;
    for (int tries = 0; tries < 3000 && ranks.size() < 2; ++tries) {
      ranks.clear();
      for (const pid_t launcher : children(validate.pid()))
        for (const pid_t child : children(launcher))
          if (read_text(fmt::format("/proc/{}/cmdline", child)).find("launch") == std::string::npos &&
              ::getpgid(child) == child)
            ranks.push_back(child);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    REQUIRE(ranks.size() == 2);
    for (const pid_t rank : ranks) ::kill(rank, SIGSTOP);
    ::kill(validate.pid(), signal);
    CHECK(validate.wait().code == 128 + signal);
    const bool ended = validate.group_ends(std::chrono::seconds(60));
    CHECK(ended);
    for (const pid_t rank : ranks) {
      CHECK(::kill(rank, 0) != 0);
      if (!ended) ::kill(rank, SIGKILL);
    }
  }
}

TEST_CASE("gccl validate --live measures this machine, beside what gccl bench says is measured") {
  const Ended live =
      run_gccl({"validate", "--live", "--cards-per-node", "3", "--collective", "allreduce", "--json", "-"});
  CAPTURE(live.err);
  REQUIRE(live.code == 0);
  const Json document = Json::parse(live.out);
  CHECK(document["cluster"]["name"] == "host");
  std::set<Count> sizes;
  for (const Json& row : document["rows"]) {
    CHECK(row["collective"] == "allreduce");
    CHECK(row["gpus_per_node"] == 3);
    CHECK(row["measured_us"].get<double>() > 0);
    CHECK(row["predicted_us"].get<double>() > 0);
    sizes.insert(row["bytes"].get<Count>());
  }
  CHECK(*sizes.begin() == 8);
  CHECK(*sizes.rbegin() == 8 << 20);  // by factors of 4 from 8 B to at most 16 MiB
  CHECK(sizes.size() == 11);
  const auto error = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"validate", "--live"});
    const Ended e = run_gccl(words);
    CHECK(e.code == 2);
    return e.err;
  };
  CHECK(error({"m.csv"}).find("--live: found m.csv too, expected no files") != std::string::npos);
  CHECK(error({"--nodes", "2"}).find("--nodes: found 2, expected 1") != std::string::npos);
  CHECK(error({"--cards-per-node", "1"}).find("found 1, expected 2 to 64: the cards of a node of host") !=
        std::string::npos);
  CHECK(error({"--cards-per-node", "65"}).find("found 65, expected 2 to 64") != std::string::npos);
}

TEST_CASE("gccl validate: wrong input is one line and exit code 2, and nothing is written") {
  const Folder folder;
  folder.write("two.json", kFourCards);
  folder.write("good.csv", kColumns + "box,1,2,all_reduce,ring,auto,64,1,,,src,n\n");
  folder.write("bad.csv", kColumns + "box,1,2,all_reduce\n");
  folder.write("none.csv", kColumns + "box,1,2,moe_combine,x,auto,64,1,,,src,n\n");
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "validate");
    const Ended e = run_gccl(words, folder.path);
    CHECK(e.code == 2);
    return e.err;
  };
  CHECK(error({"bad.csv", "--cluster", "two.json", "--json", "out.json"}).find("bad.csv:2: has 4 fields") !=
        std::string::npos);
  CHECK(error({"none.csv", "--cluster", "two.json"}).find("none of the rows") != std::string::npos);
  CHECK(run_gccl({"fit", "none.csv", "--cluster", "two.json", "-o", "p.json"}, folder.path)
            .err.find("of 1 measured row none can be compared") != std::string::npos);
  CHECK(run_gccl({"validate", "good.csv", "--cluster", "two.json"}, folder.path)
            .out.starts_with("two: 1 point by closed forms"));
  CHECK(run_gccl({"fit", "good.csv", "--cluster", "two.json", "-o", "p.json"}, folder.path).code == 0);
  CHECK(read_text(folder.path / "p.json").find("fitted by gccl fit to 1 point of good.csv") != std::string::npos);
  fs::remove(folder.path / "p.json");
  folder.write("auto.csv", kColumns + "box,1,2,all_reduce,,auto,1048576,100,,,src,n\n");
  CHECK(error({"auto.csv", "--cluster", "two.json", "--planner", "nccl"})
            .starts_with("gccl: --planner nccl: the parameters of two have no \"nccl\" object"));
  CHECK(error({"good.csv", "--cluster", "tow.json"}).find("no such file") != std::string::npos);
  CHECK(error({"good.csv", "--cluster", "two.json", "--parameters", "nvidia-h10"})
            .find("no shipped parameter set of this name; did you mean \"nvidia-h100\"?") != std::string::npos);
  CHECK(error({"good.csv"}).find("--cluster is required") != std::string::npos);
  CHECK(error({"missing.csv", "--cluster", "two.json"}).find("missing.csv: no such file") != std::string::npos);
  CHECK(error({"good.csv", "--cluster", "two.json", "--engine", "modle"}).find("did you mean \"model\"?") !=
        std::string::npos);
  CHECK(
      error({"good.csv", "--cluster", "two.json", "--json", "good.csv"}).find("is read, and cannot be an output too") !=
      std::string::npos);
  CHECK(error({"good.csv", "--cluster", "two.json", "--collective", "allreduse"}).find("did you mean \"allreduce\"?") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(folder.path / "out.json"));
}

TEST_CASE("a table may have more sizes than a scenario has points") {
  std::string sizes = kColumns;
  for (int i = 1; i <= 10'050; ++i)
    sizes += "box,1,8,all_reduce,auto,," + std::to_string(i * 64) + "," + (i == 5'000 ? "900" : "20") + ",,,,\n";
  const Folder folder;
  folder.write("sizes.csv", sizes);
  const Ended e =
      run_gccl({"validate", "sizes.csv", "--cluster", "dgx-h100-superpod-2048", "--json", "-"}, folder.path);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json document = Json::parse(e.out);
  std::set<int> found;
  for (const Json& row : document["rows"]) {
    CHECK(row["outlier"] == (row["bytes"] == 5'000 * 64));
    found.insert(row["bytes"].get<int>());
  }
  CHECK(found.size() == 10'050);
}

TEST_CASE("gccl validate --csv - says on standard error what is left out") {
  const Folder folder;
  folder.write("m.csv", kColumns + "box,1,8,all_reduce,auto,,1024,20,,,,\nbox,1,8,all_reduce,auto,,0,20,,,,\n");
  folder.write("none.log", "# nThread 1 nGpus 8\n");
  const Ended e =
      run_gccl({"validate", "m.csv", "none.log", "--cluster", "dgx-h100-superpod-2048", "--csv", "-"}, folder.path);
  CHECK(e.code == 0);
  CHECK(std::count(e.out.begin(), e.out.end(), '\n') == 2);
  CHECK(e.err.find("of 0 bytes, or of a size that is not given (m.csv:3)") != std::string::npos);
  CHECK(e.err.find("none.log: looks like what nccl-tests print, but holds no results") != std::string::npos);
}
