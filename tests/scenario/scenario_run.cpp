// Scenarios: running in children, judging. Engines are stand-ins where a test is not about them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/report/table.hpp"
#include "sim/scenario/judge/row_text.hpp"
#include "sim/scenario/run_campaign.hpp"
#include "tests/support/has.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/scenario.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

namespace {

// Takes as many nanoseconds as the algorithm's name has letters, times the rank count of the first operation.
Outcome by_name(const Workload& w) {
  Outcome o;
  const SimulatedOperation& first = w.operations[0];
  o.time_ns = Nanos(first.algorithm->name.size() * first.ranks());
  o.begin_ns.assign(w.operations.size(), 0);
  o.end_ns.assign(w.operations.size(), o.time_ns);
  o.link_bytes.assign(w.cluster->links().size(), 0);
  o.messages = 1;
  return o;
}
Outcome with_wrong(const Workload& w) {
  Outcome o = by_name(w);
  o.wrong = 3;
  o.first_wrong = "rank 1 element 2";
  return o;
}
// As by_name, but the ring does not complete.
Outcome without_ring(const Workload& w) {
  Outcome o = by_name(w);
  if (w.operations[0].algorithm->name == "ring") o.faults.emplace();
  return o;
}
Outcome crash(const Workload&) {
  raise(SIGSEGV);
  return {};
}
Outcome stuck(const Workload&) { throw std::runtime_error("rank 3 waits for rank 4"); }
Outcome out_of_memory(const Workload&) { throw std::bad_alloc(); }
Outcome endless(const Workload&) {
  for (;;) pause();
}

const Engines kByName{by_name, by_name};

Json result_of(const Campaign& plan, const Engines& engines = kByName, unsigned jobs = 3) {
  return run_campaign(plan, engines, {.jobs = jobs, .progress = {}}).document;
}

}  // namespace

TEST_CASE("estimated messages are those of the model engine") {
  const Campaign plan = plan_of(
      {{{"collective", "allreduce"}, {"bytes", 6400}, {"algorithms", {"ring", "recursive_doubling"}}, {"chunks", 3}},
       {{"collective", "gather"}, {"bytes", 6400}, {"algorithms", "linear"}},
       {{"collective", "scatter"}, {"bytes", 6400}, {"algorithms", "linear"}}});
  const Json result = result_of(plan, {run_model, run_model});
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    CAPTURE(describe(*plan.scenario, row_head(plan, plan.points[i])));
    CHECK(plan.points[i].messages == doctest::Approx(result["runs"][i]["messages"].get<double>()).epsilon(0.5));
  }
  CHECK(plan.points[0].messages == result["runs"][0]["messages"].get<double>());
}

TEST_CASE("results are in the plan's order and fit their schema") {
  const test::JsonSchema schema(read_json(kRoot / "sim/scenario/result.schema.json"));
  const Campaign plan =
      plan_of({{{"collective", "allreduce"},
                {"bytes", {8, "1KiB", "64KiB"}},
                {"algorithms", {"all", "auto"}},
                {"payload", "verify"},
                {"expect", {{"correct", true}}}},
               {{"collective", "barrier"}},
               {{"concurrent",
                 {{{{"collective", "reduce_scatter"}, {"bytes", 640}}, {{"collective", "allgather"}, {"bytes", 640}}},
                  {{{"collective", "alltoallv"}, {"bytes", 640}, {"counts", {{"distribution", "random"}}}}}}}}});
  const Json one = result_of(plan, {run_model, run_model}, 1);
  Json three = result_of(plan, {run_model, run_model}, 3);
  CHECK(schema.accepts(one));
  CHECK(one["ok"] == true);
  REQUIRE(one["runs"].size() == plan.points.size());
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const Json& row = one["runs"][i];
    CHECK(row["index"] == i);
    if (row["collective"] != "sequence") CHECK(row["algorithm"] == plan.points[i].part().algorithm());
    for (const char* measured : {"wall_s", "peak_rss_MB"}) three["runs"][i][measured] = row[measured];
  }
  CHECK(three == one);
}

