#include "sim/scenario/judge/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::vector<std::string> differences(const Json& row, const Json& head) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : head.items())
    if (key != "run" && (!row.contains(key) || row[key] != value)) keys.push_back(key);
  return keys;
}

}  // namespace

std::optional<std::size_t> same_point(const Plan& plan, std::size_t run, const Point& point) {
  const bool single = plan.scenario->runs[run].kind == Run::Kind::collective;
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < plan.points.size(); ++i) {
    const Point& p = plan.points[i];
    if (p.run != run || p.world != point.world || p.engine != point.engine) continue;
    if (!single) return i;
    if (std::find_first_of(p.asked.begin(), p.asked.end(), point.asked.begin(), point.asked.end()) == p.asked.end())
      continue;
    if (p.part().algorithm == point.part().algorithm) return i;
    if (p.automatic && point.automatic) chosen = i;
  }
  return chosen;
}

const Json* same_row(const Json& rows, const Json& head, bool automatic) {
  const Json* chosen = nullptr;
  for (const Json& row : rows) {
    const auto differ = differences(row, head);
    if (differ.empty()) return &row;
    if (automatic && differ.size() == 1 && differ[0] == "algorithm" && row.value("auto", Json()) == true) chosen = &row;
  }
  return chosen;
}

std::string nearest_row(const Json& rows, const Json& head) {
  const Json* nearest = nullptr;
  std::vector<std::string> least;
  for (const Json& row : rows)
    if (auto differ = differences(row, head); !nearest || differ.size() < least.size())
      nearest = &row, least = std::move(differ);
  if (!nearest) return "";
  std::string text;
  for (const std::string& key : least)
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "; the nearest has " : ", ", key,
                        nearest->contains(key) ? json::format_value((*nearest)[key]) : "none",
                        json::format_value(head[key]));
  return text;
}

}  // namespace gccl::sim
