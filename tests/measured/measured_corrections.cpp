// Corrections by size: what they are made from, who pays them, and what a set may say.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/measured/fit/corrections.hpp"
#include "tests/measured/table_text.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using Json = nlohmann::json;

namespace {

const std::string kTwoProtocols = R"({"schema":"gccl/parameters/1","name":"plain",
  "card":{"overhead_ns":400,"combine_GBps":0,"copy_GBps":0},"eager_bytes":"1MiB",
  "links":{"wire":{"bandwidth_GBps":10,"latency_ns":300}},
  "protocols":{"A":{"operation_ns":6000},"B":{"operation_ns":9000}}})";

const std::string kTwoNodes = R"({"schema":"gccl/cluster/1","name":"box","parameters":"set.json",
  "nodes":[{"count":2,"cards":4,"inside":{"kind":"switch","link":"wire"},"nics":{"count":1,"bus":"wire","port":"wire"}}],
  "fabric":{"kind":"switch"}})";

std::vector<sim::CorrectedPoint> points(double (*measured)(double bytes, double predicted)) {
  std::vector<sim::CorrectedPoint> all;
  for (Count bytes = 64; bytes <= 1u << 20; bytes *= 2) {
    const double predicted = 6 + double(bytes) / 1e4;
    all.push_back({{Collective::allreduce, 1, 4, "", ""}, bytes, measured(double(bytes), predicted), predicted, 6});
  }
  return all;
}

// time_us of gccl run on one engine, by algorithm and bytes.
Json times(const Folder& folder, const char* engine) {
  const Ended e = run_gccl({"run", "scenario.json", "--engine", engine, "--json", "-"}, folder.path);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json document = Json::parse(e.out);
  Json all = Json::object();
  for (const Json& row : document["runs"])
    all[fmt::format("{} {} {} {}", row["algorithm"].get<std::string>(), row["ranks"].get<int>(),
                    row["protocol"].get<std::string>(), row["bytes"].get<Count>())] = {row["time_us"],
                                                                                       row["predicted_us"]};
  return all;
}

}  // namespace

TEST_CASE("a correction is a straight line between sizes, and constant beyond them") {
  const Correction c{{}, {100, 200, 1000}, {10, -30, 50}, ""};
  CHECK(c.at(0) == 10);
  CHECK(c.at(100) == 10);
  CHECK(c.at(150) == doctest::Approx(-10));
  CHECK(c.at(200) == -30);
  CHECK(c.at(600) == doctest::Approx(10));
  CHECK(c.at(5000) == 50);
}

TEST_CASE("of several corrections the one that names most of an operation holds") {
  const auto of = [](std::string algorithm, std::string protocol, double ns) {
    return Correction{{Collective::allreduce, 1, 4, std::move(algorithm), std::move(protocol)}, {1}, {ns}, ""};
  };
  const Corrections all{of("", "LL", 3), of("ring", "LL", 4), of("ring", "", 2), of("", "", 1)};
  const auto found = [&](Corrected operation) {
    const Correction* c = correction_of(all, operation);
    return c ? c->extra_ns[0] : 0;
  };
  CHECK(found({Collective::allreduce, 1, 4, "tree", "Simple"}) == 1);
  CHECK(found({Collective::allreduce, 1, 4, "ring", "Simple"}) == 2);
  CHECK(found({Collective::allreduce, 1, 4, "tree", "LL"}) == 3);
  CHECK(found({Collective::allreduce, 1, 4, "ring", "LL"}) == 4);
  CHECK(found({Collective::allreduce, 2, 4, "ring", "LL"}) == 0);
  CHECK(found({Collective::allreduce, 1, 8, "ring", "LL"}) == 0);
  CHECK(found({Collective::allgather, 1, 4, "ring", "LL"}) == 0);
}

TEST_CASE("a correction for more nodes, too, holds where none is for so many, that of the most nodes") {
  const auto of = [](Rank nodes, std::string algorithm, double ns, bool more) {
    return Correction{{Collective::allreduce, nodes, 4, std::move(algorithm), ""}, {1}, {ns}, "", more};
  };
  const Corrections all{of(2, "", 1, true), of(8, "", 2, true), of(4, "", 3, true), of(16, "ring", 4, false)};
  const auto found = [&](Rank nodes, const char* algorithm) {
    const Correction* c = correction_of(all, {Collective::allreduce, nodes, 4, algorithm, ""});
    return c ? c->extra_ns[0] : 0;
  };
  CHECK(found(1, "ring") == 0);
  CHECK(found(2, "ring") == 1);
  CHECK(found(3, "ring") == 1);
  CHECK(found(4, "ring") == 3);
  CHECK(found(16, "ring") == 4);
  CHECK(found(16, "tree") == 2);
  CHECK(found(32, "ring") == 2);
}

