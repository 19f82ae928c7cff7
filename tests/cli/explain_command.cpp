// gccl explain: its text, JSON and picture, beside what gccl run says of the same call, and wrong input.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

namespace {

Json explained(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"explain", "--json", "-"});
  const Ended e = run_gccl(arguments);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  return Json::parse(e.out);
}

// The row of gccl run that its planner chose.
Json chosen_by_run(const Folder& folder, const std::string& planner) {
  folder.write("s.json", R"({"schema":"gccl/scenario/1","name":"s","cluster":"dgx-h100-superpod-2048","ranks":16,
    "runs":[{"collective":"allgather","bytes":"64KiB","dtype":"f32","algorithms":"auto"}]})");
  const Ended e = run_gccl({"run", (folder.path / "s.json").string(), "--planner", planner, "--json", "-"});
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  return Json::parse(e.out)["runs"][0];
}

}  // namespace

TEST_CASE("explain and run agree on what is chosen and how long it is predicted to take") {
  const Folder folder;
  const std::vector<std::string> call{
      "dgx-h100-superpod-2048", "--ranks", "16", "--collective", "allgather", "--bytes", "64KiB"};
  const Json own = explained(call), run = chosen_by_run(folder, "gccl");
  CHECK(own["schema"] == "gccl/explanation/1");
  CHECK(own["choice"]["algorithm"] == run["algorithm"]);
  CHECK(own["choice"]["protocol"] == run["protocol"]);
  CHECK(own["choice"]["chunks"] == run["chunks"]);
  CHECK(own["choice"]["predicted_us"].get<double>() == doctest::Approx(run["predicted_us"].get<double>()));
  double sum = 0;
  for (const Json& part : own["candidates"][0]["parts"]) sum += part["us"].get<double>();
  CHECK(sum == doctest::Approx(run["predicted_us"].get<double>()).epsilon(1e-6));
  for (const char* planner : {"nccl", "openmpi"}) {
    CAPTURE(planner);
    std::vector<std::string> other = call;
    other.insert(other.end(), {"--as", planner});
    const Json theirs = explained(other), row = chosen_by_run(folder, planner);
    CHECK(theirs["choice"]["theirs"] == row["planner_choice"]);
    CHECK(theirs["choice"]["algorithm"] == row["algorithm"]);
    CHECK(theirs["choice"]["predicted_us"].get<double>() == doctest::Approx(row["predicted_us"].get<double>()));
  }
}

TEST_CASE("the text names the choice, the reasons, the cross-overs and what would change it; the picture is SVG") {
  const Folder folder;
  const std::string svg = (folder.path / "why.svg").string();
  const Ended e = run_gccl({"explain", "dgx-h100-superpod-2048", "--bytes", "256", "--ranks", "64", "--svg", svg});
  REQUIRE(e.code == 0);
  for (const char* text : {"GCCL takes recursive_doubling, LL", "where the predicted time goes", "why the others lost",
                           "126 messages one after the other, 6", "where the choice changes with the size",
                           "half the latency of messages"})
    CHECK_MESSAGE(e.out.find(text) != std::string::npos, text);
  const std::string picture = read_text(svg);
  CHECK(picture.starts_with("<svg"));
  CHECK(picture.find("recursive_doubling LL") != std::string::npos);
  CHECK(run_gccl({"explain", "pcie-box", "--ranks", "1", "--bytes", "8"}).code == 0);
  CHECK(run_gccl({"explain", "host", "--collective", "barrier"}).code == 0);
  CHECK(run_gccl({"explain", "host", "--bytes", "0"}).code == 0);
}

TEST_CASE("no better machine is slower, as it keeps the choice where another one brings nothing") {
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"leonardo", "--bytes", "1PiB", "--ranks", "5"},
        {"aws-p5", "--bytes", "1GiB", "--ranks", "17", "--collective", "broadcast"}}) {
    std::vector<std::string> words{"explain", "--json", "-"};
    words.insert(words.end(), call.begin(), call.end());
    const Ended e = run_gccl(words);
    REQUIRE(e.code == 0);
    const Json answer = Json::parse(e.out);
    for (const Json& w : answer["what_if"]) CHECK_MESSAGE(w["saves_percent"] >= 0, w.dump());
  }
}