TEST_CASE("collectives with blocks of different lengths are right with every distribution of them") {
  for (const char* kind : {"alltoallv", "allgatherv", "reduce_scatterv"})
    for (const char* distribution : {"uniform", "random", "skewed"})
      for (const bool in_place : {false, true}) {
        if (in_place && kind == std::string("alltoallv") && distribution == std::string("skewed")) continue;
        CAPTURE(kind);
        CAPTURE(distribution);
        CAPTURE(in_place);
        const Json result = result_of(plan_of({{{"collective", kind},
                                                {"bytes", {8, 6400}},
                                                {"algorithms", {"all", "auto"}},
                                                {"in_place", in_place},
                                                {"counts", {{"distribution", distribution}}},
                                                {"payload", "verify"},
                                                {"expect", {{"correct", true}}}}}));
        CHECK(result["ok"] == true);
        CHECK(result["runs"].size() == 4);
      }
}

TEST_CASE("bandwidths follow from time and bytes") {
  const Json row = result_of(plan_of(with(kRing, {{"bytes", 6400}, {"groups", {{"size", 4}}}})))["runs"][0];
  CHECK(row["time_us"] == doctest::Approx(0.016));  // "ring" on 4 ranks
  CHECK(row["algbw_GBps"] == doctest::Approx(400));
  CHECK(row["busbw_GBps"] == doctest::Approx(600));
  CHECK(row["ranks"] == 4);
  CHECK(row["groups"] == 2);
  CHECK(row["world_ranks"] == 8);
}

TEST_CASE("without elements every prediction is the time: none, or that of a protocol's launch") {
  Json runs = Json::array();
  for (const char* kind : {"allreduce", "allgather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter",
                           "alltoall", "alltoallv", "sendrecv", "allgatherv", "reduce_scatterv"})
    runs.push_back({{"collective", kind}, {"bytes", 0}, {"algorithms", {"all", "auto"}}, {"in_place", true}});
  // No protocols, and NCCL's, whose LL takes 6.6 us before the first message.
  for (const auto& fixed : {std::pair("ethernet-cpu", 0.0), std::pair("pcie-box", 6.6)}) {
    const std::string cluster = fixed.first;
    const double us = fixed.second;
    const Json on = {{"cluster", "../topologies/" + cluster + ".json"}, {"ranks", 8}};
    const Json result = result_of(plan_of(runs, on), {run_model, run_model});
    CHECK(result["runs"].size() > 40);
    for (const Json& row : result["runs"]) {
      CAPTURE(cluster + " " + row["collective"].get<std::string>() + " " + row["algorithm"].get<std::string>());
      CHECK(row["time_us"] == us);
      CHECK(row["predicted_us"] == us);
    }
  }
}

TEST_CASE("mean utilisation counts the links that carried something") {
  // Two of eight cards: each link they use carries as much as the other, so mean and busiest are equal.
  const Json row =
      result_of(plan_of(with(kRing, {{"bytes", 6400}}), {{"ranks", 2}}), {run_model, run_model})["runs"][0];
  bool some = false;
  for (const Json& tier : row["tiers"]) {
    if (tier["bytes"] == 0) continue;
    some = true;
    CHECK(tier["links"].get<int>() > 4);
    CHECK(tier["mean_utilisation"].get<double>() > 0.9 * tier["busiest_utilisation"].get<double>());
  }
  CHECK(some);
}

TEST_CASE("the fastest is marked, and the choice's regret reported") {
  const Json result =
      result_of(plan_of(with(kRing, {{"algorithms", {"swing", "ring", "recursive_doubling", "auto"}}})));
  std::string fastest, chosen;
  for (const Json& row : result["runs"]) {
    if (row["fastest"]) fastest += row["algorithm"];
    if (row["auto"]) chosen += row["algorithm"];
  }
  CHECK(fastest == "ring");  // four letters
  REQUIRE(result["choices"].size() == 1);
  const Json& c = result["choices"][0];
  CHECK(c["chosen"] == chosen);
  CHECK(c["fastest"] == "ring");
  CHECK(c["regret_percent"].get<double>() == doctest::Approx((double(chosen.size()) / 4 - 1) * 100));
  CHECK(result_tables(result, 100).find("* the fastest   @ chosen by \"auto\"\n") != std::string::npos);
  const std::string unchosen = result_tables(result_of(plan_of(with(kRing, {{"algorithms", {"swing", "ring"}}}))), 100);
  CHECK(unchosen.find("* the fastest\n") != std::string::npos);  // where nothing was chosen
}