TEST_CASE("a correction holds for more nodes where the one before did so for the next") {
  sim::CorrectionReport report;
  const auto measured = [](double at_2, double at_4) {
    std::vector<sim::CorrectedPoint> all;
    for (const auto& [nodes, extra] : {std::pair(1, 1.0), std::pair(2, at_2), std::pair(4, at_4)})
      for (Count bytes = 64; bytes <= 4096; bytes *= 2)
        all.push_back({{Collective::allreduce, Rank(nodes), 4, "ring", ""}, bytes, 10 + extra, 10, 5});
    return all;
  };
  const auto more = [&](double at_2, double at_4) {
    std::vector<Rank> nodes;
    for (const Correction& c : sim::corrections_of(measured(at_2, at_4), report))
      if (c.more_nodes) nodes.push_back(c.of.nodes);
    return nodes;
  };
  CHECK(more(3, 4) == std::vector<Rank>{4});
  CHECK(report.more_nodes == 1);
  CHECK(report.next_without_percent == doctest::Approx(100 * std::log(14.0 / 10)));
  CHECK(report.next_with_percent == doctest::Approx(100 * std::log(14.0 / 13)));
  CHECK(more(3, -1).empty());  // 3 more on two nodes say nothing of four, which take less
  CHECK(more(6, 1).empty());
  CHECK(report.more_nodes == 0);
  CHECK(report.corrected == 3);
}

TEST_CASE("curves that a model misses smoothly are corrected, noise is not") {
  sim::CorrectionReport report;
  const Corrections bent = sim::corrections_of(
      points([](double bytes, double predicted) { return predicted * (1.1 + 0.05 * std::log10(bytes)); }), report);
  REQUIRE(bent.size() == 1);
  CHECK(report.curves == 1);
  CHECK(report.corrected == 1);
  CHECK(report.without_percent > 20);
  CHECK(report.with_percent < 3);
  CHECK(bent[0].bytes.size() == 15);
  for (const Count bytes : {64u, 4096u, 1u << 20}) {
    const double predicted = 6 + double(bytes) / 1e4, measured = predicted * (1.1 + 0.05 * std::log10(double(bytes)));
    CHECK(bent[0].at(bytes) == doctest::Approx((measured - predicted) * 1e3));
  }
  // Errors of one sign and the other by turns: between two neighbours' there is always the wrong one.
  CHECK(sim::corrections_of(points([](double bytes, double predicted) {
                              return predicted * (int(std::log2(bytes)) % 2 ? 0.95 : 1.05);
                            }),
                            report)
            .empty());
  CHECK(report.curves == 1);
  CHECK(report.corrected == 0);
  // Nor is what a model has right, or three sizes.
  CHECK(sim::corrections_of(points([](double, double predicted) { return predicted; }), report).empty());
  auto three = points([](double, double predicted) { return predicted * 2; });
  three.resize(3);
  CHECK(sim::corrections_of(three, report).empty());
}

TEST_CASE("a correction takes away no more than the fixed cost, and is judged by what that leaves") {
  // 6 us of fixed cost and 10 GB/s, on links that carry 20: the fixed cost is less than what 256 KiB miss.
  const auto all = points([](double bytes, double) { return 6 + bytes / 2e4; });
  sim::CorrectionReport report;
  const Corrections found = sim::corrections_of(all, report);
  REQUIRE(found.size() == 1);
  CHECK(found[0].at(65536) == doctest::Approx(-65536 / 20.0));
  CHECK(found[0].at(1 << 17) == -6000);
  CHECK(found[0].at(1 << 20) == -6000);
  CHECK(report.sizes == 15);
  CHECK(report.at_floor == 4);  // 128 KiB to 1 MiB miss 6.6 us and more
  double left = 0;
  for (double bytes = 1 << 17; bytes <= 1 << 20; bytes *= 2) left += std::log((bytes / 1e4) / (6 + bytes / 2e4));
  CHECK(report.with_percent >= 100 * left / 15);
}

