// Statistics and predictions of `gccl validate`.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "libgccl/cluster/read/load.hpp"
#include "sim/measured/predict/algorithm_names.hpp"
#include "sim/measured/predict/predict.hpp"
#include "sim/measured/validation/statistics.hpp"
#include "tests/measured/table_text.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;
using Json = nlohmann::json;

TEST_CASE("error statistics are those of a calculation by hand") {
  const ErrorStatistics s = statistics_of({-10, 20, -30, 40});
  CHECK(s.points == 4);
  CHECK(s.mape == doctest::Approx(25));
  CHECK(s.median == doctest::Approx(25));  // between 20 and 30
  CHECK(s.p90 == doctest::Approx(37));     // 0.9 x 3 = 2.7: 30 + 0.7 x 10
  CHECK(s.worst == doctest::Approx(40));
  CHECK(s.bias == doctest::Approx(5));  // between -10 and 20
  CHECK(statistics_of({}).points == 0);
  CHECK(statistics_of({-7}).p90 == doctest::Approx(7));
  CHECK(size_class(32767) == "< 32 KiB");
  CHECK(size_class(32768) == "< 1 MiB");
  CHECK(size_class(1 << 20) == "< 64 MiB");
  CHECK(size_class(64 << 20) == ">= 64 MiB");
}

TEST_CASE("algorithms of other libraries are known by their names, others are not guessed") {
  const auto name_of = [](Collective kind, const std::string& text) -> std::string {
    const MeasuredAlgorithm a = measured_algorithm(kind, text);
    return a.automatic ? "auto" : a.algorithm ? std::string(a.algorithm->name) : "none";
  };
  using enum Collective;
  CHECK(name_of(allreduce, "NCCL_ALGO=ring") == "ring");
  CHECK(name_of(allreduce, "Ring (tuner)") == "ring");
  CHECK(name_of(allreduce, "NCCL_ALGO=tree") == "tree");
  CHECK(name_of(allreduce, "rabenseifner_ompi") == "rabenseifner");
  CHECK(name_of(allreduce, "recursive_doubling_over") == "recursive_doubling");
  CHECK(name_of(allreduce, "hierarchical(ring,swing)") == "hierarchical(ring,swing)");
  CHECK(name_of(allgather, "CTRAN ctring") == "ring");
  CHECK(name_of(allgather, "neighbor_ompi") == "neighbor_exchange");
  CHECK(name_of(broadcast, "scatter_allgather_ring_ompi") == "scatter_allgather");
  for (const char* choice :
       {"", "auto", "NCCL default (auto)", "default_ompi", "default_mpich", "RCCL default (auto)", "NCCL"})
    CHECK(name_of(allreduce, choice) == "auto");
  for (const char* other : {"bine_lat_over", "MSCCL", "symmetric kernels", "NCCL_ALGO=collnet", "non_blocking_mpich"})
    CHECK(name_of(allreduce, other) == "none");
  CHECK(name_of(broadcast, "scatter_allgather_ompi") == "none");  // by recursive doubling there
}

TEST_CASE("a prediction is the closed form on the measured nodes' cards") {
  const Folder folder;
  const auto file = folder.write("two.json", kFourCards);
  const auto cluster = load_cluster(file);
  const std::vector<Measurement> rows = {
      measured_row(1, 2, 4096, 100), measured_row(1, 4, 4096, 100),         measured_row(2, 2, 64, 1),
      measured_row(1, 8, 64, 1),     measured_row(1, 2, 4096, 100, "bine"), measured_row(1, 2, 4096, 100, "auto")};
  std::vector<SkippedRow> skipped;
  const MeasuredPoints points(rows, cluster, file, skipped);
  const std::vector<Predicted> predicted = points.closed(cluster);
  REQUIRE(predicted.size() == 3);
  REQUIRE(skipped.size() == 3);
  CHECK(skipped[0].reason ==
        "on 2 nodes; the cluster has 1 (a node that is a rack of smaller ones says so by \"hosts\")");
  CHECK(skipped[1].reason == "with 8 ranks on a node; the cluster's nodes have 4 cards");
  CHECK(skipped[2].reason.find("\"bine\"") != std::string::npos);
  const auto ring = [](int n, double bytes) { return 2 * (n - 1) * (1000 + 2 * 500 + bytes / n / 10) / 1e3; };
  CHECK(predicted[0].us == doctest::Approx(ring(2, 4096)).epsilon(1e-6));
  CHECK(predicted[1].us == doctest::Approx(ring(4, 4096)).epsilon(1e-6));
  CHECK(predicted[2].us <= predicted[0].us * 1.001);
}

