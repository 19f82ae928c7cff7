// Wrong command lines and scenarios: one line that names the place, exit code 2, and nothing left half-written.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/scenario_text.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

TEST_CASE("wrong command lines give one line with the nearest valid word and exit code 2") {
  const std::pair<std::vector<std::string>, std::string> kCases[] = {
      {{"rnu"}, "unknown command \"rnu\"; did you mean \"run\"?"},
      {{"lst", "algorithms"}, "did you mean \"list\"?"},
      {{"run", "x.json", "--jsn", "y"}, "unknown option \"--jsn\"; did you mean \"--json\"?"},
      {{"run", "x.json", "--jsn=y"}, "did you mean \"--json\"?"},
      {{"run"}, "SCENARIO is required: "},
      {{"run", "x.json", "y.json"}, "x.json: no such file"},
      {{"compare", "x.json", "y.json"}, "gccl: x.json: no such file"},
      {{"run", "straggler", "nvls", "--json", "-"}, "found 2 files to run; results are written of one alone"},
      {{"run", "straggler", "--seeds", "9..1"}, "--seeds: found \"9..1\", expected the lower seed first"},
      {{"run", "moe-skewed", "--what-if", "parallel.tensor=2,parallel.tensor=4"},
       "--what-if: found \"parallel.tensor\" twice in \"parallel.tensor=2,parallel.tensor=4\", expected one value"},
      {{"run", "x.json", "--jobs", "0"}, "--jobs"},
      {{"run", "x.json", "--seed", "abc"}, "--seed"},
      {{"run", "x.json", "--seed", "-1"}, "--seed"},
      {{"verify", "--seed", "99999999999999999999"},
       "--seed: found \"99999999999999999999\", expected a whole number from 0 to 18446744073709551615"},
      {{"run", "allreduce-2048", "--engine", "simgrd"}, "--engine: found \"simgrd\"; did you mean \"simgrid\"?"},
      {{"run", "x.json", "--json", ""}, "--json: found \"\", expected FILE"},
      {{"run", "x.json", "--engine="}, "--engine: found \"\", expected NAME"},
      {{"run", "ALLREDUCE-2048"}, "did you mean \"allreduce-2048\"?"},
      {{"run", "allreduce-2047"}, "did you mean \"allreduce-2048\"?"},
      {{"run", "no/such/file.json"}, "no/such/file.json: no such file"},
      {{"run", "/"}, "is a folder"},
      {{"run", "/dev/zero"}, "/dev/zero: is a device, expected a file"},
      {{"list", "algoritms"}, "did you mean \"algorithms\"?"},
  };
  for (const auto& row : kCases) {
    const Ended e = check_refused(row.first, row.second);
    CAPTURE(e.err);
    CHECK(one_line(e.err));
    CHECK(e.err.starts_with("gccl: "));
  }
}

TEST_CASE("a bound that a refusal names is accepted itself") {
  for (const std::vector<std::string>& option : std::vector<std::vector<std::string>>{
           {"calibrate", "-o", "x.json", "--seconds", "0.1"}, {"plan-parallel", "none.json", "--memory-gb", "0.001"}}) {
    const Ended e = run_gccl(option);  // which ends for want of ranks, and of the file
    CAPTURE(e.err);
    CHECK(e.code == 2);
    CHECK(e.err.find("expected a number from") == std::string::npos);
  }
}

TEST_CASE("what is no regular file is not waited for, and an output that cannot be is reported before the work") {
  const Folder folder;
  const std::string fifo = (folder.path / "fifo").string();
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  check_refused({"topology", fifo}, "fifo: is a pipe, expected a file");
  check_refused({"validate", fifo, "--cluster", "host"}, "fifo: is a pipe, expected a file");
  check_refused({"tune", "host", "--json", "/proc/x"}, "/proc/x: cannot be written");
  check_refused({"tune", "host", "--html", (folder.path / std::string(250, 'x')).string()}, "File name too long");
}

