// JSON lines of NCCL's Inspector plugin (NVIDIA/nccl, plugins/profiler/inspector): one for each call of each rank.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "libgccl/base/limits.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/quantile.hpp"
#include "sim/measured/read/readers.hpp"

namespace gccl::sim {

struct InspectorRecords::Calls {
  // What is one point: nodes, ranks, collective and the size that the plugin gives.
  using Point = std::tuple<Rank, Rank, std::string, Count>;
  struct Found {
    FilePlace at;
    bool per_block = false;
    std::map<std::pair<std::string, Count>, double> slowest_us;  // of a call: its communicator and number in it
  };
  std::map<Point, Found> points;
  std::vector<Point> order;
};

InspectorRecords::InspectorRecords() : calls_(std::make_unique<Calls>()) {}
InspectorRecords::~InspectorRecords() = default;

bool InspectorRecords::read(std::string_view text, const std::string& file, RowCollector& to) {
  bool any = false;
  const std::vector<TextLine> lines = lines_of(text);
  std::optional<json::Node> header;  // newer versions write it once for all records that follow
  for (const TextLine& line : lines) {
    if (words_of(line.text).empty()) continue;
    const FilePlace at{file, line.number};
    const auto record = [&]() -> std::optional<json::Node> {
      try {
        return json::Node::parse(line.text, at.text());
      } catch (const json::InputError&) {
        if (line.number != lines.size()) throw;
        to.skip(at, "the last line is cut short");
        return std::nullopt;
      }
    }();
    if (!record) continue;
    if (const auto own = record->find("header")) header = own;
    const auto call = record->find("coll_perf");
    if (!call) {
      if (record->has("p2p_perf")) to.skip(at, "point to point, no collective");
      continue;
    }
    any = true;
    if (!header) {
      to.skip(at, "no record above it has a header");
      continue;
    }
    const Rank ranks = Rank(header->at("n_ranks").integer(1, kRanksMax)),
               nodes = Rank(header->at("nnodes").integer(1, ranks));
    const auto bytes = Count(call->at("coll_msg_size_bytes").integer(0, INT64_MAX));
    const double us = call->at("coll_exec_time_us").number(0, 1e15);
    if (us == 0) {
      to.skip(at, "its time is 0");
      continue;
    }
    const Calls::Point point{nodes, ranks, call->at("coll").string(), bytes};
    const auto [found, fresh] = calls_->points.try_emplace(point, Calls::Found{at, false, {}});
    if (fresh) calls_->order.push_back(point);
    // The plugin's size is that of a rank's block where its bandwidth says so, and that of all of them otherwise.
    const auto bandwidth = call->find("coll_algobw_gbs");
    if (const double algbw = bandwidth ? bandwidth->number(0, 1e9) : 0; algbw > 0 && bytes > 0)
      found->second.per_block = algbw * us * 1e3 / double(bytes) > std::sqrt(double(ranks)) && ranks > 1;
    else if (const auto kind = measured_collective(std::get<2>(point)); kind && fresh)
      found->second.per_block = counts_blocks(*kind);
    double& slowest =
        found->second.slowest_us[{header->at("id").string(), Count(call->at("coll_sn").integer(0, INT64_MAX))}];
    slowest = std::max(slowest, us);
  }
  return any;
}

void InspectorRecords::finish(RowCollector& to) {
  for (const Calls::Point& point : calls_->order) {
    const Calls::Found& found = calls_->points.at(point);
    const auto& [nodes, ranks, collective, bytes] = point;
    if (ranks % nodes != 0) {
      to.skip(found.at, "nodes with different numbers of ranks");
      continue;
    }
    std::vector<double> times;
    for (const auto& [call, us] : found.slowest_us) times.push_back(us);
    Measurement m;
    m.at = found.at;
    m.nodes = nodes;
    m.cards = ranks / nodes;
    m.collective = collective;
    m.algorithm = kNcclChoice;
    m.bytes = bytes;
    m.source = found.at.file;
    m.note = fmt::format("median; calls: {}", times.size());  // the same words for any number of them
    m.time_us = quantile(std::move(times), 0.5);
    to.add(std::move(m), found.per_block);
  }
}

}  // namespace gccl::sim
