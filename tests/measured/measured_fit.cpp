// `gccl fit` finds the parameters that measurements were made from.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "libgccl/cluster/read/parameters.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/fit/fit.hpp"
#include "tests/measured/table_text.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using Json = nlohmann::json;

namespace {

// A rank busy for o ns with each message, two links of l ns and B GB/s, and a fixed cost of c ns.
struct Truth {
  double o, l, B, c;
};

// 2 (n-1) steps of V/n: "Optimization of Collective Communication Operations in MPICH" (Thakur, Rabenseifner, Gropp),
// 4.5, with the latencies of two links and a launch. Short vectors in few chunks.
double ring_us(const Truth& t, int n, double bytes) {
  return (t.c + 2 * (n - 1) * (t.o + 2 * t.l + bytes / n / t.B)) / 1e3;
}

std::string table(const Truth& t, double relative_noise, bool outlier) {
  std::string text = kColumns;
  std::uint64_t i = 0;
  for (const int n : {2, 3, 4, 6, 8})
    for (Count bytes = 64; bytes <= 32768; bytes *= 2) {
      double us = ring_us(t, n, double(bytes)) * (1 + relative_noise * noise(++i));
      if (outlier && n == 4 && bytes == 2048) us *= 5;
      text += fmt::format("box,1,{},all_reduce,ring,auto,{},{:.6f},,,src,n\n", n, bytes, us);
    }
  return text;
}

std::string cluster(const std::string& parameters) {
  return R"({"schema":"gccl/cluster/1","name":"eight","parameters":)" + parameters +
         R"(,"nodes":[{"count":1,"cards":8,"inside":{"kind":"switch","link":"wire"}}]})";
}

const std::string kWrongSet = R"({"schema":"gccl/parameters/1","name":"guess",
  "card":{"overhead_ns":1000,"combine_GBps":0,"copy_GBps":0},"eager_bytes":"1MiB",
  "links":{"wire":{"bandwidth_GBps":7,"latency_ns":100}, "other":{"bandwidth_GBps":9,"latency_ns":70}},
  "protocols":{"plain":{"operation_ns":1000}}})";

}  // namespace

TEST_CASE("a set is written with what changed, its source, and on its base") {
  Parameters before;
  before.card = {.overhead_ns = 10, .receive_overhead_ns = 0, .combine_GBps = 100, .copy_GBps = 0};
  before.eager_bytes = 64;
  before.protocols = {{.name = "LL"}, {.name = "Simple"}};
  before.links["a"] = {{5, 50, Tier::other}, {5, 50, Tier::other}};
  before.links["b"] = {{6, 60, Tier::other}, {3, 30, Tier::other}};
  Parameters after = before;
  for (const sim::Adjustable& a : sim::adjustables_of(after))
    if (a.name() == "links/b/bandwidth_GBps" || a.name() == "protocols/LL/operation_ns") a.set(after, 12);
  CHECK(after.links["b"].reverse.bandwidth_GBps == 6);  // half of the way forward, as before
  const Json set = sim::parameter_set("fitted", "text", {{"base", "base-set"}}, before, after, "why");
  CHECK(set["base"] == "base-set");
  CHECK(!set.contains("card"));
  CHECK(set["links"] == Json({{"b",
                               {{"bandwidth_GBps", 12.0},
                                {"latency_ns", 60},
                                {"reverse_bandwidth_GBps", 6.0},
                                {"reverse_latency_ns", 30},
                                {"source", "why"}}}}));
  CHECK(set["protocols"].size() == 1);
  CHECK(set["protocols"]["LL"]["operation_ns"] == 12);
  // What a cluster has in itself stays as it stands.
  const Json own = {{"eager_bytes", "64"}, {"links", {{"a", {{"bandwidth_GBps", 5}, {"latency_ns", "50ns"}}}}}};
  const Json whole = sim::parameter_set("fitted", "text", own, before, after, "why");
  CHECK(!whole.contains("base"));
  CHECK(whole["links"].size() == 2);
  CHECK(whole["links"]["a"]["latency_ns"] == "50ns");
  CHECK(whole["eager_bytes"] == "64");
  const JsonSchema schema(Json::parse(read_text(kRoot / "libgccl/cluster/parameters.schema.json")));
  CHECK(schema.accepts(set));
  CHECK(schema.accepts(whole));
}