TEST_CASE("of a rack measured nodes are the hosts, whatever else was measured") {
  const Folder folder;
  std::string rack = kFourCards;
  rack.replace(rack.find("\"cards\""), 7, "\"hosts\": 2, \"cards\"");
  const auto file = folder.write("rack.json", rack);
  const auto cluster = load_cluster(file);
  const auto us_of = [&](const std::vector<Measurement>& rows) {
    std::vector<SkippedRow> skipped;
    const MeasuredPoints points(rows, cluster, file, skipped);
    std::vector<double> us;
    for (const Predicted& p : points.closed(cluster)) us.push_back(p.us);
    return us;
  };
  const auto ring = [](int n, double bytes) { return 2 * (n - 1) * (1000 + 2 * 500 + bytes / n / 10) / 1e3; };
  // One of two cards in each of two hosts, all of both, and four cards of one "node", which is the rack then.
  const std::vector<Measurement> rows = {measured_row(2, 1, 4096, 1), measured_row(2, 2, 4096, 1),
                                         measured_row(1, 4, 4096, 1)};
  const auto all = us_of(rows);
  REQUIRE(all.size() == 3);
  CHECK(all[0] == doctest::Approx(ring(2, 4096)).epsilon(1e-6));
  CHECK(all[1] == doctest::Approx(ring(4, 4096)).epsilon(1e-6));
  CHECK(all[2] == all[1]);
  CHECK(us_of({rows[1]}) == std::vector{all[1]});
  CHECK(us_of({rows[0], measured_row(3, 1, 4096, 1)}) == std::vector{all[0]});  // three hosts are more than there are

  rack.replace(rack.find("\"hosts\": 2"), 10, "\"hosts\": 3");
  const auto odd = folder.write("odd.json", rack);
  CHECK(run_gccl({"topology", odd.string()}).err.find("hosts: found 3, expected a number that divides the 4 cards") !=
        std::string::npos);
}

TEST_CASE("spellings of one collective are one group of the statistics, by the first of them") {
  const Folder folder;
  folder.write("two.json", kFourCards);
  folder.write("m.csv", kColumns +
                            "box,1,2,all_reduce,ring,auto,1048576,108.8576,,,src,n\n"
                            "box,1,2,all_gather,ring,auto,1048576,108.8576,,,src,n\n"
                            "box,1,2,AllReduce,ring,auto,2097152,427.4304,,,src,n\n");
  const Ended e = run_gccl({"validate", "m.csv", "--cluster", "two.json", "--json", "-"}, folder.path);
  REQUIRE(e.code == 0);
  const Json groups = Json::parse(e.out)["statistics"]["all"]["by_collective"];
  REQUIRE(groups.size() == 2);
  CHECK(groups[0]["collective"] == "all_gather");
  CHECK(groups[1]["collective"] == "all_reduce");
  CHECK(groups[1]["points"] == 2);
}

