// Workloads through gccl run, as a user meets them.
#include <algorithm>
#include <string>

#include "sim/llm/pricing.hpp"
#include "sim/report/table.hpp"
#include "tests/llm/llm_support.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using doctest::Approx;
using Json = nlohmann::json;

namespace {

Json json_at(const fs::path& file) { return Json::parse(read_text(file)); }

}  // namespace

TEST_CASE("every shipped workload is read, fits its schema and names its sources") {
  const JsonSchema schema(json_at(kRoot / "sim/llm/workload.schema.json"));
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "workloads")) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path());
    const Json document = json_at(entry.path());
    CHECK(schema.accepts(document));
    CHECK(document.contains("sources"));
    ++found;
    Json at_home = document;
    at_home["cluster"] = "../topologies/" + document["cluster"].get<std::string>() + ".json";
    CHECK_NOTHROW(sim::llm::read_workload(json::Node::parse(at_home.dump(), entry.path())));
  }
  CHECK(found >= 6);
}

TEST_CASE("a step's result fits its schema, adds up, and is what its scenario's communications take") {
  const Folder folder;
  const std::string out = (folder.path / "s.json").string();
  const Json r =
      step_of(small_step(), {"--scenario-out", out, "--what-if", "overlap=false", "--what-if", "bucket_bytes=1MiB"});
  CHECK(JsonSchema(json_at(kRoot / "sim/llm/step.schema.json")).accepts(r));
  for (const Json& stage : r["stages"]) {
    double sum =
        stage["compute_us"].get<double>() + stage["slowed_us"].get<double>() + stage["bubble_us"].get<double>();
    for (const Json& us : stage["exposed_us"]) sum += us.get<double>();
    CHECK(sum == Approx(r["step_us"].get<double>()));
  }
  CHECK(r["what_if"].size() == 2);
  CHECK(r["what_if"][0]["step_us"].get<double>() > r["step_us"].get<double>());
  const Ended e = run_gccl({"run", out, "--quiet", "--json", "-"});
  REQUIRE(e.code == 0);
  const Json rows = Json::parse(e.out)["runs"];
  REQUIRE(rows.size() == r["traffic"].size());
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i]["time_us"] == r["traffic"][i]["time_us"]);
}

TEST_CASE("a step says which variable of the environment chose its algorithms") {
  const Folder folder;
  const std::string out = (folder.path / "s.json").string(), page = (folder.path / "s.html").string();
  const Ended e = Program({"run", folder.write("w.json", small_step().dump()).string(), "--json", out, "--html", page},
                          {.folder = kRoot, .environment = {"GCCL_ALGORITHM=allgather=ring"}})
                      .wait();
  REQUIRE(e.code == 0);
  CHECK(e.out.find("ring (GCCL_ALGORITHM)") != std::string::npos);
  CHECK(read_text(page).find("ring (GCCL_ALGORITHM)") != std::string::npos);
  const Json r = json_at(out);
  CHECK(JsonSchema(json_at(kRoot / "sim/llm/step.schema.json")).accepts(r));
  for (const Json& traffic : r["traffic"])
    for (const Json& call : traffic["calls"])
      CHECK(call.value("decided_by", "") == (call["collective"] == "allgather" ? "GCCL_ALGORITHM" : ""));
}

TEST_CASE("groups that share nodes with others are played with them; a rank's place does not matter inside a node") {
  const auto stages = [](const char* change) {
    const sim::llm::LlmWorkload w =
        workload_of(patched(patched(small_step(), change), R"({"cluster": "topologies/dgx-h100-superpod-2048.json"})"));
    sim::llm::Pricer pricer({.engines = {sim::run_model, nullptr}});
    return sim::llm::separate_stages(w, pricer.world(w));
  };
  CHECK(stages("{}") == 1);
  Json halves = Json::array();  // each stage half of every node
  for (Rank r = 0; r < 64; ++r) halves.push_back(r % 32 / 4 * 8 + r / 32 * 4 + r % 4);
  CHECK(stages(Json{{"placement", {{"cards", halves}}}}.dump().c_str()) == 2);
  CHECK(stages(R"({"parallel": {"data": 3}, "batch": {"sequences": 30}})") ==
        2);  // 12 ranks a stage: a node has two stages
  const Json packed = step_of(small_step()), dealt = step_of(small_step(), {"--what-if", "placement=round_robin"});
  CHECK(packed["step_us"] == dealt["step_us"]);
  CHECK(dealt["what_if"][0]["step_us"].get<double>() > packed["step_us"].get<double>());  // tensor groups across nodes
}

