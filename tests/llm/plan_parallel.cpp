// gccl plan-parallel, as a user meets it.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "tests/llm/llm_support.hpp"
#include "tests/support/program.hpp"

using namespace gccl;
using namespace gccl::test;
using doctest::Approx;
using Json = nlohmann::json;

TEST_CASE("plan-parallel's ways fit the memory, and its best are played steps in order") {
  const Folder folder;
  Json document = small_step();
  document["compute"] = {{"card_TFLOPS", 100}, {"efficiency", 0.5}};
  document["memory_GB"] = 0.25;
  const std::string file = folder.write("w.json", document.dump()).string();
  const Ended e = run_gccl({"plan-parallel", file, "--top", "3", "--micro", "2", "--json", "-"});
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json plans = Json::parse(e.out)["plans"];
  REQUIRE(plans.size() > 10);
  // What shares out nothing is one way, whatever its stage of ZeRO.
  std::set<std::string> ways;
  for (Json p : plans) {
    if (p["data"] == 1) p.erase("zero");
    for (const char* key : {"memory_GB", "estimate_us", "step_us", "mfu_percent", "bubble_us"}) p.erase(key);
    CHECK_MESSAGE(ways.insert(p.dump()).second, p.dump());
  }
  double before = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Json& p = plans[i];
    CHECK(p["memory_GB"].get<double>() <= 0.25 * 0.92);
    CHECK(p["tensor"].get<Rank>() * p["data"].get<Rank>() * p["pipeline"].get<Rank>() == 64);
    CHECK(p.contains("step_us") == (i < 3));
    if (i >= 3) continue;
    CHECK(p["step_us"].get<double>() >= before);
    before = p["step_us"];
    // The same sizes, played by gccl run.
    Json same = document;
    for (const char* key : {"tensor", "data", "pipeline", "interleave", "zero"}) same["parallel"][key] = p[key];
    same["batch"]["micro"] = p["micro"];
    same["recompute"] = p["recompute"];
    CHECK(step_of(same)["step_us"] == p["step_us"]);
    CHECK(p["estimate_us"].get<double>() == Approx(p["step_us"].get<double>()).epsilon(0.3));
  }
  // In text the 20 best, or all that were played.
  for (const auto& [top, shown] : {std::pair("3", 20), {"22", 22}}) {
    const std::string text = run_gccl({"plan-parallel", file, "--top", top, "--micro", "2"}).out;
    CAPTURE(text);
    CHECK(text.find(fmt::format("\n  {} ", shown)) != std::string::npos);
    CHECK(text.find(fmt::format("\n  {} ", shown + 1)) == std::string::npos);
    CHECK(text.ends_with(fmt::format("\n  and {} more, which --json has\n", plans.size() - std::size_t(shown))));
  }
  check_refused({"plan-parallel", file, "--memory-gb", "0.01"},
                "nothing fits 0.01 GB on 64 ranks: the least that a step takes is");
  check_refused({"plan-parallel", "decode-tensor-8"}, "/phase: expected \"training\"");
}

TEST_CASE("plan-parallel's estimates know of sends, of the embeddings' gathers, and of who decides on algorithms") {
  const Folder folder;
  const std::string file =
      folder
          .write("w.json", R"({"schema": "gccl/workload/1", "name": "1B", "cluster": "ethernet-cpu",
    "model": {"layers": 16, "hidden": 2048, "ffn": 8192, "heads": 32, "kv_heads": 8, "head_dim": 64, "vocabulary": 128256,
    "tied": true}, "sequence": 4096, "batch": {"sequences": 64}, "parallel": {"data": 16},
    "compute": {"card_TFLOPS": 312, "efficiency": 0.5}, "memory_GB": 80})")
          .string();
  const auto best_us = [&](const char* top) {
    const Ended e = run_gccl({"plan-parallel", file, "--ranks", "8", "--micro", "1", "--top", top, "--json", "-"});
    REQUIRE(e.code == 0);
    return Json::parse(e.out)["plans"][0]["step_us"].get<double>();
  };
  CHECK(best_us("8") == best_us("1000"));
  const Ended e = test::Program({"plan-parallel", file, "--ranks", "8", "--micro", "1", "--top", "1"},
                                {.environment = {"GCCL_ALGORITHM=allreduce=ring"}})
                      .wait();
  CHECK(e.out.find("algorithms as GCCL_ALGORITHM asks") != std::string::npos);
}