TEST_CASE("with --as it is said whose choice loses, changes with the size, and changes with the machine") {
  const Folder folder;
  const std::string svg = (folder.path / "why.svg").string();
  for (const auto& [as, library] : {std::pair("nccl", "NCCL"), {"openmpi", "Open MPI"}}) {
    const Ended e =
        run_gccl({"explain", "dgx-h100-superpod-2048", "--bytes", "1MiB", "--ranks", "64", "--as", as, "--svg", svg});
    REQUIRE(e.code == 0);
    // The tree that NCCL takes is among those that lose to the planner's choice, of which the nearest is said first.
    CHECK(e.out.find("\nwhy the others lose to GCCL's own choice\n  swing") != std::string::npos);
    CHECK(e.out.find("\nwhat would change GCCL's own choice\n  links") != std::string::npos);
    CHECK(e.out.find(fmt::format("\nwhere {}'s choice changes with the size\n", library)) != std::string::npos);
    const std::string picture = read_text(svg);
    CHECK(picture.find("what would change GCCL") != std::string::npos);
    CHECK(picture.find(fmt::format("where {}", library)) != std::string::npos);
  }
}

TEST_CASE("where another library has no rule, explain says so, and what GCCL takes") {
  const std::vector<std::string> call{"ethernet-cpu", "--collective", "sendrecv", "--bytes", "1KiB", "--ranks", "4"};
  std::vector<std::string> words{"explain"}, theirs = call;
  words.insert(words.end(), call.begin(), call.end());
  theirs.insert(theirs.end(), {"--as", "openmpi"});
  words.insert(words.end(), {"--as", "openmpi"});
  const Ended e = run_gccl(words);
  CHECK(e.out.find("\nOpen MPI has no rule for it; GCCL takes direct: 2.6") != std::string::npos);
  CHECK(e.out.find("changes with the size") == std::string::npos);
  CHECK(run_gccl({"explain", "dgx-h100-superpod-2048", "--collective", "allreduce", "--bytes", "1KiB", "--ranks", "1",
                  "--as", "nccl"})
            .out.find("\nNCCL sends nothing on one rank; GCCL takes ") != std::string::npos);
  const Json j = explained(theirs);
  CHECK(j["choice"]["theirs"].is_null());
  CHECK(j["crossovers"].empty());
  CHECK(j["candidates"] == explained(call)["candidates"]);

  // NCCL's gather is grouped sends and receives: its model compares nothing.
  const Json gather = explained(
      {"dgx-h100-superpod-2048", "--collective", "gather", "--bytes", "1KiB", "--ranks", "4", "--as", "nccl"});
  CHECK(gather["nccl_model"].empty());
  CHECK(gather["choice"]["decided"] == "NCCL has no other way, whatever the size");
}

TEST_CASE("explain says who decides, as run does: GCCL_ALGORITHM, GCCL_ALGO, a table, the model") {
  const Folder folder;
  const std::string table = folder
                                .write("t.json", R"({"schema":"gccl/table/1","name":"t",
            "machine":{"cluster":"dgx-h100-superpod-2048","nodes":256,"cards_per_node":8},
            "entries":[{"collective":"allgather","algorithm":"bruck","protocol":"LL","chunks":1}]})")
                                .string();
  const struct {
    std::string setting, algorithm, authority, decided;
  } kCases[] = {
      {"GCCL_ALGORITHM=allgather=ring", "ring", "GCCL_ALGORITHM", "GCCL_ALGORITHM asks for ring"},
      {"GCCL_ALGO=allgather:bruck,ring", "ring", "the model", "candidates, among what GCCL_ALGO allows"},
      {"GCCL_ALGO=pat", "pat", "GCCL_ALGO", "GCCL_ALGO asks for pat"},
      {"GCCL_TUNING_FILE=" + table, "bruck", "GCCL_TUNING_FILE", "asks for bruck (" + table + ": /entries/0)"},
      {"GCCL_ALGO=allreduce:ring", "", "the model", "the lowest predicted time of"},
  };
  const std::vector<std::string> call{
      "explain", "dgx-h100-superpod-2048", "--ranks", "16", "--collective", "allgather", "--bytes", "64KiB", "--json",
      "-"};
  for (const auto& c : kCases) {
    CAPTURE(c.setting);
    const Ended e = Program(call, {.environment = {c.setting}}).wait();
    REQUIRE(e.code == 0);
    const Json choice = Json::parse(e.out)["choice"];
    if (!c.algorithm.empty()) CHECK(choice["algorithm"] == c.algorithm);
    CHECK(choice["authority"] == c.authority);
    CHECK(choice["decided"].get<std::string>().find(c.decided) != std::string::npos);
  }
  const auto refused = [&](const std::string& setting, const std::string& cluster) {
    const Ended e = Program({"explain", cluster, "--bytes", "8", "--ranks", "2"}, {.environment = {setting}}).wait();
    CHECK(e.code == 2);
    return e.err;
  };
  CHECK(refused("GCCL_TUNING_FILE=" + table, "polaris").find("/machine/cluster: the table is for") !=
        std::string::npos);
  CHECK(refused("GCCL_ALGO=rink", "polaris").find("there is no algorithm \"rink\"") != std::string::npos);
}