TEST_CASE("of nodes that are not alike one of each kind is played, and of stages that lie on nodes otherwise each") {
  // H100 and two kinds of A100, of which one has eight cards a node and one four. All groups of all ranks at once take
  // as long as those that are played.
  const auto check_like_all = [](const Json& document, Rank ranks, Rank data, std::size_t nodes_played) {
    const Folder folder;
    const Json step = step_of(document);
    for (const Json& t : step["traffic"]) {
      const Json& call = t["calls"][0];
      const bool tensor = t["kind"] == "tensor";
      if (!tensor && t["kind"] != "data") continue;
      CAPTURE(t["what"].get<std::string>());
      if (tensor) CHECK(call["groups_played"] == nodes_played);
      const Json run = {{"collective", call["collective"]},
                        {"bytes", call["bytes"]},
                        {"dtype", call["dtype"]},
                        {"algorithms", "auto"},
                        {"groups", {{"size", tensor ? 4 : data}, {"stride", tensor ? 1 : 4}}},
                        {"engine", "flow"}};
      Json all = {{"schema", "gccl/scenario/1"}, {"name", "all"}, {"ranks", ranks}};
      all["cluster"] = document["cluster"];
      all["runs"] = Json::array({run});
      if (document.contains("placement")) all["placement"] = document["placement"];
      const Ended e = run_gccl({"run", folder.write("all.json", all.dump()).string(), "--json", "-"});
      REQUIRE_MESSAGE(e.code == 0, e.err);
      CHECK(t["time_us"] == Json::parse(e.out)["runs"][0]["time_us"]);
    }
  };
  check_like_all(
      patched(small_step(),
              R"({"cluster": "mixed", "parallel": {"data": 72, "pipeline": 1}, "batch": {"sequences": 72}})"),
      288, 72, 2 + 2 + 1);
  Json stages = patched(small_step(),
                        R"({"cluster": "mixed", "parallel": {"data": 32, "pipeline": 2}, "batch": {"sequences": 64}})");
  check_like_all(stages, 256, 32, 2 + 2);
  for (Rank r = 0; r < 256; ++r) stages["placement"]["cards"].push_back((r + 128) % 256);
  check_like_all(stages, 256, 32, 2 + 2);
  // A card of another node stands in for one of the first or the second stage.
  for (const Rank failed : {5, 37}) {
    Json replaced = small_step();
    for (Rank r = 0; r < 64; ++r) replaced["placement"]["cards"].push_back(r == failed ? 100 : r);
    check_like_all(replaced, 64, 8, 16);
  }
}

TEST_CASE("nodes of a card torus are of one kind, of which one node is played, and one of its stages") {
  // A node has 2 x 2 cards; ranks 0, 1 and 16, 17 are on the first. A row of 16 cards is a stage, two share nodes.
  const Json step = step_of(
      patched(small_step(), R"({"cluster": "tpu-v4-4096", "parallel": {"tensor": 2, "data": 8, "pipeline": 4}})"));
  for (const Json& t : step["traffic"]) {
    CAPTURE(t["what"].get<std::string>());
    if (t["kind"] == "tensor") CHECK(t["calls"][0]["groups_played"] == 2);
    if (t["kind"] == "data") CHECK(t["calls"][0]["groups_played"] == 2 * 2);
  }
}

TEST_CASE("two communications that each take all of a link slow each other down twice") {
  // Each rank sends to its neighbour on the next node, in two communicators at the same time.
  const Json row = Json::parse(R"({"operations": [{"stream": 0, "end_us": 200}, {"stream": 1, "end_us": 200}]})");
  CHECK(sim::llm::slower_together(row, 1, 100, 100) == std::pair(2.0, 2.0));
  // The shorter one ends after 100 of which it needed 50; the longer one has 50 of its 100 left then.
  const Json uneven = Json::parse(R"({"operations": [{"stream": 0, "end_us": 100}, {"stream": 1, "end_us": 150}]})");
  CHECK(sim::llm::slower_together(uneven, 1, 50, 100) == std::pair(2.0, 2.0));
  const Json apart = Json::parse(R"({"operations": [{"stream": 0, "end_us": 50}, {"stream": 1, "end_us": 100}]})");
  CHECK(sim::llm::slower_together(apart, 1, 50, 100) == std::pair(1.0, 1.0));
  // The second one has done nothing when the first ends.
  const Json stands = Json::parse(R"({"operations": [{"stream": 0, "end_us": 100}, {"stream": 1, "end_us": 200}]})");
  CHECK(sim::llm::slower_together(stands, 1, 100, 100) == std::pair(1.0, sim::llm::kSlowerMax));
}

