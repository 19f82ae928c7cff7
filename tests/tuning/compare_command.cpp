// gccl compare, as a user meets it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using namespace gccl::test;
using Json = nlohmann::json;

TEST_CASE(
    "compare says what got slower, by how much and where the winner changed, and ends with 1 beyond the threshold") {
  const Folder folder;
  const auto result = [&](const char* name, double ring_us, double tree_us) {
    Json rows = Json::array();
    for (const auto& [algorithm, us] : {std::pair("ring", ring_us), {"tree", tree_us}})
      rows.push_back({{"collective", "allreduce"},
                      {"algorithm", algorithm},
                      {"cluster", "c"},
                      {"engine", "flow"},
                      {"label", ""},
                      {"dtype", "f32"},
                      {"ranks", 8},
                      {"bytes", 1024},
                      {"time_us", us},
                      {"fastest", us == std::min(ring_us, tree_us)}});
    return folder.write(name, Json{{"schema", "gccl/result/1"}, {"runs", rows}}.dump()).string();
  };
  const std::string a = result("a.json", 100, 110), b = result("b.json", 112, 110);
  const Ended e = run_gccl({"compare", a, b, "--json", (folder.path / "c.json").string()});
  CHECK(e.code == 1);
  CHECK(e.out.find("ring: 100 us -> 112 us, +12 %") != std::string::npos);
  CHECK(e.out.find("ring -> tree") != std::string::npos);
  const Json c = Json::parse(read_text(folder.path / "c.json"));
  CHECK(c["ok"] == false);
  CHECK(c["slower"].size() == 1);
  CHECK(c["winner_changed"][0]["after"] == "tree");
  CHECK(run_gccl({"compare", a, b, "--threshold", "12.5"}).code == 0);
  CHECK(run_gccl({"compare", b, a}).code == 0);
  CHECK(run_gccl({"compare", a, a, "--threshold", "0"}).code == 0);

  const std::string empty = folder.write("e.json", R"({"schema":"gccl/result/1","runs":[]})").string();
  const std::string tuning =
      folder
          .write("t.json",
                 R"({"schema":"gccl/tuning/1","cluster":{"name":"c"},"engine":"flow","dtype":"f32","cells":[]})")
          .string();
  const std::string odd =
      folder
          .write(
              "o.json",
              R"({"schema":"gccl/tuning/1","cluster":{"name":"c"},"engine":"flow","dtype":"f32","cells":[{"collective":"x","ranks":1,"bytes":1,"tried":[{"algorithm":"r","protocol":null,"time_us":"soon"}]}]})")
          .string();
  const std::pair<std::vector<std::string>, std::string> kWrong[] = {
      {{a, "/no/such"}, "/no/such"},
      {{a, empty}, "nothing to compare"},
      {{a, tuning}, "expected \"gccl/result/1\", as the other file has"},
      {{odd, odd}, "/cells/0/tried/0/time_us"},
      {{folder.write("s.json", R"({"schema":"gccl/scenario/1"})").string(), a}, "found \"gccl/scenario/1\""},
      {{folder.write("n.json", "{").string(), a}, "n.json"},
      {{a}, "AFTER"},
  };
  for (const auto& [files, expected] : kWrong) {
    std::vector<std::string> all{"compare"};
    all.insert(all.end(), files.begin(), files.end());
    check_refused(all, expected);
  }
}