TEST_CASE("a row's protocol is the cluster's of that name, a choice is by the rules of its library") {
  const Folder folder;
  Json description = Json::parse(kFourCards);
  description["parameters"]["protocols"] = {{"LL", {{"operation_ns", 1000}, {"inside", {{"efficiency", 0.5}}}}},
                                            {"Simple", {{"operation_ns", 9000}}}};
  description["parameters"]["nccl"] = {{"architecture", "ampere"}};
  const auto file = folder.write("two.json", description.dump());
  const auto cluster = load_cluster(file);
  std::vector<Measurement> rows(6, measured_row(1, 2, 64, 1));
  rows[0].protocol = "ll";
  rows[1].protocol = "Simple";
  rows[2].protocol = "LL128";
  rows[3].protocol = "QP interleave ON";
  rows[4].algorithm = "NCCL default (auto)";
  rows[5].algorithm = "default_ompi";
  std::vector<SkippedRow> skipped;
  const MeasuredPoints points(rows, cluster, file, skipped);
  const std::vector<Predicted> p = points.closed(cluster);
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0].reason == "the cluster has no protocol \"LL128\"");
  REQUIRE(p.size() == 5);
  CHECK(p[0].protocol == "LL");
  CHECK(p[1].protocol == "Simple");
  CHECK(p[1].us - p[0].us == doctest::Approx(8).epsilon(0.01));  // 8 us of launch; of 64 bytes none matters
  CHECK(p[2].protocol == "LL");                                  // none is stated: the faster one
  CHECK(p[2].planner == "");
  CHECK(p[3].planner == "nccl");
  CHECK(p[4].planner == "openmpi");
}

TEST_CASE("rows on several nodes that state a protocol of calls inside one node are left out") {
  const Folder folder;
  Json description = Json::parse(kFourCards);
  description["parameters"]["protocols"] = {{"LL", {{"network", false}}}, {"Simple", {{"operation_ns", 9000}}}};
  description["nodes"][0]["count"] = 2;
  description["nodes"][0]["nics"] = {{"count", 1}, {"bus", "wire"}, {"port", "wire"}};
  description["fabric"] = {{"kind", "switch"}};
  const auto file = folder.write("two.json", description.dump());
  const auto cluster = load_cluster(file);
  std::vector<Measurement> rows{measured_row(1, 2, 64, 1), measured_row(2, 2, 64, 1)};
  for (Measurement& m : rows) m.protocol = "LL";
  std::vector<SkippedRow> skipped;
  const std::vector<Predicted> p = MeasuredPoints(rows, cluster, file, skipped).closed(cluster);
  REQUIRE(p.size() == 1);
  CHECK(p[0].row == 0);
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0].reason == "the cluster has no protocol \"LL\" between nodes");
}

TEST_CASE("a row whose algorithm sums in switches by a protocol that cannot is left out alone") {
  const Folder folder;
  Json description = Json::parse(kFourCards);
  description["parameters"]["protocols"] = {{"LL", {{"in_switch", false}}}, {"Simple", {{"operation_ns", 9000}}}};
  description["nodes"][0]["inside"]["in_switch"] = true;
  const auto file = folder.write("switch.json", description.dump());
  const auto cluster = load_cluster(file);
  std::vector<Measurement> rows{measured_row(1, 4, 64, 1), measured_row(1, 4, 64, 1)};
  rows[0].protocol = "LL";
  for (Measurement& m : rows) m.algorithm = "nvls";
  std::vector<SkippedRow> skipped;
  const std::vector<Predicted> p = MeasuredPoints(rows, cluster, file, skipped).closed(cluster);
  REQUIRE(p.size() == 1);
  CHECK(p[0].row == 1);
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0].reason == "\"nvls\" leaves summing to switches, which do not sum by protocol \"LL\"");
}