// Of eight nodes the last has one of its two NICs, and rings through all of them go half as fast. By the flow engine
// the tree that is left takes 1.40 ms and the ring 1.64.
TEST_CASE("a NIC that a cluster's description leaves out changes the plan") {
  const Folder folder;
  const auto choice = [&](bool fault) {
    Json c = Json::parse(read_text(kRoot / "topologies/polaris.json"));
    c.erase("sources");
    c["parameters"] = (kRoot / "topologies" / c["parameters"].get<std::string>()).string();
    c["nodes"][0]["count"] = fault ? 7 : 8;
    if (fault) {
      Json last = c["nodes"][0];
      last["count"] = 1;
      last["nics"] = {{"count", 1}, {"bus", "nic_bus"}, {"port", "nic"}};
      c["nodes"].push_back(last);
    }
    return explained({folder.write("c.json", c.dump()).string(), "--bytes", "16MiB"})["choice"];
  };
  const Json healthy = choice(false), faulty = choice(true);
  CHECK(healthy["algorithm"] == "rabenseifner");
  CHECK(healthy["channels"] == 32);
  CHECK(faulty["algorithm"] == "tree");
  CHECK(faulty["predicted_us"].get<double>() > healthy["predicted_us"].get<double>());
}

TEST_CASE("control characters in a cluster's name tear no text apart, and the documents fit their schemas") {
  const Folder folder;
  Json cluster = Json::parse(read_text(kRoot / "topologies/ethernet-cpu.json"));
  cluster["name"] = "two\nlines\x01\x1b[31m";
  if (cluster["parameters"].is_string())
    cluster["parameters"] = (kRoot / "cost-models" / cluster["parameters"].get<std::string>()).string();
  const std::string file = folder.write("c.json", cluster.dump()).string();
  const auto schema = [](const char* of) { return JsonSchema(Json::parse(read_text(kRoot / of))); };
  for (const char* as : {"gccl", "openmpi"}) {
    const Ended e = run_gccl({"explain", file, "--bytes", "1KiB", "--ranks", "4", "--as", as});
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    CHECK(e.out.find("on 4 ranks of two?lines??[31m\n") != std::string::npos);
    CHECK(schema("sim/report/explanation.schema.json")
              .accepts(explained({file, "--bytes", "1KiB", "--ranks", "4", "--as", as})));
  }
  CHECK(schema("sim/report/explanation.schema.json")
            .accepts(explained({"polaris", "--bytes", "1KiB", "--ranks", "8", "--as", "nccl"})));
  CHECK(schema("sim/report/explanation.schema.json")
            .accepts(explained({"polaris", "--collective", "barrier", "--ranks", "8", "--as", "nccl"})));
  const std::string json = (folder.path / "t.json").string();
  const std::vector<std::string> sweep{"tune",          file,        "--quiet", "--ranks", "2", "--bytes", "64",
                                       "--collectives", "allgather", "--json",  json};
  const Ended tune = run_gccl(sweep);
  CHECK(tune.code == 0);
  CHECK(tune.out.starts_with("two?lines??[31m (flow engine"));
  CHECK(schema("sim/tuning/tuning.schema.json").accepts(Json::parse(read_text(json))));
  const Ended compare = run_gccl({"compare", json, json, "--json", "-"});
  CHECK(schema("sim/tuning/comparison.schema.json").accepts(Json::parse(compare.out)));
}

