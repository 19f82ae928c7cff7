// The sentences of a result, against rows whose times are stated here; and the rows as CSV.
#include "sim/report/findings.hpp"

#include <doctest/doctest.h>

#include <set>

#include "sim/report/csv.hpp"
#include "sim/report/table.hpp"
#include "tests/support/has.hpp"

using namespace gccl::sim;
using namespace gccl::test;
using nlohmann::json;

namespace {

json row(const std::string& algorithm, std::uint64_t bytes, double time_us, double busy = 0.5) {
  return {{"cluster", "c"},
          {"label", ""},
          {"collective", "allreduce"},
          {"algorithm", algorithm},
          {"engine", "model"},
          {"ranks", 8},
          {"bytes", bytes},
          {"dtype", "f32"},
          {"chunks", 1},
          {"channels", 1},
          {"time_us", time_us},
          {"busbw_GBps", double(bytes) / time_us / 1e3},
          {"predicted_us", time_us},
          {"auto", false},
          {"tiers",
           {{{"tier", "card"}, {"busiest_utilisation", busy / 2}}, {{"tier", "nic"}, {"busiest_utilisation", busy}}}}};
}

json result(std::initializer_list<json> rows) { return {{"runs", json(rows)}}; }

std::string headline(std::initializer_list<json> rows) { return findings(result(rows)).at(0).at("headline"); }

}  // namespace

TEST_CASE("the headline says which algorithm to use up to which size") {
  CHECK(headline({row("a", 1024, 1), row("b", 1024, 2), row("a", 2048, 3), row("b", 2048, 2), row("a", 4096, 9),
                  row("b", 4096, 4)})
            .starts_with("use a to 1 KiB, b above: 1.02 GB/s bus bandwidth at 4 KiB (4 us); "));
  CHECK(headline({row("a", 1024, 1), row("b", 1024, 2), row("a", 2048, 1), row("b", 2048, 2)})
            .starts_with("use a at every size: "));
  CHECK(headline({row("a", 1024, 10), row("b", 1024, 12)}).starts_with("use a (b takes 20 % longer): "));
  CHECK(headline({row("a", 1024, 10), row("b", 1024, 10)}).starts_with("use a or b: "));
  CHECK(headline({row("a", 1024, 10), row("a", 2048, 10)}).starts_with("a: "));
  // A lead of less than half a percent changes no recommendation.
  CHECK(headline({row("a", 1024, 100), row("b", 1024, 200), row("a", 2048, 100.4), row("b", 2048, 100),
                  row("a", 4096, 100), row("b", 4096, 200)})
            .starts_with("use a at every size: "));
  json many = json::array();
  for (int i = 0; i < 9; ++i)
    for (const char* name : {"a", "b"}) many.push_back(row(name, 1024u << i, (*name == 'a') == (i % 2 == 0) ? 1 : 2));
  CHECK(findings({{"runs", many}})[0]["headline"].get<std::string>().starts_with(
      "the fastest changes 8 times, most often it is a; use a at the largest size: "));
}

TEST_CASE("the headline says what the busiest link means") {
  const std::uint64_t big = 64 << 20;
  CHECK(
      headline({row("a", big, 100, 0.97)}).ends_with("the busiest nic link is 97 % busy: its bandwidth is the limit."));
  CHECK(
      has(headline({row("a", big, 100, 0.7)}), "the busiest nic link is 70 % busy: most of the time is its bandwidth"));
  CHECK(
      headline({row("a", big, 100, 0.44)})
          .ends_with("no link is more than 44 % busy (the busiest is a nic link): latency or missing pipelining is the "
                     "limit, not bandwidth; try more chunks and channels."));
  json cut = row("a", big, 100, 0.44);
  cut["chunks"] = 64;
  cut["channels"] = 8;
  CHECK(has(headline({cut}), "even with 64 chunks on 8 channels latency, waiting or combining"));
  json waited = row("a", big, 100, 0.44);
  waited["predicted_us"] = 40;
  CHECK(headline({waited}).ends_with("ranks wait for each other, for links or for stragglers (closed form: 40 us)."));
  CHECK(headline({row("a", 64, 100, 0.001)})
            .ends_with(
                "no link is more than 1 % busy (the busiest is a nic link): latency is the limit, not bandwidth."));
  json alone = row("a", big, 100, 0);  // one rank, or nothing to send
  alone["messages"] = 0;
  CHECK(headline({alone}).ends_with("; no message travels."));
  json without = row("a", 64, 100);
  without.erase("tiers");
  CHECK(headline({without}).ends_with(" (100 us)."));
}

