// The schema of workloads: it judges as the reader does.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "libgccl/elements/dtype.hpp"
#include "tests/llm/llm_support.hpp"
#include "tests/support/json_schema.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

using Document = nlohmann::json;

const JsonSchema& workload_schema() {
  static const JsonSchema schema(Document::parse(read_text(kRoot / "sim/llm/workload.schema.json")));
  return schema;
}

std::string reader_says(const Document& workload) {
  try {
    sim::llm::read_workload(json::Node::parse(workload.dump(), kRoot / "workloads/changed.json"));
  } catch (const json::InputError& e) {
    return e.what();
  }
  return "accepted";
}

// Every key but chakra's.
Document whole_workload() {
  return Document::parse(R"({
    "$schema": "x", "schema": "gccl/workload/1", "name": "n", "description": "d", "sources": {"/model": "s"},
    "cluster": "../topologies/dgx-h100-superpod-2048.json", "phase": "training",
    "model": {"name": "m", "source": "s", "layers": 8, "hidden": 1024, "ffn": 4096, "heads": 16, "kv_heads": 16,
              "head_dim": 64, "vocabulary": 8192, "gated": false, "tied": false,
              "latent": {"q_rank": 64, "kv_rank": 64, "rope_dim": 16, "nope_dim": 32, "value_dim": 32},
              "experts": {"count": 8, "top_k": 2, "shared": 1, "ffn": 64, "dense_first": 1, "nodes_max": 2,
                          "load": "uniform"}},
    "parallel": {"tensor": 1, "context": 1, "data": 8, "pipeline": 2, "expert": 8, "interleave": 2, "zero": 1,
                 "sequence": true, "source": "s"},
    "sequence": 512, "batch": {"sequences": 32, "micro": 1}, "bucket_bytes": "8MiB", "dtype": "bf16",
    "gradient_dtype": "float32", "dispatch_bytes": 1, "recompute": "full",
    "compute": {"card_TFLOPS": 100, "efficiency": 0.5, "memory_GBps": 1000, "memory_efficiency": 0.5,
                "layer_us": {"forward": 1000, "backward": "2ms"}, "optimizer_us": 5, "source": "s"},
    "memory_GB": 80,
    "overlap": {"tensor": false, "context": false, "expert": true, "data": true, "pipeline": true, "embedding": true},
    "sm_share": {"tensor": 0.1, "context": 0.1, "expert": 0.1, "data": 0.1, "pipeline": 0, "embedding": 0},
    "engine": "flow", "planner": "gccl", "algorithms": {"allreduce": "ring", "alltoall": "auto"},
    "placement": {"random": 3}, "seed": 1,
    "expect": {"max_step_us": 1, "min_step_us": "1ms", "min_mfu_percent": 1, "max_mfu_percent": 1,
               "max_exposed_percent": 1, "max_bubble_percent": 1}})");
}

}  // namespace