TEST_CASE("rows of gccl bench are predicted as they were cut up") {
  const Folder folder;
  const auto file = folder.write("four.json", kFourCards);
  const auto cluster = load_cluster(file);
  std::vector<Measurement> rows(2, measured_row(1, 4, 1 << 20, 1));
  for (Measurement& m : rows) m.algorithm = "ring";
  rows[0].slicing = Slicing{.shares = 64, .lanes = 1, .window = 2};
  rows[1].slicing = Slicing{.shares = 1, .lanes = 1, .window = 2};
  std::vector<SkippedRow> skipped;
  const std::vector<Predicted> p = MeasuredPoints(rows, cluster, file, skipped).closed(cluster);
  REQUIRE(p.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(p[i].slicing == *rows[p[i].row].slicing);
  // As many ways to cut up as there are.
  std::vector<Measurement> many(1500, measured_row(1, 4, 1 << 20, 1));
  for (std::size_t i = 0; i < many.size(); ++i) many[i].slicing = Slicing{.shares = i + 1, .lanes = 1, .window = 2};
  CHECK(MeasuredPoints(many, cluster, file, skipped).closed(cluster).size() == many.size());
  CHECK(p[0].us != p[1].us);
}

TEST_CASE("a set's only protocol stands for any that rows state, unless it is called as one of NCCL's") {
  const Folder folder;
  std::vector<Measurement> rows(2, measured_row(1, 2, 64, 1));
  rows[0].protocol = "LL";
  rows[1].protocol = "Simple";
  const auto protocols = [&](const char* only, std::vector<SkippedRow>& skipped) {
    Json description = Json::parse(kFourCards);
    description["parameters"]["protocols"] = {{only, {{"operation_ns", 1000}}}};
    const auto file = folder.write("one.json", description.dump());
    const auto cluster = load_cluster(file);
    std::vector<std::string> all;
    for (const Predicted& p : MeasuredPoints(rows, cluster, file, skipped).closed(cluster)) all.push_back(p.protocol);
    return all;
  };
  std::vector<SkippedRow> skipped;
  CHECK(protocols("default", skipped) == std::vector<std::string>{"default", "default"});  // as gccl fit writes it
  CHECK(skipped.empty());
  CHECK(protocols("Simple", skipped) == std::vector<std::string>{"Simple"});
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0].reason == "the cluster has no protocol \"LL\"");
}

