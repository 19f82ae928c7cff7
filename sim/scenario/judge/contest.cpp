#include "sim/scenario/judge/contest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

bool compete(const nlohmann::json& a, const nlohmann::json& b) {
  for (const char* key : {"run", "cluster", "world_ranks", "engine"})
    if (a.at(key) != b.at(key)) return false;
  return is_single(a) && a.at("stated_bytes") == b.at("stated_bytes");
}

}  // namespace

double time_us(const nlohmann::json& row) { return row.at("time_us").get<double>(); }
bool is_single(const nlohmann::json& row) { return row.contains("dtype"); }

std::size_t competitors_end(const ResultRows& rows, std::size_t first) {
  std::size_t end = first + 1;
  while (end < rows.size() && compete(rows[end], rows[first])) ++end;
  return end;
}

Rivals rivals(const ResultRows& rows, std::size_t i, std::string_view name) {
  std::size_t first = i;
  while (first > 0 && compete(rows[first - 1], rows[i])) --first;
  const std::size_t end = competitors_end(rows, first);
  Rivals r{first, end, end};
  for (std::size_t k = first; k < end; ++k) {
    if (time_us(rows[k]) < time_us(rows[r.best])) r.best = k;
    if (rows[k].at("algorithm") == name) r.named = k;
  }
  return r;
}

std::string point_name(const ResultRows& rows, std::size_t i) {
  const nlohmann::json& row = rows[i];
  const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
  const auto differs = [&](const char* key) {
    return std::any_of(rows.begin(), rows.end(), [&](const nlohmann::json& r) { return r.at(key) != row.at(key); });
  };
  std::string all = "the whole";
  if (is_single(row))
    all = fmt::format("{} at {}", text("algorithm"), json::format_bytes(row.at("bytes").get<std::uint64_t>()));
  if (differs("world_ranks"))
    all += fmt::format(", {}", json::format_ranks(row.at("world_ranks").get<std::uint64_t>()));
  if (differs("cluster")) all += fmt::format(" on {}", text("cluster"));
  return all + fmt::format(" ({})", text("engine"));
}

std::string time_at(const ResultRows& rows, std::size_t i) {
  return fmt::format("{:.6g} us for {}", time_us(rows[i]), point_name(rows, i));
}

}  // namespace gccl::sim