TEST_CASE("what did not complete is no rival, however soon it ended") {
  const auto holds = [](const Json& expect) {
    const Json result = result_of(plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}, {"expect", expect}})),
                                  {without_ring, without_ring});
    CHECK(result["runs"][0]["time_us"] < result["runs"][1]["time_us"]);
    CHECK(result["runs"][0]["fastest"] == false);
    CHECK(result["runs"][1]["fastest"] == true);
    const std::string text = result_tables(result, 200);
    CHECK(has(text, "failed"));
    CHECK(has(text, "1 of 2 points did not complete"));
    return result["ok"].get<bool>();
  };
  CHECK(holds({{"fastest", "swing"}}));
  CHECK_FALSE(holds({{"fastest", "ring"}}));
  CHECK(holds({{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "best"}, {"percent", 0}}}}));
  CHECK_FALSE(holds({{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "ring"}, {"percent", 1e6}}}}));
}

TEST_CASE("sizes that read alike have lines of their own in the table") {
  const Json result = result_of(plan_of(with(kRing, {{"bytes", {64, 1 << 20, (1 << 20) + 4}}})));
  const std::string text = result_tables(result, 100);
  CAPTURE(text);
  for (const char* line : {"\n  64 B ", "\n  1048576 B ", "\n  1048580 B "})
    CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("each kind of expectation holds and breaks") {
  // ring takes 32 ns, swing 40 ns, recursive_doubling 144 ns.
  const std::tuple<Json, bool, std::string> kCases[] = {
      {{{"max_time_us", 0.144}}, true, "0.144 us for recursive_doubling at 64 B (model); the worst of 3 results"},
      {{{"max_time_us", "143ns"}},
       false,
       "0.144 us for recursive_doubling at 64 B (model); the worst of 3 results, 1 of which breaks it"},
      {{{"max_time_us", "40ns"}, {"algorithm", "swing"}}, true, "0.04 us for swing at 64 B (model)"},
      {{{"min_time_us", "32ns"}}, true, "0.032 us for ring at 64 B (model); the worst of 3 results"},
      {{{"min_time_us", "33ns"}},
       false,
       "0.032 us for ring at 64 B (model); the worst of 3 results, 1 of which breaks it"},
      {{{"min_busbw_GBps", 3.5}, {"algorithm", "ring"}}, true, "3.5 GB/s for ring at 64 B (model)"},
      {{{"min_busbw_GBps", 3.5}},
       false,
       "0.777778 GB/s for recursive_doubling at 64 B (model); the worst of 3 results, 2 of which break it"},
      {{{"fastest", "ring"}}, true, "0.032 us for ring at 64 B (model)"},
      {{{"fastest", "swing"}}, false, "0.032 us for ring at 64 B (model), 0.04 us for swing"},
      {{{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "best"}, {"percent", 25}}}},
       true,
       "swing at 64 B (model) takes 25 % longer than ring (0.04 us, 0.032 us)"},
      {{{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "ring"}, {"percent", 24}}}},
       false,
       "swing at 64 B (model) takes 25 % longer than ring (0.04 us, 0.032 us)"},
      {{{"algorithm", "ring"}, {"within_percent_of", {{"algorithm", "swing"}, {"percent", 0}}}},
       true,
       "ring at 64 B (model) takes 20 % less than swing (0.032 us, 0.04 us)"},
      {{{"algorithm", "ring"}, {"within_percent_of", {{"algorithm", "best"}, {"percent", 0}}}},
       true,
       "ring at 64 B (model) is the fastest"},
  };
  for (const auto& [expect, holds, found] : kCases) {
    const std::string stated = expect.dump();  // a structured binding cannot be captured
    CAPTURE(stated);
    const Json result =
        result_of(plan_of(with(kRing, {{"algorithms", {"recursive_doubling", "ring", "swing"}}, {"expect", expect}})));
    CHECK(result["ok"] == holds);
    REQUIRE(result["expectations"].size() == 1);
    CHECK(result["expectations"][0]["ok"] == holds);
    CHECK(result["expectations"][0]["found"] == found);
  }
  const Campaign checked = plan_of(with(kRing, {{"payload", "verify"}, {"expect", {{"correct", true}}}}));
  CHECK(result_of(checked)["ok"] == true);
  const Json wrong = result_of(checked, {with_wrong, with_wrong});
  CHECK(wrong["ok"] == false);
  CHECK(wrong["expectations"][0]["found"] == "3 wrong elements for ring at 64 B (model)");
  CHECK(wrong["runs"][0]["first_wrong"] == "rank 1 element 2");
}