TEST_CASE("predictions and every engine take what a correction adds, on its nodes and cards alone") {
  const Folder folder;
  folder.write("cluster.json", kTwoNodes);
  folder.write("scenario.json", R"({"schema":"gccl/scenario/1","name":"s","cluster":"cluster.json","ranks":[4,8],
    "runs":[{"collective":"allreduce","bytes":[1024,4096,65536],"algorithms":["ring","recursive_doubling"],
             "protocol":"A","chunks":1,"channels":1},
            {"collective":"allreduce","bytes":[4096],"algorithms":["ring"],"protocol":"B","chunks":1,"channels":1}]})");
  Json set = Json::parse(kTwoProtocols);
  std::vector<const char*> engines{"model", "flow"};
#ifdef GCCL_TEST_SIMGRID
  engines.push_back("simgrid");
#endif
  for (const char* engine : engines) {
    CAPTURE(engine);
    folder.write("set.json", kTwoProtocols);
    const Json before = times(folder, engine);
    // 4 ranks, ring: -2, 4 and 10 us; others of A on 4 ranks and B: 7 us, but never less than no fixed cost at all.
    set["corrections"] = {
        {{"collective", "allreduce"}, {"nodes", 1}, {"cards_per_node", 4}, {"bytes", {1024}}, {"extra_us", {7}}},
        {{"collective", "allreduce"},
         {"nodes", 1},
         {"cards_per_node", 4},
         {"algorithm", "ring"},
         {"protocol", "A"},
         {"bytes", {1024, 4096, 7168}},
         {"extra_us", {-2, 4, 10}}},
        {{"collective", "allgather"}, {"nodes", 2}, {"cards_per_node", 4}, {"bytes", {1}}, {"extra_us", {50}}},
        {{"collective", "allreduce"},
         {"nodes", 2},
         {"cards_per_node", 4},
         {"algorithm", "ring"},
         {"protocol", "B"},
         {"bytes", {1}},
         {"extra_us", {-50}}}};
    const JsonSchema schema(Json::parse(read_text(kRoot / "libgccl/cluster/parameters.schema.json")));
    CHECK(schema.accepts(set));
    folder.write("set.json", set.dump());
    const Json after = times(folder, engine);
    REQUIRE(after.size() == 14);
    for (const auto& row : before.items()) {
      const std::string what = row.key();
      const Json& was = row.value();
      CAPTURE(what);
      const double extra = what == "ring 4 A 1024"                 ? -2
                           : what == "ring 4 A 4096"               ? 4
                           : what == "ring 4 A 65536"              ? 10
                           : what == "ring 8 B 4096"               ? -9
                           : what.find(" 4 ") != std::string::npos ? 7
                                                                   : 0;
      for (const int i : {0, 1})
        CHECK(after[what][i].get<double>() - was[i].get<double>() == doctest::Approx(extra).epsilon(1e-3));
    }
  }
}

TEST_CASE("corrections that say nothing clear are errors") {
  const Folder folder;
  folder.write("cluster.json", kTwoNodes);
  const auto error = [&](const std::string& corrections) {
    Json set = Json::parse(kTwoProtocols);
    set["corrections"] = Json::parse(corrections);
    folder.write("set.json", set.dump());
    const Ended e = run_gccl({"topology", "cluster.json"}, folder.path);
    CHECK(e.code == 2);
    return e.err;
  };
  const std::string start = R"([{"collective":"allreduce","nodes":1,"cards_per_node":4,)";
  CHECK(error(start + R"("bytes":[1,2],"extra_us":[1]}])")
            .find("/corrections/0/extra_us: found 1 values, expected one for each of the 2 \"bytes\"") !=
        std::string::npos);
  CHECK(error(start + R"("bytes":[2,2],"extra_us":[1,1]}])")
            .find("/corrections/0/bytes/1: found 2, expected more than the size before") != std::string::npos);
  CHECK(error(start + R"("algorithm":"rign","bytes":[1],"extra_us":[1]}])").find("did you mean \"ring\"?") !=
        std::string::npos);
  CHECK(error(start + R"("protocol":"C","bytes":[1],"extra_us":[1]}])")
            .find("/corrections/0/protocol: found \"C\", and the set has no such protocol; expected one of A, B") !=
        std::string::npos);
  CHECK(error(start + R"("protocol":"","bytes":[1],"extra_us":[1]}])")
            .find("found \"\", and the set has no such protocol") != std::string::npos);
  const std::string one = R"({"collective":"allreduce","nodes":1,"cards_per_node":4,"bytes":[1],"extra_us":[1]})";
  CHECK(error("[" + one + "," + one + "]").find("/corrections/1: an earlier correction is for the same operations") !=
        std::string::npos);
  CHECK(error(R"([{"collective":"allreduce","nodes":1,"bytes":[1],"extra_us":[1]}])").find("cards_per_node") !=
        std::string::npos);
}

