// Workloads in tests: a plain transformer, changed at some places.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/llm/arithmetic.hpp"
#include "sim/llm/timeline.hpp"
#include "tests/support/program.hpp"
#include "tests/support/project.hpp"

namespace gccl::test {

// Twelve h^2 parameters a layer, as in GPT. Each compute of a layer takes 1000 us forward and 2000 us backward.
inline nlohmann::json plain_workload() {
  return nlohmann::json::parse(
      R"({"schema": "gccl/workload/1", "name": "plain", "cluster": "topologies/dgx-h100-superpod-2048.json",
    "model": {"layers": 8, "hidden": 1024, "ffn": 4096, "heads": 16, "vocabulary": 8192, "gated": false},
    "sequence": 512, "batch": {"sequences": 16, "micro": 1}, "gradient_dtype": "bf16",
    "compute": {"layer_us": {"forward": 1000, "backward": 2000}}})");
}
inline sim::llm::LlmWorkload workload_of(const nlohmann::json& document) {
  return sim::llm::read_workload(json::Node::parse(document.dump(), kRoot / "workload.json"));
}
inline nlohmann::json patched(nlohmann::json document, const char* patch) {
  document.merge_patch(nlohmann::json::parse(patch));
  return document;
}

// 64 ranks of the plain model: tensor inside nodes, data across them, two stages.
inline nlohmann::json small_step() {
  return patched(
      plain_workload(),
      R"({"cluster": "dgx-h100-superpod-2048", "parallel": {"tensor": 4, "data": 8, "pipeline": 2, "zero": 1},
    "batch": {"sequences": 32}, "model": {"layers": 4}, "bucket_bytes": "8MiB"})");
}

// What gccl run says of it.
inline nlohmann::json step_of(const nlohmann::json& document, std::vector<std::string> more = {}) {
  const Folder folder;
  std::vector<std::string> words{"run", folder.write("w.json", document.dump()).string(), "--quiet", "--json", "-"};
  words.insert(words.end(), more.begin(), more.end());
  const Ended e = run_gccl(words);
  CAPTURE(e.err);
  REQUIRE(e.code == 0);
  return nlohmann::json::parse(e.out);
}

// What a rank of one stage sends in a step, by kind, by what the graph's tasks are.
inline sim::llm::ByKind<double> sent_by(const sim::llm::LlmWorkload& w, Rank stage, Rank in_node = 8) {
  using namespace sim::llm;
  const Expansion e = expand(w, in_node);
  ByKind<double> all{};
  for (const StepTask& t : schedule(e).tasks)
    if (t.stage == stage && !t.computes())
      for (const TrafficCall& c : e.traffic[t.traffic].calls)
        all[std::size_t(e.traffic[t.traffic].kind)] += sent_bytes(c, group_size(c.groups, w.parallel, in_node));
  return all;
}

}  // namespace gccl::test
