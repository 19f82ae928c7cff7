// What `gccl bench --json` writes.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "libgccl/base/limits.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/schedule/lane.hpp"
#include "sim/measured/read/readers.hpp"
#include "sim/scenario/description/scenario.hpp"

namespace gccl::sim {
bool is_bench(const json::Node& document) {
  const auto schema = document.is_object() ? document.find("schema") : std::nullopt;
  return schema && schema->is_string() && schema->string().starts_with("gccl/bench/");
}

void read_bench(const json::Node& document, std::string_view text, const std::string& file, RowCollector& to) {
  document.schema("gccl/bench/1");
  const Rank ranks = Rank(document.at("ranks").integer(1, kRanksMax)),
             nodes = Rank(document.at("nodes").integer(1, ranks));
  bool equal = ranks % nodes == 0;
  if (const auto counts = document.find("ranks_per_node"))  // older files do not say
    for (const json::Node& count : counts->items()) equal &= count.integer(1, ranks) == ranks / nodes;
  const std::vector<std::size_t> lines = lines_with(text, "\"time_us\"");
  const std::vector<json::Node> runs = document.at("runs").items();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const json::Node& run = runs[i];
    const FilePlace at{file, i < lines.size() ? lines[i] : 1};
    if (run.at("wrong").integer(0, INT64_MAX) > 0) {
      to.skip(at, "with wrong elements");
      continue;
    }
    if (!equal) {
      to.skip(at, "nodes with different numbers of ranks");
      continue;
    }
    const bool by_auto = run.at("auto").boolean();
    std::optional<Slicing> slicing;
    if (const auto chunks = run.find("chunks"); chunks && !by_auto)
      slicing = {.shares = Count(chunks->integer(1, INT32_MAX)),
                 .lanes = Count(run.at("channels").integer(1, INT32_MAX)),
                 .window = unsigned(run.at("window").integer(1, kWindowMax))};
    if (slicing && (slicing->shares > kSharesMax || slicing->lanes > kLanesMax)) {
      to.skip(at,
              fmt::format("cut up into more than {} chunks or {} channels, a scenario's most", kSharesMax, kLanesMax));
      continue;
    }
    const std::string dtype = run.at("dtype").string();
    Measurement m;
    m.at = at;
    m.nodes = nodes;
    m.cards = ranks / nodes;
    m.collective = run.at("collective").string();
    m.algorithm = by_auto ? "auto" : run.at("algorithm").string();
    m.bytes = Count(run.at("bytes").integer(0, INT64_MAX));
    m.time_us = run.at("time_us").number(0, 1e15);
    m.dtype = dtype_named(dtype).value_or(Dtype::f32);
    m.in_place = run.at("in_place").boolean();
    m.slicing = slicing;
    if (const auto root = run.find("root"); root && !root->raw().is_null()) m.root = Rank(root->integer(0, ranks - 1));
    m.source = file;
    m.note = fmt::format("by {}; dtype={}", document.at("engine").string(), dtype);
    to.add(std::move(m));
  }
}

}  // namespace gccl::sim
