#include "sim/llm/step_result.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

}  // namespace

Json step_head(const LlmWorkload& w, const Cluster& cluster, std::string_view phase, double step_us) {
  return {{"schema", "gccl/step/1"},
          {"version", GCCL_VERSION_TEXT},
          {"workload",
           {{"name", w.name}, {"description", w.description}, {"file", json::valid_text(w.where.file().string())}}},
          {"cluster", {{"name", cluster.name()}, {"cards", cluster.cards()}}},
          {"phase", phase},
          {"engine", name(w.engine)},
          {"ranks", w.parallel.ranks()},
          {"step_us", step_us}};
}

void add_operation(Json& call, const Json& operation) {
  call["algorithm"] = operation["algorithm"];
  call["groups_played"] = operation["groups"];
  if (const auto by = operation.find("decided_by"); by != operation.end()) call["decided_by"] = *by;
}

void add_stages(const std::vector<StageRow>& stages, Json& result) {
  StageTime mean;
  ByKind<double> sent_most{};
  Json rows = Json::array(), kinds = Json::object();
  for (const StageRow& stage : stages) {
    const StageTime& time = stage.time;
    mean.add(time, double(stages.size()));
    Json row = {{"compute_us", time.compute},   {"slowed_us", time.slowed},  {"bubble_us", time.bubble},
                {"exposed_us", Json::object()}, {"busy_us", Json::object()}, {"sent_bytes", Json::object()},
                {"memory", stage.memory}};
    for (std::size_t k = 0; k < kKinds; ++k) {
      sent_most[k] = std::max(sent_most[k], stage.sent_bytes[k]);
      if (stage.sent_bytes[k] == 0 && time.exposed[k] == 0 && time.busy[k] == 0) continue;
      const std::string key(kind_names()[k]);
      row["exposed_us"][key] = time.exposed[k];
      row["busy_us"][key] = time.busy[k];
      row["sent_bytes"][key] = stage.sent_bytes[k];
      kinds[key] = true;
    }
    rows.push_back(std::move(row));
  }
  for (auto& [key, value] : kinds.items()) {
    const auto k = std::size_t(std::ranges::find(kind_names(), key) - kind_names().begin());
    value = {{"busy_us", mean.busy[k]}, {"exposed_us", mean.exposed[k]}, {"sent_bytes_max", sent_most[k]}};
  }
  result["stages"] = std::move(rows);
  result["kinds"] = std::move(kinds);
  result["compute_us"] = mean.compute;
  result["slowed_us"] = mean.slowed;
  result["exposed_us"] = mean.idle(false);
  result["bubble_us"] = mean.bubble;
}

void add_expectations(const LlmWorkload& w, Json& result) {
  Json all = Json::array();
  bool ok = true;
  const double step = result["step_us"];
  const auto part = [&](const Json& us) { return step > 0 ? us.get<double>() / step * 100 : 0; };  // percent
  for (const auto& [key, node] : w.expectations) {
    const bool least = key.starts_with("min");
    double found = step;
    if (key.ends_with("mfu_percent")) {
      if (!result["mfu_percent"].is_number()) node.fail("without \"card_TFLOPS\" there is no MFU");
      found = result["mfu_percent"];
    } else if (key == "max_exposed_percent") {
      found = part(result["exposed_us"]);
    } else if (key == "max_bubble_percent") {
      found = part(result["bubble_us"]);
    }
    const double bound = key.ends_with("_us") ? double(node.nanos(1e3)) / 1e3 : node.number(0, 1e18);
    // A percentage that is computed may miss a stated one that it equals by rounding.
    const bool held = least ? found >= bound * (1 - 1e-12) : found <= bound * (1 + 1e-12);
    ok = ok && held;
    all.push_back({{"pointer", node.pointer()},
                   {"text", fmt::format("{}: {:.6g}", key, bound)},
                   {"found", fmt::format("{:.6g}", found)},
                   {"ok", held}});
  }
  result["expectations"] = std::move(all);
  result["ok"] = ok;
}

}  // namespace gccl::sim::llm