TEST_CASE("compare puts rows side by side that state the same, and says which are no longer right") {
  const Folder folder;
  const auto result = [&](const char* name, const std::vector<Json>& changes) {
    Json rows = Json::array();
    for (const Json& change : changes) {
      rows.push_back({{"collective", "allreduce"},
                      {"algorithm", "ring"},
                      {"cluster", "c"},
                      {"engine", "flow"},
                      {"label", ""},
                      {"dtype", "f32"},
                      {"op", "sum"},
                      {"root", 0},
                      {"in_place", false},
                      {"ranks", 8},
                      {"bytes", 16384},
                      {"protocol", "LL"},
                      {"protocol_planned", false},
                      {"planned", true},
                      {"chunks", 4},
                      {"channels", 2},
                      {"window", 4},
                      {"time_us", 100},
                      {"wrong", nullptr}});
      rows.back().update(change);
    }
    return folder.write(name, Json{{"schema", "gccl/result/1"}, {"runs", rows}}.dump()).string();
  };
  const auto compared = [&](const std::vector<Json>& before, const std::vector<Json>& after) {
    const Ended e = run_gccl({"compare", result("a.json", before), result("b.json", after), "--json", "-"});
    CAPTURE(e.err);
    REQUIRE(e.code <= 1);
    Json c = Json::parse(e.out);
    CHECK(c["ok"] == (e.code == 0));
    return c;
  };
  // A row before the others moves none of them: each is known by what the scenario states of it.
  const Json simple = {{"protocol", "Simple"}, {"time_us", 50}};
  const std::pair<const char*, Json> kStated[] = {
      {"protocol", "LL128"}, {"op", "max"}, {"root", 3},   {"in_place", true},  {"groups", 4}, {"repeats", 10},
      {"bytes", 16388},      {"window", 8}, {"chunks", 8}, {"planner", "nccl"}, {"label", "x"}};
  for (const auto& stated : kStated) {
    const std::string key = stated.first;
    CAPTURE(key);
    Json other = {{key, stated.second}, {"time_us", 10}};
    Json own = Json::object();
    if (key == "window" || key == "chunks") other["planned"] = own["planned"] = false;
    const Json c = compared({own, simple}, {other, own, simple});
    CHECK(c["compared"] == 2);
    CHECK(c["only_after"] == 1);
    CHECK(c["slower"].empty());
    CHECK(c["faster"].empty());
  }
  // What the planner chooses may change.
  CHECK(compared({Json::object()}, {{{"chunks", 8}, {"time_us", 120}}})["slower"].size() == 1);
  CHECK(compared({{{"protocol_planned", true}}},
                 {{{"protocol", "LL128"}, {"protocol_planned", true}, {"time_us", 120}}})["slower"]
            .size() == 1);

  // So may the algorithm: what a user of "auto" waits for is the choice's time, whichever it is.
  const auto chosen = [](const char* algorithm, double us, Json more = Json::object()) {
    more.update({{"algorithm", algorithm}, {"auto", true}, {"time_us", us}});
    return more;
  };
  const Json other_choice = compared({chosen("ring", 100)}, {chosen("tree", 130)});
  CHECK(other_choice["compared"] == 1);
  REQUIRE(other_choice["slower"].size() == 1);
  CHECK(other_choice["slower"][0]["what"] ==
        "allreduce 16 KiB, 8 ranks f32 on c (flow): auto, LL (ring before, tree after)");
  CHECK(other_choice["slower"][0]["percent"].get<double>() == doctest::Approx(30));
  CHECK(compared({chosen("ring", 100), {{"algorithm", "tree"}, {"time_us", 80}}},
                 {{{"time_us", 100}}, chosen("tree", 80)})["faster"]
            .size() == 1);
  CHECK(compared({chosen("ring", 100)}, {chosen("ring", 100)})["compared"] == 1);
  // Another library's choice is another one.
  CHECK(compared({chosen("ring", 100), chosen("ring", 50, {{"planner", "nccl"}})},
                 {chosen("ring", 100), chosen("tree", 70, {{"planner", "nccl"}})})["slower"][0]["after_us"] == 70);
  CHECK(compared({chosen("ring", 100)}, {chosen("tree", 1, {{"wrong", 4}})})["failed"].size() == 1);

  // A call that fails early is not a fast one.
  const auto ends = [](bool completed, double us) {
    return Json{{"faults", {{"completed", completed}}}, {"time_us", us}};
  };
  Json c = compared({ends(true, 100)}, {ends(false, 1)});
  CHECK(c["failed"] == Json::array({{{"what", "allreduce 16 KiB, 8 ranks f32 on c (flow): ring, LL"},
                                     {"before", ""},
                                     {"after", "not completed"}}}));
  CHECK(c["faster"].empty());
  c = compared({{{"wrong", 0}}}, {{{"wrong", 500}, {"time_us", 1}}});
  CHECK(c["failed"][0]["after"] == "500 wrong elements");
  // What was wrong before is no longer right in no case, whatever is wrong with it now.
  for (const auto& [before, after] : {std::pair(3, 2), {2, 3}}) {
    c = compared({{{"wrong", before}, {"time_us", 1}}}, {{{"wrong", after}, {"time_us", 9}}});
    CHECK(c["ok"] == true);
    CHECK(c["failed"].empty());
    CHECK(c["slower"].empty());
  }
  CHECK(compared({ends(false, 1)}, {ends(true, 100)})["slower"].empty());
  for (const auto& [odd, place] :
       {std::pair<Json, const char*>({{"completed", Json::array({false})}}, "/completed: found"),
        {Json::array({1}), ": found [1], expected an object"}}) {
    const Ended refused =
        run_gccl({"compare", result("a.json", {ends(true, 100)}), result("b.json", {{{"faults", odd}}})});
    CHECK(refused.code == 2);
    CHECK_MESSAGE(refused.err.find(fmt::format("b.json: /runs/0/faults{}", place)) != std::string::npos, refused.err);
  }
  CHECK(compared({ends(false, 1)}, {ends(false, 2)})["slower"].size() == 1);
  const Ended e = run_gccl({"compare", result("a.json", {ends(true, 100)}), result("b.json", {ends(false, 1)})});
  CHECK(e.out.find(
            "no longer right: 1\n  allreduce 16 KiB, 8 ranks f32 on c (flow): ring, LL: right -> not completed\n") !=
        std::string::npos);
}