TEST_CASE("--parameters, and what Open MPI chooses, are answered as of a description that names that set itself") {
  const Folder folder;
  Json cluster = Json::parse(read_text(kRoot / "topologies/leonardo.json"));
  REQUIRE(cluster["mpi_parameters"].is_string());
  const std::string mpi = cluster["mpi_parameters"];
  cluster["parameters"] = (kRoot / "topologies" / mpi).lexically_normal().string();
  cluster.erase("mpi_parameters");
  const std::string copy = folder.write("copy.json", cluster.dump()).string();
  const auto answer = [](const std::string& of, std::vector<std::string> more) {
    more.insert(more.begin(), {of, "--bytes", "64KiB", "--ranks", "64"});
    Json e = explained(more);
    e.erase("parameters");
    return e;
  };
  CHECK(answer("leonardo", {"--as", "openmpi"}) == answer(copy, {"--as", "openmpi"}));
  CHECK(answer("leonardo", {"--parameters", "leonardo-mpi"}) == answer(copy, {}));
  CHECK(answer("leonardo", {}) != answer(copy, {}));
  // A set that is stated stands before the cluster's for MPI.
  CHECK(answer("leonardo", {"--as", "openmpi", "--parameters", "leonardo"}) != answer(copy, {"--as", "openmpi"}));
  CHECK(answer(copy, {"--parameters", "leonardo"}) == answer("leonardo", {}));
  const Json named = explained({"leonardo", "--bytes", "8", "--ranks", "8", "--as", "openmpi"});
  CHECK(named["parameters"] == "leonardo-mpi");
  CHECK(JsonSchema(Json::parse(read_text(kRoot / "sim/report/explanation.schema.json"))).accepts(named));
  const Ended text = run_gccl({"explain", "leonardo", "--bytes", "8", "--ranks", "8", "--as", "openmpi"});
  CHECK(text.out.starts_with("allreduce of 8 B (2 x f32) on 8 ranks of leonardo, with leonardo-mpi\n"));
}

TEST_CASE("explain says what is wrong with a question, and what was expected") {
  const std::pair<std::vector<std::string>, std::string> kCases[] = {
      {{"no-such-cluster", "--bytes", "8"}, "no-such-cluster"},
      {{"host"}, "--bytes is missing: expected a size such as 64KiB"},
      {{"host", "--bytes", "8x"}, "--bytes: found \"8x\", expected a size such as 64KiB"},
      {{"host", "--bytes", "8", "--collective", "allredue"},
       "--collective: found \"allredue\"; did you mean \"allreduce\"?"},
      {{"host", "--bytes", "8", "--collective", "alltoallv"}, "such as \"alltoall\""},
      {{"host", "--bytes", "8", "--ranks", "65"}, "--ranks: found 65, but host has only 64 cards"},
      {{"host", "--bytes", "8", "--ranks", "0"}, "--ranks"},
      {{"host", "--bytes", "8", "--dtype", "f33"}, "--dtype: found \"f33\""},
      {{"host", "--bytes", "8", "--root", "64", "--collective", "reduce"},
       "--root: found 64, expected a rank below 64"},
      {{"host", "--bytes", "8", "--root", "0"},
       "--root: allreduce has no root; expected broadcast, reduce, gather or scatter with it"},
      {{"host", "--bytes", "8", "--collective", "barrier"}, "--bytes: a barrier has no size"},
      {{"host", "--bytes", "8", "--as", "mpich"}, "--as: found \"mpich\""},
      {{"leonardo", "--bytes", "8", "--parameters", "leonardo-mpj"}, "did you mean \"leonardo-mpi\"?"},
      {{"ethernet-cpu", "--bytes", "8", "--parameters", "leonardo-mpi"}, "the parameters have no link"},
      {{"host", "--bytes", "8", "--as", "nccl"}, "--as nccl: the parameters of host have no \"nccl\" object"},
      {{"host", "--bytes", "8", "--json", "-", "--svg", "-"}, "only one of --json and --svg"},
  };
  for (const auto& [arguments, expected] : kCases) {
    std::vector<std::string> all{"explain"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    check_refused(all, expected);
  }
}