// What a fit that changes nothing reports of these rows.
sim::FitReport report_of(const std::vector<sim::Measurement>& rows, const std::string& cluster, sim::HoldOut hold_out) {
  const Folder folder;
  const auto file = folder.write("c.json", cluster);
  const json::Node node = json::Node::load(file);
  sim::FitProblem problem{&rows, file, node, read_parameters(node.at("parameters"))};
  std::vector<sim::SkippedRow> skipped;
  const sim::Minimise nothing = [](unsigned, const double*, const double*, double*, double (*)(const double*, void*),
                                   void*, int) { return 0.0; };
  const sim::FitReport report = sim::fit(problem, nothing, {.hold_out = hold_out, .corrections = false}, skipped);
  CHECK(skipped.empty());
  return report;
}

TEST_CASE("every second size of each curve is held out, also where the sizes of two are never the same") {
  std::vector<sim::Measurement> rows;
  for (Count bytes = 1024; bytes <= 1 << 20; bytes *= 4) {
    rows.push_back(measured_row(1, 4, bytes, 10 + double(bytes) / 1e4));
    rows.push_back(measured_row(1, 8, 2 * bytes, 20 + double(bytes) / 1e4));
  }
  const sim::FitReport report = report_of(rows, cluster(kWrongSet), sim::HoldOut::sizes);
  REQUIRE(report.used.size() == 2);
  REQUIRE(report.held_out.size() == 2);
  for (const auto& e : report.used) CHECK(e.after.points == 3);
  for (const auto& e : report.held_out) CHECK(e.after.points == 3);
}

TEST_CASE("what errors were is in all tables that of the set as it was given, with its corrections") {
  Json set = Json::parse(kWrongSet);
  for (const int cards : {4, 8})
    set["corrections"].push_back({{"collective", "allreduce"},
                                  {"nodes", 1},
                                  {"cards_per_node", cards},
                                  {"bytes", {1024, 1048576}},
                                  {"extra_us", {50, 50}},
                                  {"source", "made"}});
  std::vector<sim::Measurement> rows;
  for (Count bytes = 1024; bytes <= 1 << 20; bytes *= 4)
    for (const Rank cards : {4, 8}) rows.push_back(measured_row(1, cards, bytes, 10 + double(bytes) / 1e4));
  const sim::FitReport report = report_of(rows, cluster(set.dump()), sim::HoldOut::scales);
  REQUIRE(report.used.size() == 1);
  REQUIRE(report.held_out.size() == 1);
  REQUIRE(report.left_out.size() == 2);
  CHECK(report.left_out[0].before.mape == report.used[0].before.mape);
  CHECK(report.left_out[1].before.mape == report.held_out[0].before.mape);
  CHECK(report.used[0].before.mape > report.used[0].after.mape + 50);  // of 50 us more beside some 15
}

TEST_CASE("what is fitted does not rid what is held out of rows that do not follow it") {
  const std::string five = R"({"schema":"gccl/cluster/1","name":"five","parameters":)" + kWrongSet +
                           R"(,"nodes":[{"count":5,"cards":1,"nics":{"count":1,"bus":"wire","port":"wire"}}],
    "fabric":{"kind":"switch"}})";
  std::vector<sim::Measurement> rows;
  for (const Rank nodes : {2, 3, 4, 5})
    for (int k = 10; k <= 30; k += 2) {
      const bool slow = nodes == 5 && k >= 14 && k <= 20;
      rows.push_back(
          measured_row(nodes, 1, Count(1) << k, (20 + nodes + double(Count(1) << k) / 20e3) * (slow ? 3 : 1)));
    }
  CHECK(report_of(rows, five, sim::HoldOut::none).outliers == 4);
  const sim::FitReport report = report_of(rows, five, sim::HoldOut::scales);
  CHECK(report.outliers == 0);
  CHECK(report.held_out_outliers == 0);
  CHECK(report.all_held_out.after.points == 22);
}