TEST_CASE("an expectation names the cluster and the ranks where there are several") {
  const Json result = result_of(plan_of(with(kRing, {{"expect", {{"max_time_us", "15ns"}}}}), {{"ranks", {2, 4}}}));
  CHECK(result["expectations"][0]["found"] ==
        "0.016 us for ring at 64 B, 4 ranks (model); the worst of 2 results, 1 of which breaks it");
}

TEST_CASE("a run is held against another run of the scenario, point by point") {
  // A ring on 8 ranks takes 32 ns, on groups of 4 it takes 16 ns.
  const Json healthy = {{"label", "healthy"},
                        {"collective", "allreduce"},
                        {"bytes", {64, 128}},
                        {"algorithms", {"ring", "swing"}},
                        {"groups", {{"size", 4}}}};
  const auto judged = [&](double percent) {
    Json other = healthy;
    other["label"] = "one NIC down";
    other.erase("groups");
    other["expect"] = {{"within_percent_of", {{"run", "healthy"}, {"percent", percent}}}};
    return result_of(plan_of(Json::array({other, healthy})));  // a label may come later
  };
  const Json held = judged(100), broken = judged(99);
  CHECK(held["ok"] == true);
  CHECK(held["expectations"][0]["text"] == "one NIC down: within 100 % of \"healthy\"");
  CHECK(held["expectations"][0]["found"] ==
        "ring at 64 B (model) takes 100 % longer than \"healthy\" (0.032 us, 0.016 us); the worst of 4 results");
  CHECK(broken["ok"] == false);
  CHECK(broken["expectations"][0]["found"] ==
        "ring at 64 B (model) takes 100 % longer than \"healthy\" (0.032 us, "
        "0.016 us); the worst of 4 results, 4 of which break it");
  // Runs of several collectives have one time each.
  const Json whole = {{"label", "all"}, {"sequence", {{{"collective", "barrier"}}}}};
  Json part = whole;
  part["label"] = "again";
  part["expect"] = {{"within_percent_of", {{"run", "all"}, {"percent", 0}}}};
  const Json sequence = result_of(plan_of(Json::array({whole, part})));
  CHECK(sequence["ok"] == true);
  CHECK(sequence["expectations"][0]["found"].get<std::string>().starts_with("the whole (model) is as fast as \"all\""));
}