TEST_CASE("page and trace hold the step, and fetch nothing") {
  const Folder folder;
  const std::string page = (folder.path / "p.html").string(), trace = (folder.path / "t.json").string();
  const Json r = step_of(small_step(), {"--html", page, "--trace", trace});
  const std::string html = read_text(page);
  CHECK(html.starts_with("<!DOCTYPE html>"));
  for (const char* text : {"plain", "Compute, by stage", "<svg", "exposed: tensor", "Memory of a card"})
    CHECK_MESSAGE(html.find(text) != std::string::npos, text);
  for (const char* outside : {"src=\"http", "href=\"http", "@import"}) CHECK(html.find(outside) == std::string::npos);
  const std::size_t takes = html.find("<h3>A step takes ") + 17;
  const std::string headline = html.substr(takes, html.find("</h3>") - takes);
  CHECK(headline ==
        fmt::format("{}, {:.0f} tokens/s", sim::format_time(r["step_us"]), r["tokens_per_s"].get<double>()));
  CHECK(html.find("does not fit") == std::string::npos);
  double end = 0;
  std::size_t spans = 0;
  std::map<std::pair<int, int>, double> last;  // of a thread
  for (const Json& e : json_at(trace)) {
    if (e["ph"] != "X") continue;
    ++spans;
    double& before = last[{e["pid"], e["tid"]}];
    CHECK(e["ts"].get<double>() >= before - 0.0015);  // in order, and never two at once
    before = e["ts"].get<double>() + e["dur"].get<double>();
    end = std::max(end, before);
  }
  CHECK(end == Approx(r["step_us"].get<double>()).epsilon(1e-6));
  CHECK(spans > 100);
}

TEST_CASE("a step that its cards have no memory for says so") {
  const Folder folder;
  Json document = small_step();
  document["memory_GB"] = 0.001;
  const std::string page = (folder.path / "p.html").string();
  const Ended e = run_gccl({"run", folder.write("w.json", document.dump()).string(), "--html", page});
  CHECK(e.code == 0);
  for (const std::string& text : {e.out, read_text(page)}) {
    CHECK(text.find("does not fit: a card of stage") != std::string::npos);
    CHECK(text.find("and has 0.001 GB; 2 of 2 stages do not fit") != std::string::npos);
  }
}

TEST_CASE("an expectation that breaks gives exit code 1") {
  const Folder folder;
  Json document = small_step();
  document["expect"] = {{"max_step_us", 1}};
  const Ended e = run_gccl({"run", folder.write("w.json", document.dump()).string()});
  CHECK(e.code == 1);
  CHECK(e.out.find("BROKEN  max_step_us: 1; found") != std::string::npos);
}

TEST_CASE("a step that communicates nothing has results, and no scenario") {
  const Folder folder;
  Json document = small_step();
  document["parallel"] = {{"tensor", 1}, {"data", 1}, {"pipeline", 1}};
  const std::string json = (folder.path / "r.json").string(), out = (folder.path / "s.json").string();
  const std::string file = folder.write("w.json", document.dump()).string();
  const Ended e = run_gccl({"run", file, "--quiet", "--json", json, "--scenario-out", out});
  CHECK(e.code == 2);
  CHECK(e.err.find("the step communicates nothing") != std::string::npos);
  CHECK(json_at(json)["step_us"].get<double>() > 0);
}