#ifdef GCCL_TEST_NLOPT

TEST_CASE("gccl fit corrects what no parameter explains, and predicts the sizes between") {
  // A ring of four, 2 (n-1) steps of V/n, that takes a tenth longer from 4 KiB on and a quarter from 16 KiB on.
  const auto us = [](double bytes) {
    const double ring = 6 + 6 * (1.0 + bytes / 4 / 10e3);
    return ring * (bytes >= 16384 ? 1.25 : bytes >= 4096 ? 1.1 : 1.0);
  };
  const Folder folder;
  folder.write("cluster.json", kTwoNodes);
  folder.write("set.json", kTwoProtocols);
  std::string table = kColumns;
  for (Count bytes = 64; bytes <= 262144; bytes *= 2)
    table += fmt::format("box,1,4,all_reduce,ring,A,{},{:.6f},,,src,n\n", bytes, us(double(bytes)));
  folder.write("m.csv", table);
  const auto worst = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"fit",        "m.csv", "--cluster", "cluster.json", "-o",     "fitted.json",
                                   "--hold-out", "sizes", "--keep",    "links",        "--keep", "card/"};
    words.insert(words.end(), more.begin(), more.end());
    const Ended e = run_gccl(words, folder.path);
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    const Ended v = run_gccl(
        {"validate", "m.csv", "--cluster", "cluster.json", "--parameters", "fitted.json", "--json", "-"}, folder.path);
    REQUIRE(v.code == 0);
    return std::pair(e.out, Json::parse(v.out)["statistics"]["all"]["overall"]);
  };
  const auto [plain, without] = worst({"--no-corrections"});
  CHECK(plain.find("corrected by size") == std::string::npos);
  CHECK(!Json::parse(read_text(folder.path / "fitted.json")).contains("corrections"));
  const auto [text, with] = worst({});
  CHECK(text.find("1 of 1 curve corrected by size") != std::string::npos);
  const Json set = Json::parse(read_text(folder.path / "fitted.json"));
  REQUIRE(set["corrections"].size() == 1);
  CHECK(set["corrections"][0]["algorithm"] == "ring");
  CHECK(set["corrections"][0]["protocol"] == "A");
  CHECK(set["corrections"][0]["bytes"].size() == 7);  // every second of 13
  CHECK(without["mape_percent"].get<double>() > 5);
  CHECK(with["mape_percent"].get<double>() < 2.5);
}

TEST_CASE("gccl fit stays within what a cluster's description allows") {
  const Folder folder;
  const auto set = Json::parse(R"({"schema":"gccl/parameters/1","name":"plain",
    "card":{"overhead_ns":400,"combine_GBps":0,"copy_GBps":0},"eager_bytes":"1MiB",
    "links":{"card":{"bandwidth_GBps":16,"latency_ns":300},"across":{"bandwidth_GBps":12,"latency_ns":300}}})");
  folder.write("set.json", set.dump());
  folder.write("box.json", R"({"schema":"gccl/cluster/1","name":"box","parameters":"set.json",
    "nodes":[{"count":1,"cards":4,"inside":{"kind":"pcie_tree","cards_per_switch":1,"switches_per_root":2,"card_link":"card",
      "switch_link":"card","across_link":"across"}}]})");
  std::string table = kColumns;
  for (Count bytes = 64; bytes <= 1u << 26; bytes *= 4)  // as wide across as below
    table += fmt::format("box,1,4,all_reduce,ring,auto,{},{:.6f},,,src,n\n", bytes, 6 + 6 * (1 + double(bytes) / 8e4));
  folder.write("m.csv", table);
  const Ended e = run_gccl({"fit", "m.csv", "--cluster", "box.json", "-o", "fitted.json"}, folder.path);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  CHECK(run_gccl({"validate", "m.csv", "--cluster", "box.json", "--parameters", "fitted.json"}, folder.path).code == 0);
}

#endif