TEST_CASE("a run is held against a stored result, and a point that it lacks is named before anything runs") {
  const Folder folder;
  const std::filesystem::path file = folder.path / "baseline.json";
  const auto expecting = [&](double percent, const Json& more = Json::object()) {
    return with(
        with(kRing, {{"label", "x"},
                     {"bytes", {64, 128}},
                     {"algorithms", {"ring", "swing"}},
                     {"expect", {{"within_percent_of", {{"result", file.string()}, {"percent", percent}}}}}})[0],
        more);
  };
  Json stored = result_of(plan_of(with(expecting(0)[0], {{"expect", {{"max_time_us", 1}}}})));
  const auto store = [&] { std::ofstream(file) << stored.dump(); };
  store();
  CHECK(result_of(plan_of(expecting(0)))["ok"] == true);
  stored["runs"][1]["time_us"] = stored["runs"][1]["time_us"].get<double>() / 1.06;
  store();
  CHECK(result_of(plan_of(expecting(6.1)))["ok"] == true);
  const Json broken = result_of(plan_of(expecting(5)));
  CHECK(broken["ok"] == false);
  CHECK(broken["expectations"][0]["text"] == "x: within 5 % of " + file.string());
  const std::string found = broken["expectations"][0]["found"];
  CHECK(found.starts_with("swing at 64 B (model) takes 6 % longer than "));
  CHECK(found.ends_with("; the worst of 4 results, 1 of which breaks it"));

  const auto complaint = [](const Json& runs) {
    const std::string text = refusal(runs);
    const std::size_t at = text.find(": ");
    return at == text.npos ? text : text.substr(at + 2);
  };
  const std::string at = "/runs/0/expect/within_percent_of/result: " + file.string() + " has no result for allreduce ";
  CHECK(
      complaint(expecting(5, {{"bytes", {64, 256}}})) ==
      at + "ring, 256 B, 8 ranks of pcie-box (model); the nearest has bytes 64 instead of 256, count 16 instead of 64");
  CHECK(complaint(expecting(5, {{"chunks", 2}})) ==
        at + "ring, 64 B, 8 ranks of pcie-box (model); the nearest has chunks 1 instead of 2");
  CHECK(complaint(expecting(5, {{"label", "y"}})).ends_with("the nearest has label \"x\" instead of \"y\""));
  // A point may stand there twice with one time, and one that is not asked for with several.
  stored["runs"].push_back(stored["runs"][1]);
  store();
  CHECK(result_of(plan_of(expecting(6.1)))["ok"] == true);
  stored["runs"][4]["time_us"] = 1e9;
  store();
  const std::string twice = complaint(expecting(6.1));
  CHECK_MESSAGE(twice.starts_with("/runs/0/expect/within_percent_of/result: " + file.string() +
                                  " has several results for allreduce swing, 64 B, 8 ranks of pcie-box (model): "),
                twice);
  CHECK_MESSAGE(twice.find(" us at /runs/1 and 1000000000.0 us at /runs/4; expected one") != std::string::npos, twice);
  CHECK(complaint(expecting(6.1, {{"algorithms", "ring"}})) == "accepted");
  stored["runs"] = Json::array();
  store();
  CHECK(complaint(expecting(5)) == at + "ring, 64 B, 8 ranks of pcie-box (model)");
  stored["schema"] = "gccl/scenario/1";
  store();
  CHECK(complaint(expecting(5)) == "/schema: found \"gccl/scenario/1\", expected \"gccl/result/1\"");
  stored["schema"] = "gccl/result/1";
  stored["runs"] = {{{"time_us", "soon"}}};
  store();
  CHECK(complaint(expecting(5)).starts_with("/runs/0/time_us: found \"soon\", expected a number"));
  std::filesystem::remove(file);
  CHECK(complaint(expecting(5)).starts_with("/runs/0/expect/within_percent_of/result: there is no file "));
}

TEST_CASE("runs that are done several times are compared with those that are done as often") {
  const auto within = [](Json there) {
    there["percent"] = 0;
    return Json{{"within_percent_of", there}};
  };
  Json runs = with(kRing, {{"label", "ten"}, {"repeats", 10}});
  runs.push_back(with(kRing, {{"label", "one"}, {"expect", within({{"run", "ten"}})}})[0]);
  CHECK(refusal(runs, Json::object())
            .ends_with("/runs/1/expect/within_percent_of/run: found a run that is done 10 times, expected one that is "
                       "done once as here"));
  runs[1]["repeats"] = 10;
  CHECK(result_of(plan_of(runs))["ok"] == true);
  const Folder folder;
  const std::string file = folder.write("ten.json", result_of(plan_of(with(kRing, {{"repeats", 10}}))).dump()).string();
  const Json expect = within({{"result", file}});
  CHECK(result_of(plan_of(with(kRing, {{"repeats", 10}, {"expect", expect}})))["ok"] == true);
  CHECK(has(refusal(with(kRing, {{"expect", expect}})), "; the nearest has repeats 10 instead of 1"));
}