#ifdef GCCL_TEST_NLOPT

TEST_CASE("gccl fit recovers the parameters that measurements were made from, noise and outliers aside") {
  const Truth truth{.o = 400, .l = 300, .B = 10, .c = 6000};
  for (const double relative_noise : {0.0, 0.03}) {
    CAPTURE(relative_noise);
    const Folder folder;
    folder.write("guess.json", kWrongSet);
    folder.write("eight.json", cluster("\"guess.json\""));
    folder.write("m.csv", table(truth, relative_noise, true));
    const Ended e = run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "fitted.json"}, folder.path);
    CAPTURE(e.out);
    REQUIRE(e.code == 0);
    CHECK(e.err == "");
    CHECK(e.out.find("1 outlier was not fitted") != std::string::npos);
    CHECK(e.out.find("links/other/latency_ns") != std::string::npos);  // undetermined
    const Json set = Json::parse(read_text(folder.path / "fitted.json"));
    CHECK(set["base"] == "guess.json");
    CHECK(set["name"] == "guess-fitted");
    const JsonSchema schema(Json::parse(read_text(kRoot / "libgccl/cluster/parameters.schema.json")));
    CHECK(schema.accepts(set));
    const double tolerance = relative_noise > 0 ? 0.08 : 0.02;
    const auto near = [&](double found, double true_value) { return std::abs(found / true_value - 1) <= tolerance; };
    const Json& wire = set["links"]["wire"];
    CHECK(near(wire["bandwidth_GBps"].get<double>(), truth.B));
    CHECK(near(set["protocols"]["plain"]["operation_ns"].get<double>(), truth.c));
    // Overheads and latencies cannot be separated by a ring; what a step takes is.
    const Json card = set.value("card", Json::object());
    const double step = card.value("overhead_ns", 1000.0) + card.value("receive_overhead_ns", 0.0) +
                        2 * wire["latency_ns"].get<double>();
    CHECK(near(step, truth.o + 2 * truth.l));
    CHECK(wire["source"].get<std::string>().find("m.csv") != std::string::npos);
    // gccl validate finds what it says of itself: scales that were not fitted are predicted as well.
    const Ended v = run_gccl(
        {"validate", "m.csv", "--cluster", "eight.json", "--parameters", "fitted.json", "--json", "-"}, folder.path);
    REQUIRE(v.code == 0);
    const Json overall = Json::parse(v.out)["statistics"]["without_outliers"]["overall"];
    CHECK(overall["points"] == 5 * 10 - 1);
    CHECK(overall["mape_percent"].get<double>() < (relative_noise > 0 ? 3 : 1));
  }
}

TEST_CASE("gccl fit leaves what is kept as it was, and fits the rest") {
  const Folder folder;
  folder.write("guess.json", kWrongSet);
  folder.write("eight.json", cluster("\"guess.json\""));
  folder.write("m.csv", table({.o = 400, .l = 300, .B = 10, .c = 6000}, 0, false));
  const auto fit = [&](std::vector<std::string> keep) {
    keep.insert(keep.begin(), {"fit", "m.csv", "--cluster", "eight.json", "-o", "-"});
    const Ended e = run_gccl(keep, folder.path);
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    return Json::parse(e.out);
  };
  CHECK(fit({})["links"].contains("wire"));
  const Json links = fit({"--keep", "links"}), all_but_one = fit({"--keep", "links", "--keep", "card/"});
  CHECK(!links.contains("links"));
  CHECK(links.contains("card"));
  CHECK(!all_but_one.contains("card"));
  CHECK(all_but_one["protocols"].contains("plain"));
  const Ended wrong =
      run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "out.json", "--keep", "link/"}, folder.path);
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("no parameter has \"link/\" in its name; there are protocols/plain/operation_ns") !=
        std::string::npos);
  const Ended all =
      run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "none.json", "--keep", "/"}, folder.path);
  CHECK(all.code == 2);
  CHECK(all.err.find("--keep: nothing is left to fit of protocols/plain/operation_ns") != std::string::npos);
  CHECK(!fs::exists(folder.path / "none.json"));
}