TEST_CASE("compare takes whole numbers with a point for what they are") {
  const Folder folder;
  const auto result = [&](const char* name, const Json& bytes, const Json& far, const Json& near) {
    Json rows = Json::array();
    for (const Json& root : {far, near})
      rows.push_back({{"collective", "broadcast"},
                      {"algorithm", "ring"},
                      {"cluster", "c"},
                      {"engine", "flow"},
                      {"label", ""},
                      {"dtype", "f32"},
                      {"ranks", 8},
                      {"bytes", bytes},
                      {"root", root},
                      {"time_us", 5}});
    return folder.write(name, Json{{"schema", "gccl/result/1"}, {"runs", rows}}.dump()).string();
  };
  const Ended e = run_gccl({"compare", result("a.json", 1024, 3, 0), result("b.json", 1024.0, 3.0, 0.0)});
  CHECK(e.code == 0);
  CHECK(e.out.find("2 times in both") != std::string::npos);
}

TEST_CASE("compare puts two tables side by side: ranges that both are about, and times at one size") {
  const Folder folder;
  const auto table = [&](const char* name, const std::string& cluster, const std::string& entries) {
    return folder
        .write(name, R"({"schema":"gccl/table/1","name":"t","machine":{"cluster":")" + cluster +
                         R"(","nodes":2,"cards_per_node":4},"entries":[)" + entries + "]}")
        .string();
  };
  const std::string a = table("a.json", "c", R"(
    {"collective":"allreduce","to_bytes":"1KiB","algorithm":"tree","predicted_us":10,"predicted_at_bytes":8},
    {"collective":"allreduce","from_bytes":"1KiB","algorithm":"ring","chunks":4,"channels":2,"predicted_us":50,"predicted_at_bytes":"1KiB"},
    {"collective":"barrier","algorithm":"tree"})");
  const std::string b = table("b.json", "c", R"(
    {"collective":"allreduce","to_bytes":"4KiB","algorithm":"tree","predicted_us":11,"predicted_at_bytes":8},
    {"collective":"allreduce","from_bytes":"4KiB","algorithm":"ring","chunks":8,"channels":2,"predicted_us":40,"predicted_at_bytes":"4KiB"},
    {"collective":"alltoall","algorithm":"pairwise"})");
  const Ended e = run_gccl({"compare", a, b, "--json", "-"});
  CHECK(e.code == 1);
  const Json c = Json::parse(e.out);
  CHECK(c["of"] == "gccl/table/1");
  CHECK(c["compared"] == 3);
  CHECK(c["times"] == 1);
  CHECK(c["only_before"] == 1);
  CHECK(c["only_after"] == 1);
  REQUIRE(c["slower"].size() == 1);
  CHECK(c["slower"][0]["what"] == "allreduce from 0 B to less than 1 KiB, 1 to 8 ranks on 1 to 2 nodes of c: at 8 B");
  CHECK(c["slower"][0]["percent"].get<double>() == doctest::Approx(10));
  REQUIRE(c["winner_changed"].size() == 2);
  CHECK(c["winner_changed"][0]["before"] == "ring, 4/2");
  CHECK(c["winner_changed"][0]["after"] == "tree");
  CHECK(c["winner_changed"][1]["what"] == "allreduce from 4 KiB, 1 to 8 ranks on 1 to 2 nodes of c");
  CHECK(run_gccl({"compare", a, b, "--threshold", "12"}).code == 0);
  check_refused({"compare", a, table("d.json", "d", R"({"collective":"barrier","algorithm":"tree"})")},
                "/machine/cluster: found \"d\", expected \"c\"");
  check_refused({"compare", a, table("e.json", "c", R"({"collective":"alltoall","algorithm":"bruck"})")},
                "nothing to compare");
}