TEST_CASE("plan-parallel tries all sizes that divide, on any number of ranks") {
  constexpr Rank kRanks = 48, kLayers = 6, kSequences = 48, kHeads = 12;
  const Folder folder;
  const Json document = patched(plain_workload(), R"({"cluster": "dgx-h100-superpod-2048", "memory_GB": 80,
    "model": {"layers": 6, "heads": 12, "hidden": 768, "ffn": 3072}, "batch": {"sequences": 48}, "parallel": {"data": 48},
    "compute": {"layer_us": null, "card_TFLOPS": 100}})");
  const Ended e = run_gccl(
      {"plan-parallel", folder.write("w.json", document.dump()).string(), "--micro", "1", "--top", "1", "--json", "-"});
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  using Sizes = std::tuple<Rank, Rank, Rank, Rank>;  // tensor, pipeline, interleave, data
  std::set<Sizes> found, expected;
  const Json plans = Json::parse(e.out)["plans"];
  for (const Json& p : plans) {
    const auto of = [&](const char* key) { return p[key].get<Rank>(); };
    found.emplace(of("tensor"), of("pipeline"), of("interleave"), of("data"));
  }
  for (Rank t = 1; t <= 8; ++t)
    for (Rank p = 1; p <= kRanks; ++p)
      for (Rank v = 1; v <= 8; ++v) {
        const Rank d = kRanks / t / p;
        if (t * p * d != kRanks || kHeads % t || kSequences % d || p * v > kLayers + 2) continue;
        if (v > 1 && (p == 1 || kSequences / d % p)) continue;
        if (v == 1 || v == 2 || v == 4 || v == 8 || kLayers % (p * v) == 0) expected.insert({t, p, v, d});
      }
  CHECK(found == expected);
  CHECK(found.contains({6, 4, 2, 2}));
  CHECK(found.contains({1, 2, 3, 24}));
}

TEST_CASE("plan-parallel leaves out sizes that the nodes do not suit, and says why where none are left") {
  const Folder folder;
  // Nodes of 72 cards: three whole ones and 40 cards of a fourth for a group of 256 experts, which cannot be dealt out.
  const Json document = patched(plain_workload(), R"({"cluster": "gb200-nvl72-576", "memory_GB": 80, "engine": "model",
    "model": {"layers": 2, "experts": {"count": 256, "top_k": 8, "ffn": 512, "nodes_max": 4}},
    "parallel": {"data": 256, "expert": 64}, "batch": {"sequences": 1024},
    "compute": {"layer_us": null, "card_TFLOPS": 100}})");
  const std::string file = folder.write("w.json", document.dump()).string();
  check_refused({"run", file, "--what-if", "parallel.expert=256"},
                "expert groups have 72 ranks on one node and 40 on another");
  // Larger than one node and smaller than two.
  check_refused({"run", file, "--what-if", "parallel.expert=128"},
                "/model/experts/nodes_max: expert groups have 72 ranks on one node and 56 on another");
  const Ended e =
      run_gccl({"plan-parallel", file, "--ranks", "256", "--tensor", "1", "--micro", "1", "--top", "2", "--json", "-"});
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  const Json plan = Json::parse(e.out);
  Rank most = 0;
  for (const Json& p : plan["plans"])
    if (p["pipeline"] == 1) most = std::max(most, p["expert"].get<Rank>());
  CHECK(most == 64);
  CHECK(plan["ways"] == plan["plans"].size());
  CHECK(plan["plans"][1].contains("step_us"));
  check_refused({"plan-parallel", file, "--ranks", "1024", "--micro", "1"},
                "--ranks: found 1024, and gb200-nvl72-576 has 576 cards");
}