TEST_CASE("gccl fit says where a value ends at its limit") {
  const Folder folder;
  Json set = Json::parse(kWrongSet);
  set["links"]["wire"]["bandwidth_GBps"] = 2;  // and 10 GB/s are out of its reach
  folder.write("eight.json", cluster("\"guess.json\""));
  folder.write("guess.json", set.dump());
  folder.write("m.csv", table({.o = 400, .l = 300, .B = 10, .c = 6000}, 0, false));
  const Ended e = run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "fitted.json"}, folder.path);
  REQUIRE(e.code == 0);
  CHECK(e.out.find("links/wire/bandwidth_GBps        2     4  as far as it may") != std::string::npos);
}

TEST_CASE("gccl fit says why nothing is fitted of a set whose closed forms go by transports") {
  const Folder folder;
  folder.write("m.csv",
               "nodes,gpus_per_node,collective,bytes,time_us\n1,2,allreduce,1024,1\n1,2,allreduce,4096,2\n"
               "1,2,allreduce,16384,4\n1,2,allreduce,65536,8\n");
  const Ended e = run_gccl({"fit", "m.csv", "--cluster", "host", "-o", "fitted.json"}, folder.path);
  REQUIRE_MESSAGE(e.code == 0, e.err);
  CHECK_MESSAGE(e.out.find("No point depends on card/overhead_ns, ") != std::string::npos, e.out);
  CHECK(e.out.find("closed forms go by its \"transports\" and not by cards and links") != std::string::npos);
}

TEST_CASE("gccl fit writes nothing that a set may not hold") {
  const Folder folder;
  Json set = Json::parse(kWrongSet);
  set["card"]["overhead_ns"] = 900'000'000'000;
  set["links"]["wire"] = {{"bandwidth_GBps", 2e-6}, {"latency_ns", 1}, {"reverse_latency_ns", 999'999'999'999}};
  set["protocols"]["plain"] = {{"operation_ns", 999'999'999'999}, {"channel_GBps", 5e5}};
  folder.write("eight.json", cluster("\"guess.json\""));
  folder.write("guess.json", set.dump());
  folder.write("slow.csv", kColumns + "box,1,8,all_reduce,ring,auto,64,1e14,,,src,n\n");
  folder.write("fast.csv", kColumns + "box,1,8,all_reduce,ring,auto,1073741824,1e-9,,,src,n\n");
  for (const char* file : {"slow.csv", "fast.csv"}) {
    const Ended e = run_gccl({"fit", file, "--cluster", "eight.json", "-o", "fitted.json"}, folder.path);
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    const Ended v = run_gccl({"validate", file, "--cluster", "eight.json", "--parameters", "fitted.json"}, folder.path);
    CAPTURE(v.err);
    CHECK(v.code == 0);
  }
}

TEST_CASE("gccl fit: parameters that a cluster has in itself become a whole set") {
  const Folder folder;
  Json inside = Json::parse(kWrongSet);
  for (const char* key : {"schema", "name", "protocols"}) inside.erase(key);
  folder.write("eight.json", cluster(inside.dump()));
  folder.write("m.csv", table({.o = 400, .l = 300, .B = 10, .c = 6000}, 0, false));
  const Ended e = run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "-", "--hold-out", "sizes"}, folder.path);
  REQUIRE(e.code == 0);
  const Json set = Json::parse(e.out);
  CHECK(!set.contains("base"));
  CHECK(set["eager_bytes"] == "1MiB");
  CHECK(set["links"].size() == 2);
  CHECK(std::abs(set["protocols"]["default"]["operation_ns"].get<double>() / 6000 - 1) < 0.05);
}

TEST_CASE("gccl fit says which rows it has skipped and what is to be said of files, and the set how many there were") {
  const Folder folder;
  folder.write("guess.json", kWrongSet);
  folder.write("eight.json", cluster("\"guess.json\""));
  folder.write("m.csv", table({.o = 400, .l = 300, .B = 10, .c = 6000}, 0, false) +
                            "box,2,8,all_reduce,ring,auto,1024,30,,,src,n\n"      // on more nodes than there are
                            "box,1,2,all_reduce,ring,auto,65536,20,9.9,,src,n\n"  // 3.3 GB/s by its time
                            "box,1,2,scan,ring,auto,64,1,,,src,n\n");
  const std::string on_two = "on 2 nodes; the cluster has 1 (m.csv:52)\n";
  const Ended file = run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "fitted.json"}, folder.path);
  CAPTURE(file.out);
  REQUIRE(file.code == 0);
  CHECK(file.out.find("Skipped 2 rows:\n") != std::string::npos);
  CHECK(file.out.find(on_two) != std::string::npos);
  CHECK(file.out.find("(m.csv:54)") != std::string::npos);
  CHECK(file.out.find("m.csv:53: ") != std::string::npos);  // the remark
  CHECK(read_text(folder.path / "fitted.json").find(" cards), 2 rows skipped; ") != std::string::npos);
  const Ended piped = run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", "-"}, folder.path);
  REQUIRE(piped.code == 0);
  CHECK(Json::parse(piped.out)["name"] == "guess-fitted");
  CHECK(piped.err.find(on_two) != std::string::npos);
}