TEST_CASE("wrong scenarios give one line with file and pointer and exit code 2") {
  const Folder folder;
  const std::string box = (kRoot / "topologies/pcie-box.json").string();
  const auto run = [](const std::string& more) {
    return scenario(R"("runs":[{"collective":"allreduce","bytes":64)" + more + "}]");
  };
  // Parameter sets that name each other, and a cluster that uses them.
  folder.write("a.json", R"({"schema":"gccl/parameters/1","name":"a","base":"b.json"})");
  folder.write("b.json", R"({"schema":"gccl/parameters/1","name":"b","base":"a.json"})");
  Json cluster = Json::parse(read_text(box));
  cluster["parameters"] = "a.json";
  folder.write("cyclic.json", cluster.dump());
  cluster["parameters"] = "missing.json";
  folder.write("dangling.json", cluster.dump());
  const auto on = [](const std::string& file) {
    return fmt::format(
        R"({{"schema":"gccl/scenario/1","name":"t","cluster":"{}","runs":[{{"collective":"barrier"}}]}})", file);
  };
  const std::pair<std::string, std::string> kCases[] = {
      {"", "is empty, expected JSON"},
      {"\n<graphs version=\"1\"/>", "scenario.json: found XML, expected JSON\n"},
      {"<system version=\"1\"/>", "found XML, expected JSON; NCCL's topology XML is read by GCCL_Topology_load and "},
      {"{", "not valid JSON at line 1, column 2: unexpected end of input; expected string literal"},
      {"{\"a\": 1,}", "not valid JSON at line 1, column 9: unexpected '}'; expected string literal"},
      {"{\n \"a\": [1 2]}", "not valid JSON at line 2, column 10: unexpected number literal; expected ']'"},
      {"{\"a\": 'b; expected c'}", "not valid JSON at line 1, column 7: invalid literal\n"},
      {"{\"a\": \"\xe4\"}", "not valid JSON at line 1, column 9: invalid string: ill-formed UTF-8 byte\n"},
      {std::string("\xff\xfe{\0}\0", 6), "scenario.json: found UTF-16, as PowerShell's > writes it; expected UTF-8"},
      {"[]", "expected an object"},
      {"{}", "/: key \"schema\" is missing"},
      {scenario(R"("runs":[],"runss":1)"), "/: unknown key \"runss\"; did you mean \"runs\"?"},
      {run(R"(,"byte":1)"), "/runs/0: unknown key \"byte\"; did you mean \"bytes\"?"},
      {run(R"(,"errors":[])"), "/runs/0: unknown key \"errors\"; expected one of "},
      {run(R"(,"bytes":1)"), "scenario.json: /runs/0: key \"bytes\" appears twice in one object"},
      {R"({"a":[{},[1,{"b/c":{"d":1,"d":2}}]]})", "scenario.json: /a/1/1/b~1c: key \"d\" appears twice"},
      {R"({"a":1,"a":2})", "scenario.json: /: key \"a\" appears twice"},
      {run(R"(,"in_place":1)"), "/runs/0/in_place: found 1, expected true or false"},
      {run(R"(,"algorithms":"rings")"),
       "/runs/0/algorithms: allreduce has no algorithm \"rings\"; did you mean \"ring\"?"},
      {run(R"(,"root":0)"), "/runs/0/root: "},
      {scenario(R"("ranks":0,"runs":[{"collective":"barrier"}])"), "/ranks: found 0, expected an integer from 1"},
      {scenario(R"("ranks":9,"runs":[{"collective":"barrier"}])"), "/ranks: found 9 ranks, but"},
      {scenario(R"("ranks":9,"runs":[{"collective":"barrier"}])"), "has only 8 cards"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":-1}])"), "/runs/0/bytes: found -1"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":1e300}])"), "/runs/0/bytes: found 1e+300"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"8 apples"}])"), "/runs/0/bytes: found \"8 apples\""},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"1.5PiB"}])"), "found \"1.5PiB\", expected at most 1 PiB"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"2PB"}])"), "found \"2PB\", expected at most 1 PiB"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"8PiB"}])"), "found \"8PiB\", expected at most 1 PiB"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"8EiB"}])"), "found \"8EiB\", expected at most 1 PiB"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":18446744073709551616}])"),
       "found 1.8446744073709552e+19, expected at most 1 PiB"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":1.5}])"), "found 1.5, expected a size in bytes such as"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"1.5"}])"),
       "/runs/0/bytes: found \"1.5\", expected a size"},
      {scenario(R"("runs":[{"collective":"allreduce","bytes":"-0KiB"}])"), "/runs/0/bytes: found \"-0KiB\""},
      {scenario("\n \"seed\": 1e400"), "a number is out of range at line 2, column 14"},
      {scenario(R"("runs":[])"), "/runs: has 0 elements"},
      {scenario(R"("runs":[{"collective":"broadcast","bytes":8,"root":8}])"), "/runs/0/root: found rank 8"},
      {on("nowhere.json"), "/cluster: there is no file"},
      {on(folder.path.string()), "/cluster: " + folder.path.string() + " is no regular file"},
      {on("cyclic.json"), "/base: parameter set"},
      {on("dangling.json"), "missing.json"},
      {on("scenario.json"), "/schema: found \"gccl/scenario/1\""},
      {std::string(200000, '['), "/0/0/0: nested deeper than 64 levels"},
      {R"({"a":{"b":)" + std::string(64, '['), "scenario.json: /a/b/0/0"},
  };
  for (const auto& row : kCases) {
    const auto &text = row.first, &expected = row.second;
    const fs::path file = folder.write("scenario.json", text);
    const Ended e = run_gccl({"run", file.string()});
    CAPTURE(text.substr(0, 300));
    CAPTURE(expected);
    CAPTURE(e.err);
    CHECK(e.code == 2);
    CHECK(one_line(e.err));
    CHECK(e.err.starts_with("gccl: " + folder.path.string()));
    CHECK(e.err.find(expected) != std::string::npos);
    CHECK(e.out.empty());
  }
  // All keys are named, the one that is needed among them.
  const std::string err = run_gccl({"run", folder.write("scenario.json", run(R"(,"errors":[])")).string()}).err;
  for (const char* key :
       {"stragglers", "label", "collective", "bytes", "dtype", "op", "root", "in_place", "algorithms", "planner",
        "chunks", "channels", "window", "groups", "counts", "engine", "payload", "expect", "sequence"})
    CHECK_MESSAGE(err.find(key) != std::string::npos, key);
  CHECK(err.find("more") == std::string::npos);
  for (const char* earlier : {"shares", "lanes"}) CHECK_MESSAGE(err.find(earlier) == std::string::npos, earlier);
  folder.write("big.json", "");
  fs::resize_file(folder.path / "big.json", 100'000'000);
  const Ended big = run_gccl({"run", (folder.path / "big.json").string()});
  CHECK(big.code == 2);
  CHECK(big.err.find("larger than 64 MiB") != std::string::npos);
}