TEST_CASE("rows of MPI libraries are not cut up, and have the parameters that a cluster has for them") {
  const Folder folder;
  Json description = Json::parse(kFourCards);
  description["parameters"]["protocols"] = {{"Simple", {{"operation_ns", 9000}}}};
  description["mpi_parameters"] = Json::parse(R"({"card":{"overhead_ns":2000,"combine_GBps":0,"copy_GBps":0},
    "eager_bytes":"64KiB","links":{"wire":{"bandwidth_GBps":1,"latency_ns":250}}})");
  const auto file = folder.write("two.json", description.dump());
  const JsonSchema schema(Json::parse(read_text(kRoot / "libgccl/cluster/cluster.schema.json")));
  CHECK(schema.accepts(description));
  folder.write("m.csv", kColumns +
                            "box,1,4,all_reduce,tree,auto,67108864,1,,,src,n\n"
                            "box,1,4,all_reduce,ring_ompi,auto,67108864,1,,,src,n\n"
                            "box,1,4,all_reduce,ring_over,auto,67108864,1,,,src,n\n"
                            "box,1,4,all_reduce,default_mpich,auto,67108864,1,,,src,n\n"
                            "box,1,4,all_reduce,bine_over,auto,67108864,1,,,src,n\n");
  // Six steps of V/4: overhead, two links, bytes.
  const double ring = 6 * (2000 + 2 * 250 + double(64 << 20) / 4) / 1e3;
  const auto rows = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"validate", "m.csv", "--cluster", "two.json", "--json", "-"};
    command.insert(command.end(), more.begin(), more.end());
    const Ended e = run_gccl(command, folder.path);
    CHECK(e.err == "");
    REQUIRE(e.code == 0);
    return Json::parse(e.out)["rows"];
  };
  for (const std::string engine : {"closed", "model", "flow"}) {
    CAPTURE(engine);
    const Json all = rows({"--engine", engine});
    REQUIRE(all.size() == 4);
    CHECK(all[0]["predicted_protocol"] == "Simple");
    CHECK(all[0]["chunks"].get<int>() > 1);  // at 10 GB/s and cut up
    CHECK(all[0]["predicted_us"].get<double>() < ring / 5);
    for (const std::size_t mpi : {1, 2, 3}) {
      CHECK(all[mpi]["predicted_protocol"] == "");
      CHECK(all[mpi]["chunks"] == 1);
      CHECK(all[mpi]["channels"] == 1);
    }
    for (const std::size_t stated : {1, 2})
      CHECK(all[stated]["predicted_us"].get<double>() == doctest::Approx(ring).epsilon(0.01));
    CHECK(all[3]["predicted_us"].get<double>() <= ring * 1.01);
  }
  // Each kind of row has its own set's protocols and NCCL's rules.
  folder.write("own.csv", kColumns +
                              "box,1,4,all_reduce,ring,Simple,1048576,1,,,src,n\n"
                              "box,1,4,all_reduce,ring_ompi,Late,1048576,1,,,src,n\n"
                              "box,1,4,all_reduce,ring_ompi,Simple,1048576,1,,,src,n\n"
                              "box,1,4,all_reduce,ring_ompi,early,12,1,,,src,n\n"
                              "box,1,4,all_reduce,NCCL,,1048576,1,,,src,n\n"
                              "box,1,4,all_reduce,MPI,,1048576,1,,,src,n\n");
  Json named = description;
  named["parameters"]["nccl"] = {{"architecture", "ampere"}};
  named["mpi_parameters"]["protocols"] = {{"early", Json::object()}, {"late", {{"operation_ns", 5000}}}};
  folder.write("named.json", named.dump());
  const Ended own =
      run_gccl({"validate", "own.csv", "--cluster", "named.json", "--planner", "nccl", "--json", "-"}, folder.path);
  REQUIRE(own.code == 0);
  const Json ended = Json::parse(own.out);
  REQUIRE(ended["rows"].size() == 5);
  CHECK(ended["rows"][0]["predicted_protocol"] == "Simple");
  CHECK(ended["rows"][1]["predicted_protocol"] == "late");
  CHECK(ended["skipped"][0]["reason"] == "the cluster has no protocol \"Simple\"");
  CHECK(ended["skipped"][0]["first"][0] == "own.csv:4");
  CHECK(ended["rows"][2]["predicted_algorithm"] == "recursive_doubling");  // three elements for four ranks
  CHECK(ended["rows"][3]["planner"] == "nccl");
  CHECK(ended["rows"][4]["planner"] == "gccl");
  CHECK(ended["rows"][4]["predicted_protocol"] == "early");
  // Stated parameters are those of all rows.
  folder.write("fast.json", R"({"schema":"gccl/parameters/1","name":"fast","card":{"overhead_ns":0,"combine_GBps":0,
    "copy_GBps":0},"eager_bytes":0,"links":{"wire":{"bandwidth_GBps":100,"latency_ns":0}}})");
  const Json fast = rows({"--parameters", "fast.json"});
  for (const std::size_t stated : {1, 2})
    CHECK(fast[stated]["predicted_us"].get<double>() ==
          doctest::Approx(6 * double(64 << 20) / 4 / 100 / 1e3).epsilon(0.01));
  // One fit is of one set.
  for (const std::string command : {"fit", "diagnose"}) {
    CAPTURE(command);
    std::vector<std::string> line = {command, "m.csv", "--cluster", "two.json"};
    if (command == "fit") line.insert(line.end(), {"-o", "p.json"});
    const Ended e = run_gccl(line, folder.path);
    CHECK(e.code == 2);
    CHECK(e.err.find("3 measured rows are of MPI libraries and 1 of others") != std::string::npos);
    CHECK(!std::filesystem::exists(folder.path / "p.json"));
  }
  folder.write("one.csv", kColumns +
                              "box,1,4,all_reduce,NCCL,,1048576,1,,,src,n\n"
                              "box,1,4,all_reduce,MPI,,1048576,1,,,src,n\n");
  CHECK(run_gccl({"diagnose", "one.csv", "--cluster", "two.json"}, folder.path)
            .err.find("1 measured row is of MPI libraries and 1 of others") != std::string::npos);
  description["mpi_parameters"].erase("eager_bytes");
  folder.write("two.json", description.dump());
  const Ended e = run_gccl({"topology", "two.json"}, folder.path);
  CHECK(e.code == 2);
  CHECK(e.err.find("/mpi_parameters") != std::string::npos);
}
