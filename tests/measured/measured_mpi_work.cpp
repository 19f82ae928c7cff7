// What MPI libraries do beside sending and reducing is part of what `gccl validate` predicts for their rows.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/measured/table_text.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using Json = nlohmann::json;

namespace {

constexpr double kMiB = 1 << 20;

// 128 nodes of one process; bytes in GB/s, so bytes per ns, and every message 1000 ns.
constexpr double kWire = 10, kCombine = 4, kCopy = 8, kFresh = 2, kMessage = 1000;
Json cluster(bool with_mpi) {
  Json c = Json::parse(R"({"schema":"gccl/cluster/1","name":"c","parameters":{
    "card":{"overhead_ns":0,"combine_GBps":4,"copy_GBps":8},"eager_bytes":"16KiB",
    "links":{"bus":{"bandwidth_GBps":1000,"latency_ns":0},"nic":{"bandwidth_GBps":10,"latency_ns":500}}},
    "nodes":[{"count":128,"cards":1,"nics":{"count":1,"bus":"bus","port":"nic"}}],"fabric":{"kind":"switch"}})");
  if (with_mpi) c["parameters"]["mpi"] = {{"fresh_GBps", kFresh}, {"fresh_bytes", "32MiB"}, {"several_bytes", "1MiB"}};
  return c;
}

struct Row {
  std::string collective, algorithm;
  int nodes;
  double bytes;
};

// What the rows are predicted to take, in ns.
std::vector<double> predicted(const std::vector<Row>& rows, bool with_mpi, const std::string& engine = "closed") {
  const Folder folder;
  folder.write("c.json", cluster(with_mpi).dump());
  std::string table = kColumns;
  for (const Row& r : rows)
    table += fmt::format("m,{},1,{},{},,{:.0f},1,,,src,n\n", r.nodes, r.collective, r.algorithm, r.bytes);
  folder.write("m.csv", table);
  const Ended e =
      run_gccl({"validate", "m.csv", "--cluster", "c.json", "--engine", engine, "--json", "-"}, folder.path);
  CHECK(e.err == "");
  REQUIRE(e.code == 0);
  std::vector<double> ns;
  const Json document = Json::parse(e.out);
  for (const Json& row : document["rows"]) ns.push_back(row["predicted_us"].get<double>() * 1e3);
  REQUIRE(ns.size() == rows.size());
  return ns;
}

// By how much a set's "mpi" makes the row slower.
double more(const Row& row, const std::string& engine = "closed") {
  return predicted({row}, true, engine)[0] - predicted({row}, false, engine)[0];
}

}  // namespace

TEST_CASE("a rank of Open MPI's binomial broadcast sends to all its children at once") {
  // The root's log2 n messages share its NIC, so all arrive when the last does; then those of the child with the
  // largest subtree, one less, and so on.
  const double v = 64 * kMiB;
  for (const int k : {2, 5, 7}) {
    CAPTURE(k);
    const double one_by_one = k * (kMessage + v / kWire);
    const auto ns =
        predicted({{"broadcast", "binomial_ompi", 1 << k, v}, {"broadcast", "binomial_mpich", 1 << k, v}}, true);
    CHECK(ns[0] == doctest::Approx(one_by_one + k * (k - 1) / 2 * v / kWire));
    CHECK(ns[1] == doctest::Approx(one_by_one));
    CHECK(predicted({{"broadcast", "binomial_ompi", 1 << k, v}}, false)[0] == doctest::Approx(one_by_one));
  }
}

TEST_CASE("and off powers of two the tree has fewer children") {
  // Counted by hand in the tree of ompi/mca/coll/base/coll_base_topo.c: rank r has the children r + d, d a power of two
  // above r, below the number of ranks.
  const double v = 64 * kMiB;
  struct Tree {
    int nodes, levels, vectors;
  };
  for (const Tree& t : {Tree{3, 2, 2}, {5, 3, 4}, {6, 3, 5}, {17, 5, 11}, {33, 6, 16}}) {
    CAPTURE(t.nodes);
    CHECK(more({"broadcast", "binomial_ompi", t.nodes, v}) == doctest::Approx((t.vectors - t.levels) * v / kWire));
  }
}