TEST_CASE("what cannot be simulated is wrong input, on either engine") {
  const Folder folder;
  folder.write(
      "c.json",
      R"({"schema":"gccl/cluster/1","name":"slow","parameters":{"card":{"overhead_ns":1,"combine_GBps":0,"copy_GBps":0},"eager_bytes":65536,
      "links":{"wire":{"bandwidth_GBps":1e-6,"latency_ns":1}}},
      "nodes":[{"count":1,"cards":4,"inside":{"kind":"switch","link":"wire"}}]})");
  for (const auto& [asked, expected] : {std::pair(R"("bytes":"1 PiB")", "it would take more than 2^60 ns (36 years)"),
                                        {R"("bytes":"1 MiB","window":1)", "take a window of 2 or more"}}) {
    const std::string file =
        folder
            .write("s.json", fmt::format(R"({{"schema":"gccl/scenario/1","name":"n","cluster":"c.json",
      "runs":[{{"collective":"allreduce",{},"algorithms":"ring"}}]}})",
                                         asked))
            .string();
    for (const std::string& engine : kEngines) {
      const Ended e = run_gccl({"run", file, "--engine", engine});
      CAPTURE(e.err);
      CHECK(e.code == 2);
      CHECK(one_line(e.err));
      CHECK(e.err.find(expected) != std::string::npos);
      CHECK(e.out.empty());
    }
  }
}