TEST_CASE("compare puts no times side by side that tables state of different calls") {
  const Folder folder;
  const auto table = [&](const char* name, const std::string& range, double us, const std::string& at) {
    return folder
        .write(name, R"({"schema":"gccl/table/1","name":"t","machine":{"cluster":"c","nodes":2,"cards_per_node":4},)" +
                         fmt::format(
                             R"("entries":[{{"collective":"allreduce",{},"algorithm":"ring","predicted_us":{}{}}}]}})",
                             range, us, at.empty() ? "" : ",\"predicted_at_bytes\":" + at))
        .string();
  };
  const auto times = [&](const std::string& range, const std::string& at, const std::string& other_range,
                         const std::string& other_at) {
    const Ended e = run_gccl(
        {"compare", table("a.json", range, 10, at), table("b.json", other_range, 20, other_at), "--json", "-"});
    const Json c = Json::parse(e.out);
    CHECK(c["compared"] == 1);
    CHECK(e.code == (c["slower"].empty() ? 0 : 1));
    return c["slower"].size();
  };
  const std::string less = R"("to_bytes":65)", more = R"("to_bytes":8193)", later = R"("from_bytes":7,"to_bytes":90)";
  CHECK(times(less, "8", more, "4096") == 0);
  CHECK(times(less, "8", less, "9") == 0);
  CHECK(times(less, "8", later, "8") == 1);
  // Older tables state no size.
  CHECK(times(less, "", more, "") == 0);
  CHECK(times(less, "8", more, "") == 0);
  CHECK(times(less, "", less, "") == 1);
  CHECK(times(less, "", less, "8") == 1);
  // Nor is a call of up to 4 ranks one of up to 8.
  CHECK(times(less + R"(,"ranks_max":4)", "8", less, "8") == 0);

  // All that the machine has is the same, though it has grown.
  const std::string grown = table("g.json", less, 20, "8");
  std::string text_of_grown = read_text(grown);
  text_of_grown.replace(text_of_grown.find("\"nodes\":2"), 9, "\"nodes\":3");
  folder.write("g.json", text_of_grown);
  CHECK(run_gccl({"compare", table("a.json", less, 10, "8"), grown}).code == 1);
  // So is a number that was all, and that is stated.
  const std::string eight = less + R"(,"ranks_min":8,"ranks_max":8,"nodes_min":2,"nodes_max":2)";
  std::string also_grown = read_text(table("g.json", eight, 20, "8"));
  also_grown.replace(also_grown.find("\"nodes\":2"), 9, "\"nodes\":3");
  folder.write("g.json", also_grown);
  CHECK(run_gccl({"compare", table("a.json", eight, 10, "8"), grown}).code == 1);

  // From different grids of one sweep.
  const auto tuned = [&](const char* name, const char* bytes) {
    const std::string file = (folder.path / name).string();
    const Ended e = run_gccl({"tune", "ethernet-cpu", "--engine", "model", "--ranks", "8", "--collectives", "allgather",
                              "--bytes", bytes, "--table", file, "--quiet"});
    CAPTURE(e.err);
    CHECK(e.code == 0);
    return file;
  };
  const std::string small = tuned("small.json", "8,3KiB"), large = tuned("large.json", "4KiB,8KiB");
  CHECK(run_gccl({"compare", small, large}).code == 0);
  const std::string text = run_gccl({"compare", large, small}).out;
  CHECK(text.find("faster: 0") != std::string::npos);
  CHECK(text.starts_with("1 range of calls in both, none with times of the same call;"));
  CHECK(run_gccl({"compare", large, small}).err.find("no times were compared") != std::string::npos);
  CHECK(Json::parse(read_text(small))["entries"][0]["predicted_at_bytes"] == 16);  // bf16 of each of 8 ranks
  CHECK(Json::parse(read_text(large))["entries"][0]["predicted_at_bytes"] == 4096);
}