TEST_CASE("copies, and memory that a call allocates, are paid for from the set's lengths on") {
  // One vector of its own, there and back.
  for (const double v : {4 * kMiB, 64 * kMiB}) {
    CAPTURE(v);
    const double fresh = v > 32 * kMiB ? v / kFresh : 0;
    for (const std::string engine : {"closed", "model", "flow"})
      CHECK(more({"all_reduce", "recursive_doubling_ompi", 8, v}, engine) ==
            doctest::Approx(2 * v / kCopy + fresh).epsilon(1e-3));
  }
  CHECK(more({"all_reduce", "ring_ompi", 8, 64 * kMiB}) == doctest::Approx(64 * kMiB / kCopy));
  // Two, whose bound is another.
  for (const double v : {0.5 * kMiB, 4 * kMiB}) {
    CAPTURE(v);
    const double fresh = v > kMiB ? 1.5 * v / kFresh : 0;
    CHECK(more({"reduce_scatter", "recursive_halving_ompi", 8, v}) == doctest::Approx(v / kCopy + fresh));
  }
  for (const std::string algorithm : {"ring_ompi", "recursive_doubling_ompi", "neighbor_ompi"})
    CHECK(more({"all_gather", algorithm, 8, 64 * kMiB}) == doctest::Approx(0));
}

TEST_CASE("off powers of two halving hands whole vectors to neighbours first") {
  const double v = 0.5 * kMiB;  // no memory to pay for
  CHECK(more({"reduce_scatter", "recursive_halving_ompi", 6, v}) ==
        doctest::Approx(v / kWire + v / kCombine + v / kCopy));
  CHECK(more({"all_reduce", "rabenseifner_ompi", 6, v}) ==
        doctest::Approx(2 * v / kWire + v / 2 / kCombine + v / kCopy));
}

TEST_CASE("exchanges step by step, and blocking sends that wait for their receivers, wait each time") {
  CHECK(more({"alltoall", "pairwise_ompi", 8, 8 * kMiB}) == doctest::Approx(7 * kMessage));
  const double longer = 8 * 32 * 1024, shorter = 8 * 16 * 1024;  // blocks of 32 and 16 KiB
  CHECK(more({"scatter", "linear_ompi", 8, longer}) == doctest::Approx(7 * kMessage));
  CHECK(more({"scatter", "linear_ompi", 8, shorter}) == doctest::Approx(0));
  for (const std::string algorithm : {"linear_nb_ompi", "LINEAR_NB_ompi"})
    CHECK(more({"scatter", algorithm, 8, longer}) == doctest::Approx(0));
  CHECK(more({"gather", "linear_ompi", 8, longer}) == doctest::Approx(3.5 * kMessage));
}

TEST_CASE("Open MPI's own choice for a reduce-scatter is by the rules of MPI_Reduce_scatter") {
  // On MareNostrum 5 (github:HLC-Lab/pico, results/mare_nostrum) 8 MiB took 1985 us by default and 1918 by its ring on
  // 32 nodes, 4697 by default and 5170 by recursive halving on 64.
  const Folder folder;
  folder.write("c.json", cluster(true).dump());
  folder.write("m.csv", kColumns +
                            "m,32,1,reduce_scatter,default_ompi,,8388608,1985,,,src,n\n"
                            "m,64,1,reduce_scatter,default_ompi,,8388608,4697,,,src,n\n");
  const Ended e = run_gccl({"validate", "m.csv", "--cluster", "c.json", "--json", "-"}, folder.path);
  REQUIRE(e.code == 0);
  const Json rows = Json::parse(e.out)["rows"];
  CHECK(rows[0]["predicted_algorithm"] == "ring");
  CHECK(rows[1]["predicted_algorithm"] == "recursive_halving");
  for (const Json& row : rows) {
    CHECK(row["planner"] == "openmpi");
    CHECK(row["chunks"] == 1);
  }
}