TEST_CASE("a limit that is reached exactly holds, whatever rounding makes of it") {
  // 51.35 is 30 % more than 39.5, and (51.35 / 39.5 - 1) * 100 is 30.000000000000004.
  const auto took = [](Nanos ns) {
    static Nanos longer;
    longer = ns;
    const auto play = [](const Workload& w) {
      Outcome o = by_name(w);
      o.time_ns = w.operations[0].algorithm->name == "ring" ? 39500 : longer;
      return o;
    };
    const Json expect = {{"algorithm", "swing"}, {"within_percent_of", {{"algorithm", "ring"}, {"percent", 30}}}};
    return result_of(plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}, {"expect", expect}})), {play, play})["ok"];
  };
  CHECK(took(51350) == true);
  CHECK(took(51351) == false);
}

TEST_CASE("a stored result that says shares and lanes is a baseline as one that says chunks and channels") {
  const Folder folder;
  const std::filesystem::path file = folder.path / "earlier.json";
  const Json run = with(kRing, {{"bytes", {64, 128}}, {"chunks", 4}, {"channels", 2}})[0];
  const Json now = result_of(plan_of(Json::array({run})));
  Json earlier = now;
  for (Json& row : earlier["runs"]) {
    REQUIRE(row["chunks"] == 4);
    REQUIRE(row["channels"] == 2);
    row["shares"] = row["chunks"], row["lanes"] = row["channels"];
    row.erase("chunks"), row.erase("channels");
  }
  const auto held_against = [&](const Json& stored, int chunks, int channels) {
    std::ofstream(file) << stored.dump();
    return with(run, {{"chunks", chunks},
                      {"channels", channels},
                      {"expect", {{"within_percent_of", {{"result", file.string()}, {"percent", 0}}}}}});
  };
  CHECK(result_of(plan_of(held_against(earlier, 4, 2)))["ok"] == true);
  // How the calls are cut up counts, in the words of today.
  for (const Json& stored : {now, earlier}) {
    const std::string why = refusal(held_against(stored, 8, 1));
    CHECK_MESSAGE(why.ends_with("the nearest has chunks 4 instead of 8, channels 2 instead of 1"), why);
  }
  for (Json& row : earlier["runs"]) row["time_us"] = row["time_us"].get<double>() / 2;
  CHECK(result_of(plan_of(held_against(earlier, 4, 2)))["ok"] == false);
}

TEST_CASE("a stated protocol and a planner are part of what a stored result must have") {
  const Folder folder;
  const Engines kModel{.model = run_model, .simgrid = run_model};
  Json cluster = Json::parse(std::ifstream(kRoot / "topologies/pcie-box.json"));
  cluster["parameters"] = "p.json";
  const Json protocols = {{"LL", {{"inside", {{"efficiency", 0.5}}}}},
                          {"Simple", {{"operation_ns", 5000}, {"inside", {{"latency_ns", 2000}}}}}};
  folder.write("p.json", Json{{"schema", "gccl/parameters/1"},
                              {"name", "p"},
                              {"base", (kRoot / "cost-models/pcie-gpu.json").string()},
                              {"protocols", protocols}}
                             .dump());
  const Json more = {{"cluster", folder.write("c.json", cluster.dump()).string()}};
  const auto by = [](const Json& what, const Json& expect = {}) {
    Json run = {{"collective", "allreduce"}, {"bytes", 4096}, {"algorithms", "ring"}};
    run.update(what);
    if (!expect.is_null()) run["expect"] = expect;
    return run;
  };
  const Json ll = {{"protocol", "LL"}}, simple = {{"protocol", "Simple"}};
  const auto hold = [&](const Json& stored, const Json& run) {
    const Json expect = {
        {"within_percent_of", {{"result", folder.write("r.json", stored.dump()).string()}, {"percent", 0}}}};
    return result_of(plan_of(Json::array({by(run, expect)}), more), kModel)["ok"] == true;
  };
  const Json both = result_of(plan_of(Json::array({by(ll), by(simple)}), more), kModel);
  CHECK(both["runs"][0]["time_us"] != both["runs"][1]["time_us"]);
  CHECK(both["runs"][0]["protocol_planned"] == false);
  CHECK(hold(both, ll));
  CHECK(hold(both, simple));
  CHECK(hold(both, Json::object()));  // the planner's own
  const Json one = result_of(plan_of(Json::array({by(ll)}), more), kModel);
  CHECK_THROWS_WITH_AS(hold(one, simple), doctest::Contains("the nearest has protocol \"LL\" instead of \"Simple\""),
                       json::InputError);
  const Json automatic = {{"algorithms", "auto"}, {"planner", "openmpi"}};
  CHECK_THROWS_WITH_AS(hold(result_of(plan_of(Json::array({by({{"algorithms", "auto"}})}), more), kModel), automatic),
                       doctest::Contains("planner none instead of \"openmpi\""), json::InputError);
  // Without elements a call's own cost is left.
  const Json empty =
      result_of(plan_of(Json::array({by({{"protocol", "Simple"}, {"bytes", 0}})}), more), kModel)["runs"][0];
  CHECK(empty["time_us"] == 5.0);
  CHECK(empty["predicted_us"] == 5.0);
}