TEST_CASE("runs that differ in chunks, channels, label or ranks are distinguished") {
  json cut = row("a", 1024, 1);
  cut["chunks"] = 8;
  CHECK(headline({row("a", 1024, 10), cut}).starts_with("use a, chunks 8 (a, chunks 1 takes 900 % longer): "));
  json labelled = row("b", 1024, 1), wide = row("a", 1024, 5);
  labelled["label"] = "one NIC down";
  wide["ranks"] = 16;
  const json found = findings(result({row("a", 1024, 10), labelled, wide}));
  REQUIRE(found.size() == 2);
  CHECK(found[0]["subject"] == "allreduce");
  CHECK(found[0]["headline"].get<std::string>().find("GB/s bus bandwidth at 16 ranks (5 us)") != std::string::npos);
  CHECK(found[1]["subject"] == "allreduce \"one NIC down\"");
}

TEST_CASE("runs that ask for different things are no rivals, and are distinguished") {
  const auto of_run = [](int run, int like, const char* algorithm, double us) {
    json one = row(algorithm, 1024, us);
    one.update({{"run", run}, {"like_run", like}, {"groups", 1}, {"op", "sum"}});
    return one;
  };
  json found = findings(result({of_run(0, 0, "a", 10), of_run(1, 1, "b", 30), of_run(2, 0, "b", 20)}));
  REQUIRE(found.size() == 2);
  CHECK(found[0]["subject"] == "allreduce (run 0)");
  CHECK(found[0]["headline"].get<std::string>().starts_with("use a (b takes 100 % longer): "));
  CHECK(found[1]["subject"] == "allreduce (run 1)");
  CHECK(found[1]["headline"].get<std::string>().starts_with("b: "));
  // Of a result that does not say which runs are alike.
  json eight = row("b", 1024, 20), product = row("b", 1024, 20);
  eight["groups"] = 8;
  product["op"] = "prod";
  found = findings(result({row("a", 1024, 10), eight, product}));
  REQUIRE(found.size() == 3);
  CHECK(found[1]["subject"] == "allreduce, 8 groups");
}

TEST_CASE("subjects differ wherever there are several findings of one collective") {
  json rows = json::array();
  for (const int like : {0, 1})
    for (const int groups : {2, 4})
      for (const int world : {64, 128})
        for (const char* dtype : {"f32", "bf16"})
          for (const int root : {0, 1}) {
            rows.push_back(row("a", 1024, 10));
            rows.back().update({{"run", like}, {"like_run", like}, {"groups", groups}, {"world_ranks", world}});
            rows.back().update({{"dtype", dtype}, {"root", root}, {"in_place", root == 1}});
          }
  const json found = findings({{"runs", rows}});
  CHECK(found.size() == rows.size());
  std::set<std::string> subjects;
  for (const json& f : found) subjects.insert(f["subject"]);
  CHECK(subjects.size() == rows.size());
  CHECK(subjects.count("allreduce, 4 groups of 128 ranks, bf16, root 1, in place (run 1)") == 1);
  // What the planners of two libraries made of one call are rivals of different names.
  json nccl = row("ring", 1024, 1), openmpi = row("ring", 1024, 2);
  nccl["planner"] = "nccl", openmpi["planner"] = "openmpi";
  CHECK(headline({nccl, openmpi}).starts_with("use ring, planner nccl (ring, planner openmpi takes 100 % longer): "));
}

TEST_CASE("subjects differ of sequences and of what is repeated") {
  json rows = json::array();
  for (const int like : {0, 1})
    for (const char* label : {"", "x"})
      for (const char* algorithm : {"ring", "tree"})
        for (const std::uint64_t bytes : {1024, 4096})
          for (const int chunks : {1, 8})
            for (const int ranks : {8, 16})
              for (const char* engine : {"model", "flow"}) {
                rows.push_back(row(algorithm, bytes, 10));
                rows.back().update({{"run", like}, {"like_run", like}, {"label", label}, {"chunks", chunks}});
                rows.back().update({{"ranks", ranks}, {"engine", engine}, {"operations", json::array()}});
              }
  json found = findings({{"runs", rows}});
  std::set<std::string> subjects;
  for (const json& f : found) subjects.insert(f["subject"]);
  CHECK(subjects.size() == rows.size());
  CHECK(subjects.count("allreduce tree, 4 KiB, 16 ranks, flow engine, chunks 8 (run 1)") == 1);
  CHECK(subjects.count("x, ring, 1 KiB, 8 ranks, model engine, chunks 1 (run 0)") == 1);
  json alone = row("ring", 1024, 10);
  alone["operations"] = json::array();
  CHECK(findings(result({alone}))[0]["subject"] == "allreduce ring");
  alone["faults"] = {{"completed", false}};
  CHECK(findings(result({alone}))[0]["headline"] == "not completed on 8 ranks (model engine).");
}