TEST_CASE("gccl diagnose looks for a wrong algorithm among those of the rows' library") {
  const Folder folder;
  folder.write("c.json", cluster(true).dump());
  // What recursive doubling takes: log2 n messages and sums of V, two copies, and V of fresh memory beyond 32 MiB.
  std::string table = kColumns;
  for (double v = 4096; v <= 256 * kMiB; v *= 4)
    table += fmt::format(
        "m,32,1,all_reduce,default_ompi,,{:.0f},{:.3f},,,src,n\n", v,
        (5 * (kMessage + v / kWire + v / kCombine) + 2 * v / kCopy + (v > 32 * kMiB ? v / kFresh : 0)) / 1e3);
  folder.write("m.csv", table);
  const Ended e = run_gccl({"diagnose", "m.csv", "--cluster", "c.json"}, folder.path);
  INFO(e.out);
  CHECK(e.out.find("Most likely wrong algorithm for the size, recursive_doubling for all sizes") != std::string::npos);
}

#ifdef GCCL_TEST_NLOPT
TEST_CASE("gccl fit finds how fast allocated memory comes") {
  const Folder folder;
  const JsonSchema schema(Json::parse(read_text(kRoot / "libgccl/cluster/parameters.schema.json")));
  Json set = cluster(true)["parameters"];
  set["schema"] = "gccl/parameters/1", set["name"] = "mine", set["mpi"]["fresh_GBps"] = 6.0;
  CHECK(schema.accepts(set));
  folder.write("set.json", set.dump());
  Json c = cluster(false);
  c["parameters"] = "set.json";
  folder.write("c.json", c.dump());
  // log2 n messages and sums of V, two copies, and V of fresh memory from 32 MiB on.
  std::string table = kColumns;
  for (const int k : {1, 2, 3})
    for (double v = kMiB; v <= 512 * kMiB; v *= 2)
      table += fmt::format(
          "m,{},1,all_reduce,recursive_doubling_ompi,,{:.0f},{:.3f},,,src,n\n", 1 << k, v,
          (k * (kMessage + v / kWire + v / kCombine) + 2 * v / kCopy + (v > 32 * kMiB ? v / kFresh : 0)) / 1e3);
  folder.write("m.csv", table);
  const Ended e =
      run_gccl({"fit", "m.csv", "--cluster", "c.json", "--no-corrections", "-o", "fitted.json"}, folder.path);
  INFO(e.err);
  REQUIRE(e.code == 0);
  const Json fitted = Json::parse(read_text(folder.path / "fitted.json"));
  CHECK(schema.accepts(fitted));
  CHECK(fitted["base"] == "set.json");
  CHECK(fitted["mpi"]["fresh_GBps"].get<double>() == doctest::Approx(kFresh).epsilon(0.05));
  // The rest of the object is its base's.
  folder.write("bound.csv",
               kColumns + fmt::format("m,8,1,all_reduce,recursive_doubling_ompi,,{},1,,,src,n\n", 32 << 20));
  CHECK(run_gccl({"validate", "bound.csv", "--cluster", "c.json", "--parameters", "fitted.json"}, folder.path).code ==
        0);
}
#endif

TEST_CASE("an \"mpi\" object that is wrong is one line and exit code 2") {
  const Folder folder;
  const auto refusal = [&](const Json& mpi) {
    Json c = cluster(true);
    c["parameters"]["mpi"] = mpi;
    folder.write("c.json", c.dump());
    const Ended e = run_gccl({"topology", "c.json"}, folder.path);
    CHECK(e.code == 2);
    CHECK(e.out == "");
    return e.err;
  };
  CHECK(refusal(Json::object()).find("/parameters/mpi: \"fresh_GBps\" is missing") != std::string::npos);
  CHECK(refusal({{"fresh_GBps", 0}}).find("/parameters/mpi/fresh_GBps: found 0") != std::string::npos);
  CHECK(refusal({{"fresh_GBps", 4}, {"fresh_byte", 1}}).find("did you mean \"fresh_bytes\"") != std::string::npos);
}