// On polaris two cards of a node share a NIC.
TEST_CASE("a stage whose ranks lie on other cards of nodes that are alike is played, wherever it stands") {
  const auto gradients_us = [](const char* cards) {
    const Folder folder;
    const std::string file =
        folder
            .write("w.json", patched(plain_workload(), fmt::format(R"({{"cluster": "polaris", "overlap": false,
          "parallel": {{"data": 4, "pipeline": 2}}, "placement": {{"cards": {}}}}})",
                                                                   cards)
                                                           .c_str())
                                 .dump())
            .string();
    const Ended e = run_gccl({"run", file, "--quiet", "--json", "-"});
    CAPTURE(e.err);
    REQUIRE(e.code == 0);
    const Json result = Json::parse(e.out);
    for (const Json& t : result["traffic"])
      if (t["kind"] == "data") return t["time_us"].get<double>();
    return 0.0;
  };
  const double apart = gradients_us("[0, 2, 4, 6, 8, 10, 12, 14]"), shared = gradients_us("[0, 1, 4, 5, 8, 9, 12, 13]");
  CHECK(shared > 1.5 * apart);
  CHECK(gradients_us("[0, 2, 4, 6, 8, 9, 12, 13]") == Approx(shared).epsilon(0.01));
  CHECK(gradients_us("[8, 9, 12, 13, 0, 2, 4, 6]") == Approx(shared).epsilon(0.01));
}