TEST_CASE("of algorithms that take as long the headline recommends the one that the result marks as the fastest") {
  json marked = row("b", 1024, 10);
  marked["fastest"] = true;
  CHECK(headline({row("a", 1024, 10), marked}).starts_with("use b or a: "));
  json larger = row("b", 2048, 20);
  larger["fastest"] = true;
  CHECK(headline({row("a", 1024, 10), marked, row("a", 2048, 20), larger}).starts_with("use b at every size: "));
}

TEST_CASE("what chose for auto in place of the planner is named, in sequences too") {
  json stated = row("a", 1024, 1), ours = row("b", 1024, 2), theirs = row("ring", 2048, 2);
  ours["auto"] = theirs["auto"] = true;
  theirs["decided_by"] = "GCCL_ALGO";
  const json found = findings(result({stated, ours, theirs})).at(0).at("notes");
  CHECK(found.at(0) == "GCCL_ALGO chose for auto at 1 of 2 points.");
  CHECK(findings(result({stated, ours})).at(0).at("notes").empty());
  json sequence = row("sequence", 2048, 3);
  sequence["collective"] = "sequence";
  sequence["operations"] = {ours, theirs, theirs};
  CHECK(findings(result({sequence})).at(0).at("notes") ==
        json::array({"GCCL_ALGO chose for auto in 2 of 3 operations."}));
}

TEST_CASE("what did not complete is said to, and recommended by nobody") {
  json failed = row("a", 1024, 1);
  failed.update({{"busbw_GBps", nullptr}, {"faults", {{"completed", false}}}});
  CHECK(headline({failed}) == "not completed.");
  const json found = findings(result({failed, row("b", 1024, 10)}));
  CHECK(found[0]["headline"].get<std::string>().starts_with("b: "));
  CHECK(found[0]["notes"][0] == "1 of 2 points did not complete.");
}

TEST_CASE("stated protocols distinguish runs, planned ones are shown where they differ") {
  const auto by = [](const char* protocol, bool planned, std::uint64_t bytes, double us) {
    json one = row("ring", bytes, us);
    for (const char* key : {"run", "window", "messages"}) one[key] = 1;
    one.update({{"protocol", protocol}, {"protocol_planned", planned}, {"planned", true}, {"world_ranks", 8}});
    one.update({{"algbw_GBps", 1}, {"wrong", nullptr}, {"fastest", true}, {"auto", planned}});
    return one;
  };
  const auto tables = [](json rows) {
    return result_tables({{"runs", std::move(rows)}, {"choices", json::array()}, {"name", "n"}}, 120);
  };
  CHECK(headline({by("LL", false, 1024, 1), by("Simple", false, 1024, 10)})
            .starts_with("use ring, protocol LL (ring, protocol Simple takes 900 % longer): "));
  CHECK(headline({by("LL", true, 1024, 1), by("Simple", true, 4096, 10)}).starts_with("ring: "));
  CHECK(has(tables(json::array({by("LL", false, 1024, 1)})), "8 ranks, f32, protocol LL, model engine\n"));
  const std::string planned = tables({by("LL", true, 1024, 1), by("Simple", true, 4096, 10)});
  CHECK(has(planned, "8 ranks, f32, model engine\n  bytes  protocol "));
  CHECK(has(planned, "  1 KiB        LL "));
  CHECK(has(planned, "  4 KiB    Simple "));
  const std::string one_size = tables({by("LL", true, 1024, 1), by("Simple", true, 1024, 10)});
  CHECK(has(one_size, "  algorithm  protocol "));
  CHECK(has(one_size, "  ring @*          LL "));
  CHECK(!has(tables({by("LL", true, 1024, 1), by("LL", true, 4096, 10)}), "protocol"));
}

TEST_CASE("how good automatic choices were is said of each run, of points, whatever distinguishes them") {
  const auto choice = [](int run, const char* collective, int ranks, double chosen_us) {
    return json{{"run", run},       {"cluster", "c"},
                {"label", ""},      {"collective", collective},
                {"ranks", ranks},   {"engine", "model"},
                {"bytes", 1024},    {"dtype", "f32"},
                {"compared", 2},    {"chosen", "a"},
                {"fastest", "b"},   {"chosen_us", chosen_us},
                {"fastest_us", 10}, {"regret_percent", (chosen_us / 10 - 1) * 100}};
  };
  const json choices = {choice(0, "allreduce", 8, 10), choice(0, "allreduce", 16, 12), choice(1, "allreduce", 8, 10),
                        choice(2, "barrier", 8, 10)};
  const std::string text = result_tables({{"runs", json::array()}, {"choices", choices}}, 120);
  CHECK(has(text, "  allreduce on c (model), run 0: the fastest at 1 of 2 points; mean 10 % behind, worst 20 %"));
  CHECK(has(text, "  allreduce on c (model), run 1: the fastest at 1 of 1 point; mean 0 % behind\n"));
  CHECK(has(text, "  barrier on c (model): the fastest at 1 of 1 point; mean 0 % behind\n"));
}