TEST_CASE("compare takes sweeps of another cluster, engine or type for nothing to compare, as it does results") {
  const Folder folder;
  const auto sweep = [&](const char* cluster, const char* engine, const char* dtype) {
    const Json tried = Json::array({{{"algorithm", "ring"}, {"protocol", nullptr}, {"time_us", 5}}});
    const Json cell = {{"collective", "allreduce"}, {"ranks", 4}, {"bytes", 8}, {"tried", tried}, {"planner", 0}};
    return folder
        .write(std::string(cluster) + engine + dtype, Json{{"schema", "gccl/tuning/1"},
                                                           {"cluster", {{"name", cluster}}},
                                                           {"engine", engine},
                                                           {"dtype", dtype},
                                                           {"cells", Json::array({cell})}}
                                                          .dump())
        .string();
  };
  const std::string one = sweep("a", "flow", "f32");
  CHECK(run_gccl({"compare", one, one}).code == 0);
  for (const std::string& other : {sweep("b", "flow", "f32"), sweep("a", "model", "f32"), sweep("a", "flow", "bf16")}) {
    const Ended e = run_gccl({"compare", one, other});
    CAPTURE(other);
    CHECK(e.code == 2);
    CHECK(e.err.find("nothing to compare") != std::string::npos);
  }
}

TEST_CASE("compare knows steps of LLMs: their times, those under changes, and their communications") {
  const Folder folder;
  const auto step = [&](const char* name, double step_us, double gather_us, const char* algorithm) {
    const Json gather = {
        {"kind", "tensor"},
        {"what", "activations"},
        {"time_us", gather_us},
        {"calls",
         Json::array({{{"collective", "allgather"}, {"algorithm", algorithm}, {"bytes", 1024}, {"ranks", 8}}})}};
    const Json document = {{"schema", "gccl/step/1"},
                           {"workload", {{"name", "w"}}},
                           {"cluster", {{"name", "c"}}},
                           {"engine", "flow"},
                           {"step_us", step_us},
                           {"traffic", Json::array({gather})},
                           {"what_if", Json::array({{{"change", "overlap=false"}, {"step_us", 2 * step_us}}})}};
    return folder.write(name, document.dump()).string();
  };
  const std::string a = step("a.json", 1000, 10, "ring"), b = step("b.json", 1100, 8, "bruck");
  const Ended e = run_gccl({"compare", a, b});
  CHECK(e.code == 1);
  CHECK(e.out.find("3 times in both") != std::string::npos);
  CHECK(e.out.find("w on c (flow): step: 1 ms -> 1.1 ms, +10 %") != std::string::npos);
  CHECK(e.out.find("step with overlap=false: 2 ms -> 2.2 ms, +10 %") != std::string::npos);
  CHECK(e.out.find("tensor, activations, allgather 1 KiB, 8 ranks: 10 us -> 8 us, -20 %") != std::string::npos);
  CHECK(e.out.find("ring -> bruck") != std::string::npos);
  CHECK(run_gccl({"compare", a, b, "--threshold", "10.1"}).code == 0);

  // The same workload, decoding: its communications alone have something in common with a training step's.
  Json token = Json::parse(read_text(b));
  token["phase"] = "decode";
  const std::string c = folder.write("c.json", token.dump()).string();
  CHECK(run_gccl({"compare", a, c}).out.starts_with("1 time in both; 2 only before, 2 only after"));
  CHECK(run_gccl({"compare", c, c}).out.starts_with("3 times in both"));
}