TEST_CASE("the schema of workloads and their reader judge every changed workload alike") {
  std::size_t changed = 0, refused = 0;
  const auto judge = [&](const Document& workload) {
    const std::string why = reader_says(workload);
    CAPTURE(workload.dump());
    CAPTURE(why);
    CHECK(workload_schema().accepts(workload) == (why == "accepted"));
    ++changed;
    refused += why != "accepted";
  };
  const Document kValues[] = {nullptr,
                              true,
                              false,
                              -1,
                              0,
                              0.5,
                              1e300,
                              std::int64_t(1) << 62,
                              "",
                              "x",
                              "2MiB",
                              "7us",
                              Document::array(),
                              Document::object(),
                              {{"x", 1}}};
  // Rules that join two values, and names of files and algorithms, are the reader's alone.
  const std::set<std::string> joined = {"/parallel/data", "/parallel/pipeline", "/model/experts", "/parallel",
                                        "/compute/card_TFLOPS"};
  const auto judged_elsewhere = [](const std::string& path, const Document& value) {
    if (path.starts_with("/algorithms/")) return value.is_string();
    if (path == "/cluster" || path.starts_with("/chakra/")) return value.is_string() && value != "";
    return path == "/parallel" && value.is_object();
  };
  const auto visit = [&](auto&& self, const Document& original, const Document::json_pointer& at) -> void {
    for (const auto& [key, value] : original[at].items()) {
      const std::string path = (at / key).to_string();
      Document workload = original;
      workload[at].erase(key);
      if (!joined.contains(path)) judge(workload);
      workload[at][key + "z"] = value;
      if (path != "/sources/~1model") judge(workload);
      workload[at].erase(key + "z");
      for (const Document& other : kValues) {
        if (judged_elsewhere(path, other)) continue;
        workload[at][key] = other;
        judge(workload);
      }
      if (value.is_object()) self(self, original, at / key);
    }
  };
  const Document training = whole_workload();
  Document decode = training;
  decode.merge_patch(
      Document::parse(R"({"phase": "decode", "recompute": null, "parallel": null, "model": {"experts": null},
                                         "batch": {"sequences": null}, "overlap": null})"));
  Document chakra = Document::parse(read_text(kRoot / "workloads/chakra-step.json"));
  chakra["cluster"] = training["cluster"];
  for (const Document& document : {training, decode, chakra}) {
    judge(document);
    REQUIRE(refused == 0);
    visit(visit, document, Document::json_pointer());
    refused = 0;
  }
  CHECK(changed > 2000);
}

TEST_CASE("the schema of workloads has the reader's limits and names") {
  const Document whole = whole_workload();
  const auto with = [&](const char* pointer, const Document& value) {
    Document workload = whole;
    workload[Document::json_pointer(pointer)] = value;
    return workload;
  };
  const std::int64_t count = std::int64_t(1) << 40, ranks = 1 << 20;
  const std::pair<const char*, std::int64_t> kMost[] = {
      {"/model/layers", 100'000},      {"/model/hidden", count},         {"/model/latent/q_rank", count},
      {"/model/experts/count", count}, {"/model/experts/shared", count}, {"/parallel/tensor", ranks},
      {"/parallel/expert", ranks},     {"/parallel/interleave", 1024},   {"/parallel/zero", 3},
      {"/sequence", 1ll << 32},        {"/batch/sequences", count},      {"/batch/micro", count},
      {"/dispatch_bytes", 8}};
  for (const auto& limit : kMost) {
    const auto& [pointer, most] = limit;
    CAPTURE(limit.first);
    CHECK(workload_schema().accepts(with(pointer, most)));
    CHECK(!workload_schema().accepts(with(pointer, most + 1)));
    CHECK(reader_says(with(pointer, most + 1))
              .find(fmt::format("{}: found {}, expected an integer", pointer, most + 1)) != std::string::npos);
  }
  for (const auto& wrong : {std::pair("/bucket_bytes", Document(1023)),
                            {"/bucket_bytes", Document("1.5")},
                            {"/bucket_bytes", Document("1.2.3MB")},
                            {"/compute/optimizer_us", Document("1.2.3us")},
                            {"/compute/optimizer_us", Document(9e15)},
                            {"/expect/max_step_us", Document("5")},
                            {"/compute/layer_us/forward", Document(-1)},
                            {"/memory_GB", Document(2e9)},
                            {"/dtype", Document("fp32")},
                            {"/algorithms", Document({{"allreduse", "ring"}})},
                            {"/placement", Document({{"cards", {4294967296}}})},
                            {"/cluster", Document("")}}) {
    const auto& [pointer, value] = wrong;
    CAPTURE(wrong.first);
    CAPTURE(wrong.second.dump());
    CHECK(!workload_schema().accepts(with(pointer, value)));
    CHECK(reader_says(with(pointer, value)).find(pointer) != std::string::npos);
  }
  for (const Dtype t : dtypes()) {
    CHECK(workload_schema().accepts(with("/dtype", std::string(name(t)))));
    CHECK(reader_says(with("/dtype", std::string(name(t)))) == "accepted");
  }
  for (const std::string_view c : collective_names())
    CHECK(workload_schema().accepts(with("/algorithms", {{std::string(c), "auto"}})));
}