TEST_CASE("wrong workloads give one line with file and pointer, and exit code 2") {
  const Folder folder;
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"paralel": {}})", "\"paralel\""},
      {R"({"parallel": {"tensor": 3}})", "/parallel/tensor: found 3, expected a divisor of 16 heads"},
      {R"({"parallel": {"expert": 2}})", "/parallel/expert: the model has no experts"},
      {R"({"parallel": {"data": 5, "tensor": 1}})", "/batch/sequences: found 32, expected a multiple of 5"},
      {R"({"parallel": {"pipeline": 9}})",
       "/parallel/pipeline: 9 chunks of layers (pipeline x interleave), but there are 4 layers"},
      {R"({"parallel": {"pipeline": 1, "interleave": 2}})", "/parallel/interleave: there is no pipeline to interleave"},
      {R"({"parallel": {"data": 32, "pipeline": 32}, "model": {"layers": 64}})", "asks for 4096 ranks"},
      {R"({"model": {"experts": {"count": 8, "top_k": 9, "ffn": 64}}})",
       "/model/experts/top_k: found 9, but there are 8 experts"},
      {R"({"compute": {"layer_us": null}})", "/compute: found neither \"card_TFLOPS\" nor \"layer_us\""},
      {R"({"algorithms": {"allgather": "rong"}})",
       "/algorithms/allgather: allgather has no algorithm \"rong\"; did you mean \"ring\"?"},
      {R"({"phase": "decode", "batch": {"sequences": null}, "compute": {"layer_us": null, "card_TFLOPS": 100}})",
       "\"memory_GBps\" is required"},
      {R"({"phase": "prefill"})", "/batch/sequences: for training alone"},
      {R"({"phase": "decode"})", "/batch/sequences: for training alone"},
      {R"({"phase": "prefill", "batch": {"sequences": null}})", "/parallel/zero: found 1; ZeRO is for training alone"},
      {R"({"phase": "prefill", "batch": {"sequences": null}, "parallel": {"zero": 2}})", "/parallel/zero: found 2"},
      {R"({"phase": "prefill", "batch": {"sequences": null}, "parallel": {"zero": 0}, "recompute": "selective"})",
       "/recompute: for training alone"},
      {R"({"overlap": {"tensr": true}})", "tensr"},
      {R"({"phase": "decode", "compute": {"memory_GBps": 1000}, "parallel": {"zero": 0},
           "batch": {"sequences": null}, "overlap": true})",
       "/overlap: found true for tensor: the micro-batch is computed by halves then, and a rank has 1 token of it"},
      {R"({"parallel": {"zero": 2}, "batch": {"sequences": 131072}, "bucket_bytes": 1024})",
       "/bucket_bytes: leads to more than 8e+06 reductions of gradients"},
      {R"({"cluster": "no-such"})", "/cluster"},
      {R"({"model": {"hidden": 1000000000000, "head_dim": 64}, "sequence": 1000000000})", "/model: has "},
      {R"({"model": {"hidden": 65536, "head_dim": 64}, "sequence": 4294967296, "batch": {"sequences": 32768, "micro": 4096}})",
       "/sequence: a micro-batch of"},
      {R"({"phase": "decode", "compute": {"memory_GBps": 1000}, "parallel": {"zero": 0},
           "batch": {"sequences": null, "micro": 1000000000000}})",
       "/batch: a micro-batch of"},
      {R"({"phase": "decode", "compute": {"memory_GBps": 1000}, "parallel": {"zero": 0, "tensor": 1, "context": 2},
           "batch": {"sequences": null}, "model": {"experts": {"count": 8, "top_k": 2, "ffn": 64}}})",
       "/parallel/context: found 2: context ranks that decode have all tokens"},
      {R"({"model": {"kv_heads": 3}})", "/model/kv_heads: found 3, expected a divisor of 16 heads"},
      {R"({"model": {"kv_heads": 1000000000000}})", "/model/kv_heads: found 1000000000000, expected a divisor"},
      {R"({"model": {"kv_heads": 2}})", "/parallel/tensor: found 4, expected a divisor of 2 kv_heads"},
      {R"({"expect": {"max_step_us": "soon"}})", "/expect/max_step_us: found"},
      {R"({"expect": {"min_mfu_percent": 5}})", "/expect/min_mfu_percent: without \"card_TFLOPS\""},
  };
  for (const auto& [patch, expected] : kCases) {
    const std::string changed = patched(small_step(), patch).dump(), file = folder.write("w.json", changed).string();
    CAPTURE(changed);
    check_refused({"run", file}, expected);
  }
  const std::string good = folder.write("g.json", small_step().dump()).string();
  for (const char* engine : {"protocol", "real"})
    check_refused({"run", good, "--engine", engine},
                  fmt::format("g.json: /engine: found \"{}\", which is for", engine));
  check_refused({"run", good, "--csv", "-"}, "--csv: a step has no rows");
  check_refused({"run", good, "--what-if", "overlap"}, "--what-if: found \"overlap\", expected KEY=VALUE");
  check_refused({"run", good, "--what-if", "algorithm=rong"}, "--what-if: found algorithm \"rong\"");
  check_refused({"run", good, "--what-if", "name=a\xff"}, "--what-if: found \"name=a\xff\", expected UTF-8");
  check_refused({"run", good, "--what-if", "algorithm=\xff"}, "expected UTF-8");
  check_refused({"run", good, "--what-if", "expect.max_step_us=1"},
                "--what-if expect.max_step_us=1: \"expect\" is judged of the step without changes alone");
  check_refused({"run", good, "--what-if", "parallel.tensor=3"}, "--what-if parallel.tensor=3: ");
  // A stated time is that of one way to cut a layer up.
  for (const char* change : {"parallel.tensor=2", "batch.micro=2", "sequence=1024", "model.ffn=1024", "recompute=full"})
    check_refused({"run", good, "--what-if", change},
                  "g.json: /compute/layer_us: is the time of another layer than this change leaves");
  check_refused({"run", good, "--what-if", "sequence=1024"},
                "\"card_TFLOPS\" in place of \"layer_us\" in the workload");
  for (const char* half : {"parallel.tensor=2,compute.layer_us.forward=2ms", "description=layer_us,parallel.tensor=2"})
    check_refused({"run", good, "--what-if", half}, "compute.layer_us.forward=5ms,compute.layer_us.backward=10ms");
  CHECK(run_gccl({"run", good, "--quiet", "--what-if",
                  "parallel.tensor=2,compute.layer_us.forward=2ms,compute.layer_us.backward=4ms", "--what-if",
                  "model.layers=8,parallel.zero=3"})
            .code == 0);
  check_refused({"run", good, "--what-if", "algorithms=5,algorithm=ring"},
                "found \"algorithms\" 5, expected an object");
  check_refused({"run", good, "--html", good}, "g.json");
  check_refused({"run", good, "--what-if", "cluster=pcie-box"}, "--what-if cluster=pcie-box: ");
  const std::string other = folder.write("c.json", read_text(kRoot / "topologies/pcie-box.json")).string();
  check_refused({"run", good, "--what-if", "cluster=" + other, "--json", other}, "is read, and cannot be an output");
  // Of several files, mistakes of the last come before the first is played.
  const std::string small = folder.write("s.json", patched(small_step(), R"({"cluster": "pcie-box"})").dump()).string();
  check_refused({"run", good, small}, "s.json: /parallel: asks for 64 ranks");
  check_refused({"run", "llm-step", "--what-if", "overlap=false"}, "--what-if: for workloads");
}