TEST_CASE("gccl fit says where what was not fitted is predicted worse than before, and the set what these errors are") {
  const auto fit = [&](const Truth& truth, double on_few, const std::string& output = "fitted.json") {
    const Folder folder;
    std::string text = kColumns;
    for (const int n : {2, 4, 6, 8})
      for (Count bytes = 64; bytes <= 32768; bytes *= 2)
        text += fmt::format("box,1,{},all_reduce,ring,auto,{},{:.6f},,,src,n\n", n, bytes,
                            ring_us(truth, n, double(bytes)) * (n <= 4 ? on_few : 1));
    folder.write("m.csv", text);
    folder.write("eight.json", cluster("\"guess.json\""));
    folder.write("guess.json", kWrongSet);
    const Ended e = run_gccl({"fit", "m.csv", "--cluster", "eight.json", "-o", output}, folder.path);
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    return output == "-" ? std::pair(e.err, e.out) : std::pair(e.out, read_text(folder.path / output));
  };
  const std::string errs_more = "On what was held out the fitted set errs more than the one it began with: by ";
  const Truth right_on_many{.o = 1000, .l = 100, .B = 7, .c = 1000};  // as in kWrongSet
  const auto [text, set] = fit(right_on_many, 2);
  CHECK(text.find(errs_more) != std::string::npos);
  CHECK(text.find("by a fit to the others worse than by the set that it began with") != std::string::npos);
  CHECK(set.find("; that of 20 points held out is ") != std::string::npos);
  CHECK(fit({.o = 400, .l = 300, .B = 10, .c = 6000}, 1).first.find(errs_more) == std::string::npos);
  // Where standard output holds the set, the text is on standard error.
  const auto [piped_text, piped_set] = fit(right_on_many, 2, "-");
  CHECK(piped_text == text);
  CHECK(Json::parse(piped_set)["card"] == Json::parse(set)["card"]);
}

TEST_CASE("gccl fit: wrong input is one line and exit code 2, and nothing is written") {
  const Folder folder;
  folder.write("guess.json", kWrongSet);
  folder.write("eight.json", cluster("\"guess.json\""));
  folder.write("m.csv", kColumns + "box,2,8,all_reduce,ring,auto,64,1,,,src,n\n");
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "fit");
    const Ended e = run_gccl(words, folder.path);
    CHECK(e.code == 2);
    return e.err;
  };
  CHECK(error({"m.csv", "--cluster", "eight.json", "-o", "out.json"}).find("of 1 measured row none can be compared") !=
        std::string::npos);
  CHECK(error({"m.csv", "--cluster", "eight.json"}).find("--output is required") != std::string::npos);
  CHECK(error({"m.csv", "--cluster", "eight.json", "-o", "guess.json"}).find("is read, and cannot be an output too") !=
        std::string::npos);
  CHECK(error({"m.csv", "--cluster", "eight.json", "-o", "out.json", "--hold-out", "size"})
            .find("did you mean \"sizes\"?") != std::string::npos);
  CHECK(!std::filesystem::exists(folder.path / "out.json"));
}

#endif