TEST_CASE("the automatic choice is held against the automatic choice where it was another one") {
  const Folder folder;
  const Json run = {{"collective", "allreduce"}, {"bytes", 64}};
  Json stored = result_of(plan_of(Json::array({run})));
  stored["runs"][0]["algorithm"] = "another";
  const std::filesystem::path file = folder.write("auto.json", stored.dump());
  const Json expect = {{"within_percent_of", {{"result", file.string()}, {"percent", 0}}}};
  const Json result = result_of(plan_of(with(run, {{"expect", expect}})));
  CHECK(result["ok"] == true);
  CHECK(result["expectations"][0]["found"].get<std::string>().find(", where auto chose another (") !=
        std::string::npos);
}

TEST_CASE("a job that crashes, throws or runs out of memory is named") {
  const Campaign plan = plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}}));
  const auto failure = [&](Outcome (*engine)(const Workload&)) -> std::string {
    try {
      result_of(plan, {engine, engine});
    } catch (const JobFailed& e) {
      return e.what();
    }
    return "none";
  };
  CHECK(failure(crash).find("allreduce ") == 0);
  CHECK(failure(crash).find("(model): ended by signal 11 ") != std::string::npos);
  CHECK(failure(stuck).ends_with("(model): rank 3 waits for rank 4"));
  CHECK(failure(out_of_memory).ends_with("(model): out of memory"));
}

TEST_CASE("a stopped pool leaves no child") {
  static StopFlag stop{false};
  stop = false;
  signal(SIGALRM, [](int) { stop = true; });
  alarm(1);
  const Campaign plan = plan_of(with(kRing, {{"algorithms", {"ring", "swing"}}}));
  CHECK_THROWS_AS(run_campaign(plan, {endless, endless}, {.jobs = 2, .progress = {}, .stop = &stop}), Interrupted);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no child left, not even a dead one
}

TEST_CASE("where somebody takes failed jobs the others go on") {
  std::vector<std::size_t> failed;
  const auto results = run_pool({0, 1, 2},
                                [](std::size_t j) {
                                  if (j == 1) raise(SIGKILL);
                                  return std::to_string(j);
                                },
                                {.children = 2, .finished = {}, .failed = [&](const JobFailed& e) {
                                   failed.push_back(e.job);
                                   CHECK(std::string(e.what()).find("signal 9") != std::string::npos);
                                 }});
  CHECK(results == std::vector<std::string>{"0", "", "2"});
  CHECK(failed == std::vector<std::size_t>{1});
}

TEST_CASE("jobs run in the order asked for and answer in theirs, whatever they send") {
  const std::string large(3 << 20, 'x');
  const auto results = run_pool({2, 0, 1},
                                [&](std::size_t j) {
                                  return j == 1 ? large : j == 2 ? std::string() : std::string("e\0r", 3);
                                },
                                {.children = 2, .finished = {}});
  CHECK(results == std::vector<std::string>{std::string("e\0r", 3), large, ""});
  CHECK(run_pool({}, [](std::size_t) { return std::string(); }, {.children = 1, .finished = {}}).empty());
}
