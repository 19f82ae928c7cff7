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

// What follows from a file's records, one after the other. Newer versions write a header once for all that follow.
struct InspectorRecords::Reading {
  Calls& calls;
  RowCollector& to;
  std::optional<json::Node> header = {};
  bool any = false;  // record of a call

  void add(const json::Node& record, const FilePlace& at) {
    if (const auto own = record.find("header")) header = own;
    const auto call = record.find("coll_perf");
    if (!call) {
      if (record.has("p2p_perf")) to.skip(at, "point to point, no collective");
      return;
    }
    any = true;
    if (!header) return to.skip(at, "no record above it has a header");
    const Rank ranks = Rank(header->at("n_ranks").integer(1, kRanksMax)),
               nodes = Rank(header->at("nnodes").integer(1, ranks));
    const auto bytes = Count(call->at("coll_msg_size_bytes").integer(0, INT64_MAX));
    const double us = call->at("coll_exec_time_us").number(0, 1e15);
    if (us == 0) return to.skip(at, "its time is 0");
    const Calls::Point point{nodes, ranks, call->at("coll").string(), bytes};
    const auto [found, fresh] = calls.points.try_emplace(point, Calls::Found{at, false, {}});
    if (fresh) calls.order.push_back(point);
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
};

bool is_inspector(const json::Node& document) {
  const auto is_record = [](const json::Node& value) {
    return value.is_object() && (value.has("header") || value.has("coll_perf"));
  };
  if (!document.is_array()) return is_record(document);
  const std::vector<json::Node> items = document.items();
  return std::any_of(items.begin(), items.end(), is_record);
}

namespace {

// The lines on which the items of a list begin that are objects.
std::vector<std::size_t> lines_of_items(std::string_view text) {
  std::vector<std::size_t> lines;
  std::size_t line = 1;
  JsonDepth at;
  for (const char c : text) {
    line += c == '\n';
    const bool in_list = at.depth == 1;
    at.take(c);
    if (in_list && at.depth == 2 && c == '{') lines.push_back(line);
  }
  return lines;
}

}  // namespace

bool InspectorRecords::read(const std::optional<json::Node>& whole, std::string_view text, const std::string& file,
                            RowCollector& to) {
  Reading reading{*calls_, to};
  if (whole && whole->is_array()) {
    const std::vector<std::size_t> lines = lines_of_items(text);
    std::size_t objects = 0;
    for (const json::Node& record : whole->items())
      reading.add(record, {file, record.is_object() ? lines.at(objects++) : 1});
    return reading.any;
  }
  if (whole) {
    const auto above = std::count(text.begin(), text.begin() + std::ptrdiff_t(text.find('{')), '\n');
    reading.add(*whole, {file, std::size_t(above) + 1});
    return reading.any;
  }
  const std::vector<JsonText> texts = json_texts_of(text);
  for (const JsonText& each : texts) {
    const FilePlace at{file, each.line};
    const auto record = [&]() -> std::optional<json::Node> {
      try {
        return json::Node::parse(each.text, at.text());
      } catch (const json::InputError&) {
        // What follows would be a part of it, were it cut short anywhere else.
        if (&each != &texts.back() || each.text.find("\n{") != each.text.npos) throw;
        to.skip(at, "the last record is cut short");
        return std::nullopt;
      }
    }();
    if (record) reading.add(*record, at);
  }
  return reading.any;
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
