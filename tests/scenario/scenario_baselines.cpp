// Results that were stored, as what a run is held against.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/scenario/stand_ins.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/has.hpp"

using namespace gccl;
using namespace gccl::sim;
using namespace gccl::test;

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
  CHECK(complaint(expecting(5)) == file.string() + ": /schema: found \"gccl/scenario/1\", expected \"gccl/result/1\"");
  stored["schema"] = "gccl/result/1";
  stored["runs"] = {{{"time_us", "soon"}}};
  store();
  CHECK(complaint(expecting(5)).starts_with(file.string() + ": /runs/0/time_us: found \"soon\", expected a number"));
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
    return result_of(plan_of(Json::array({by(run, expect)}), more), kSimulated)["ok"] == true;
  };
  const Json both = result_of(plan_of(Json::array({by(ll), by(simple)}), more), kSimulated);
  CHECK(both["runs"][0]["time_us"] != both["runs"][1]["time_us"]);
  CHECK(both["runs"][0]["protocol_planned"] == false);
  CHECK(hold(both, ll));
  CHECK(hold(both, simple));
  CHECK(hold(both, Json::object()));  // the planner's own
  const Json one = result_of(plan_of(Json::array({by(ll)}), more), kSimulated);
  CHECK_THROWS_WITH_AS(hold(one, simple), doctest::Contains("the nearest has protocol \"LL\" instead of \"Simple\""),
                       json::InputError);
  const Json automatic = {{"algorithms", "auto"}, {"planner", "openmpi"}};
  CHECK_THROWS_WITH_AS(
      hold(result_of(plan_of(Json::array({by({{"algorithms", "auto"}})}), more), kSimulated), automatic),
      doctest::Contains("planner none instead of \"openmpi\""), json::InputError);
  // Without elements a call's own cost is left.
  const Json empty =
      result_of(plan_of(Json::array({by({{"protocol", "Simple"}, {"bytes", 0}})}), more), kSimulated)["runs"][0];
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