TEST_CASE("each of several planners is reported") {
  json nccl = row("ring", 1024, 1), openmpi = row("swing", 1024, 2);
  nccl["planner"] = "nccl", nccl["planner_choice"] = "ring, LL";
  openmpi["planner"] = "openmpi", openmpi["planner_choice"] = "rabenseifner";
  const std::string notes = findings(result({nccl, openmpi})).at(0).at("notes").dump();
  CHECK(has(notes, "planned as nccl would: ring, LL."));
  CHECK(has(notes, "planned as openmpi would: rabenseifner."));
}

TEST_CASE("predictions far from the simulation are found, near ones are not") {
  json near = row("a", 1024, 100), far = row("b", 1024, 318), farther = row("c", 2048, 10);
  near["predicted_us"] = 124;
  CHECK(findings(result({near}))[0]["notes"].empty());
  far["predicted_us"] = 188;
  farther["predicted_us"] = 40;
  CHECK(*prediction_error_percent(far) == doctest::Approx(-40.88).epsilon(0.001));
  CHECK(
      findings(result({near, far, farther}))[0]["notes"][0] ==
      "prediction (closed form, what auto compares) and simulation differ by more than 25 % at 2 of 3 points, most for "
      "c at 2 KiB (model): predicted 40 us, simulated 10 us.");
  // Virtual time is in whole nanoseconds: what is no further apart differs by rounding.
  json tiny = row("d", 1, 0.001);
  tiny["predicted_us"] = 0.0019;
  CHECK(findings(result({tiny}))[0]["notes"].empty());
  tiny["predicted_us"] = 0.0022;
  CHECK(has(findings(result({tiny}))[0]["notes"][0], "differ by more than 25 % at 1 of 1 points"));
  far["predicted_us"] = nullptr;
  CHECK(!prediction_error_percent(far));
}

TEST_CASE("engines are compared point by point") {
  json other = row("a", 1024, 15), same = row("b", 1024, 12);
  other["engine"] = same["engine"] = "simgrid";
  const json found = findings(result({row("a", 1024, 10), row("b", 1024, 12), other, same}));
  REQUIRE(found.size() == 1);
  CHECK(found[0]["subject"] == "allreduce (model engine)");
  CHECK(found[0]["notes"][0] ==
        "model and simgrid differ by more than 10 % at 1 of 2 points, most for a at 1 KiB: model 10 us, simgrid 15 us; "
        "the "
        "fastest differs at 1 of 1 sizes.");
  json rounded = row("a", 1, 0.002);
  rounded["engine"] = "simgrid";
  CHECK(findings(result({row("a", 1, 0.001), rounded}))[0]["notes"][0] ==
        "model and simgrid differ by more than 10 % at 0 of 1 points; the fastest differs at 0 of 1 sizes.");
}

TEST_CASE("no document makes findings fail") {
  for (const json& strange :
       {json(), json::array(), json{{"runs", 3}}, json{{"runs", {1, "x", nullptr}}}, json{{"runs", json::array()}}})
    CHECK(findings(strange).empty());
  json odd = row("a", 1024, 1);
  for (const char* key : {"tiers", "bytes", "ranks", "chunks", "label", "predicted_us", "algorithm"}) {
    for (const json& value : {json(), json("x"), json(-1), json::object(), json{{{"tier", 3}}}, json("\xff")}) {
      json changed = odd;
      changed[key] = value;
      CHECK(findings({{"runs", {changed}}, {"choices", {changed, 3}}}).size() <= 1);
    }
    odd.erase(key);
    CHECK(findings(result({odd})).size() == 1);
  }
}

TEST_CASE("CSV has the fields' names, one line for each row, and quotes what needs it") {
  json one = row("ring", 1024, 1.5);
  one["label"] = "one \"NIC\", down\nor slow";
  one["predicted_us"] = nullptr;
  const std::string text = result_csv({{"runs", {one}}});
  CHECK(text.starts_with("index,run,cluster,label,engine,collective,algorithm,ranks,"));
  CHECK(has(text, ",c,\"one \"\"NIC\"\", down\nor slow\",model,allreduce,ring,8,,,1024,"));
  CHECK(has(text, ",1.5,"));
  CHECK(has(text, ",,false,"));  // no prediction, not the automatic choice
  CHECK(result_csv({{"runs", json::array()}}).back() == '\n');
  json done = row("ring", 1024, 1.5), failed = done;
  done["faults"] = {{"completed", true}};
  failed["faults"] = {{"completed", false}};
  const std::string faults = result_csv({{"runs", {row("ring", 1024, 1.5), failed, done}}});
  CHECK(has(faults, ",like_run,completed\n"));
  CHECK(has(faults, ",,\n"));
  CHECK(has(faults, ",false\n"));
  CHECK(faults.ends_with(",true\n"));
}