TEST_CASE("a step of no time has nothing in flight at the same time, and no part of it is exposed") {
  Json none = patched(plain_workload(), R"({"cluster": "dgx-h100-superpod-2048", "batch": {"sequences": 1},
    "compute": {"layer_us": {"forward": 0, "backward": 0}}})");
  none["expect"] = {{"max_exposed_percent", 1}, {"max_bubble_percent", 1}};
  const Json r = step_of(none);
  CHECK(r["step_us"] == 0);
  CHECK(r["together"].empty());
  CHECK(r["ok"] == true);
  const Folder folder;
  const std::string page = (folder.path / "p.html").string();
  const Ended e =
      run_gccl({"run", folder.write("w.json", none.dump()).string(), "--what-if", "overlap=false", "--html", page});
  CHECK(e.code == 0);
  const std::string text = read_text(page), body = text.substr(text.find("</head>"));
  CHECK(body.find("What if</h4>") != std::string::npos);
  for (const char* number : {"\"nan", "\"-nan", ">nan", ">-nan", ">+nan", "inf"})
    CHECK_MESSAGE(body.find(number) == std::string::npos, number);
  CHECK(e.out.find("overlap=false  0 us       -        -       -\n") != std::string::npos);
}

TEST_CASE("control characters in a workload's name tear no text apart") {
  const Folder folder;
  Json document = small_step();
  document["name"] = "two\nlines\x1b[31m";
  document["compute"] = {{"card_TFLOPS", 100}};
  document["memory_GB"] = 80;
  const std::string file = folder.write("w.json", document.dump()).string();
  const Ended step = run_gccl({"run", file, "--what-if", "description=a\tb"});
  CHECK(step.out.starts_with("two?lines?[31m: training on "));
  CHECK(step.out.find("  description=a?b  ") != std::string::npos);
  const Ended plan = run_gccl({"plan-parallel", file, "--tensor", "1", "--micro", "1", "--top", "1"});
  CHECK(plan.out.starts_with("two?lines?[31m on "));
}

TEST_CASE("a step says what its journal spared, and what could not be written to it") {
  const Folder folder;
  const std::string file = folder.write("w.json", small_step().dump()).string();
  const std::vector<std::string> words{"run", file, "--resume", "j", "--quiet"};
  CHECK(run_gccl(words, folder.path).err.empty());
  const Ended again = run_gccl(words, folder.path);
  const std::size_t points = std::ranges::count(read_text(folder.path / "j"), '\n') - 1;
  CHECK(points > 2);
  CHECK(again.err == fmt::format("gccl: j: {} of {} points were finished before\n", points, points));
  std::vector<std::string> more = words;
  more.insert(more.end(), {"--what-if", "bucket_bytes=1MiB"});
  CHECK(run_gccl(more, folder.path).err.find("points were finished before") != std::string::npos);
  Program full({"run", file, "--resume", "k", "--quiet"}, {.folder = folder.path, .file_bytes_max = 1000});
  const Ended e = full.wait();
  CHECK(e.code == 0);
  CHECK(e.err.find("gccl: k: cannot be written: File too large") != std::string::npos);
}

TEST_CASE("an interrupted step says where what it has finished is") {
  const Folder folder;
  for (const bool resume : {true, false}) {
    std::vector<std::string> arguments{"run", "llama3-405b-16k", "--quiet", "--jobs", "1"};
    if (resume) arguments.insert(arguments.end(), {"--resume", "j"});
    Program program(arguments, {.folder = folder.path});
    REQUIRE(program.has_children(std::chrono::seconds(60)));
    kill(program.pid(), SIGINT);
    const Ended e = program.wait();
    CHECK(e.code == 130);
    CHECK(e.err == (resume ? "gccl: interrupted; what was finished is in j: the same command goes on from there\n"
                           : "gccl: interrupted\n"));
    CHECK(e.out.empty());
  }
}

TEST_CASE("of an expert group so many ranks are on a node as its rails need, however ranks are dealt out") {
  using namespace gccl::sim::llm;
  const LlmWorkload w = workload_of(
      patched(plain_workload(), R"({"model": {"experts": {"count": 512, "top_k": 8, "ffn": 512, "nodes_max": 4}},
    "parallel": {"data": 1024, "expert": 512}, "batch": {"sequences": 1024}, "placement": "round_robin"})"));
  Pricer pricer({.engines = {sim::run_model, nullptr}});
  const StepWorld world = pricer.world(w);
  const Rank in_node = expert_ranks_in_node(w, world);
  CHECK(in_node == 2);  // 256 nodes
  const auto node_of = [&](Rank r) { return world.node_of(r); };
  for (const GroupSet set : {GroupSet::expert_in_node, GroupSet::expert_by_rail})
    for (const auto& group : groups_of(set, w, 0, 1, node_of))
      REQUIRE(group.size() == group_size(set, w.parallel, in_node));
}
