#include "sim/scenario/judge/contest.hpp"

#include <fmt/format.h>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

bool compete(const ResultRow& a, const ResultRow& b) {
  return a.single && a.run == b.run && a.world_ranks == b.world_ranks && a.cluster == b.cluster &&
         a.engine == b.engine && a.stated_bytes == b.stated_bytes;
}

}  // namespace

bool completed(const nlohmann::json& row) {
  const auto faults = row.is_object() ? row.find("faults") : row.end();
  return faults == row.end() || !faults->is_object() || faults->value("completed", nlohmann::json()) != false;
}

ResultRows::ResultRows(const std::vector<nlohmann::json>& rows) {
  rows_.reserve(rows.size());
  for (const nlohmann::json& json : rows) {
    const auto text = [&](const char* key) -> std::string_view { return json.at(key).get_ref<const std::string&>(); };
    ResultRow row{.json = &json,
                  .run = json.at("run"),
                  .cluster = text("cluster"),
                  .engine = text("engine"),
                  .algorithm = text("algorithm"),
                  .world_ranks = json.at("world_ranks"),
                  .automatic = json.at("auto"),
                  .single = json.contains("dtype"),
                  .stated_bytes = {}};
    if (row.single) json.at("stated_bytes").get_to(row.stated_bytes);
    if (const auto time = json.find("time_us"); time != json.end()) row.time_us = *time;
    row.completed = sim::completed(json);
    several_clusters_ = several_clusters_ || (!rows_.empty() && row.cluster != rows_[0].cluster);
    several_ranks_ = several_ranks_ || (!rows_.empty() && row.world_ranks != rows_[0].world_ranks);
    rows_.push_back(std::move(row));
  }
}

std::size_t ResultRows::competitors_end(std::size_t first) const {
  std::size_t end = first + 1;
  while (end < rows_.size() && compete(rows_[end], rows_[first])) ++end;
  return end;
}

ResultRows::Rivals ResultRows::rivals(std::size_t i, std::string_view name) const {
  std::size_t first = i;
  while (first > 0 && compete(rows_[first - 1], rows_[i])) --first;
  const std::size_t end = competitors_end(first);
  Rivals r{end, end, end};
  for (std::size_t k = first; k < end; ++k) {
    if (rows_[k].completed && (r.best == end || rows_[k].time_us < rows_[r.best].time_us)) r.best = k;
    if (rows_[k].algorithm == name) r.named = k;
  }
  return r;
}

std::string ResultRows::name(std::size_t i) const {
  const ResultRow& row = rows_[i];
  std::string all = "the whole";
  if (row.single)
    all = fmt::format("{} at {}", row.algorithm, json::format_bytes(row.json->at("bytes").get<std::uint64_t>()));
  if (several_ranks_) all += fmt::format(", {}", counted(row.world_ranks, "rank"));
  if (several_clusters_) all += fmt::format(" on {}", row.cluster);
  return all + fmt::format(" ({})", row.engine);
}

std::string ResultRows::incomplete(std::size_t i) const { return fmt::format("did not complete for {}", name(i)); }

std::string ResultRows::time(std::size_t i) const { return fmt::format("{:.6g} us for {}", rows_[i].time_us, name(i)); }

}  // namespace gccl::sim
