#include "sim/tuning/regret.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

Json place_of(const Json& cell) {
  Json place;
  for (const char* key : {"collective", "ranks", "nodes", "bytes"}) place[key] = cell.at(key);
  return place;
}

// Statistics of those cells that have such a choice; null where none has.
Json statistics(const std::vector<const Json*>& cells, const std::string& whose) {
  std::vector<double> all;
  const Json* worst = nullptr;
  std::size_t within = 0, missing = 0;
  for (const Json* cell : cells) {
    const double r = regret_percent(*cell, whose);
    if (std::isnan(r)) {
      ++missing;
      continue;
    }
    if (all.empty() || r > *std::max_element(all.begin(), all.end())) worst = cell;
    all.push_back(r);
    within += r < 0.1;
  }
  if (all.empty()) return nullptr;
  std::sort(all.begin(), all.end());
  // The nearest-rank percentile.
  const auto p95 = std::size_t(std::ceil(0.95 * double(all.size()))) - 1;
  return {{"mean_percent", std::accumulate(all.begin(), all.end(), 0.0) / double(all.size())},
          {"p95_percent", all[p95]},
          {"worst_percent", all.back()},
          {"worst_at", place_of(*worst)},
          {"cells", all.size()},
          {"best_chosen", within},
          {"not_simulated", missing}};
}

}  // namespace

double regret_percent(const Json& cell, const std::string& whose) {
  const Json& tried = cell.at("tried");
  const Json& choice = cell.at(whose);
  const Json& at = choice.is_object() ? choice.at("tried") : choice;
  if (!at.is_number_unsigned() || at.get<std::size_t>() >= tried.size()) return NAN;
  const double best = tried[0].at("time_us"), own = tried[at.get<std::size_t>()].at("time_us");
  return best > 0 ? (own / best - 1) * 100 : 0;
}

std::string place_text(const Json& cell) {
  return fmt::format("{} {}, {}", cell.at("collective").get<std::string>(),
                     json::format_bytes(cell.at("bytes").get<std::uint64_t>()),
                     counted(cell.at("ranks").get<std::uint64_t>(), "rank"));
}

void add_regret(Json& document) {
  std::vector<const Json*> grid;
  std::map<std::string, std::vector<const Json*>> by_collective;
  Json left_out = {{"bound", 0}, {"prediction", 0}, {"work", 0}};
  std::size_t simulated = 0;
  const auto count = [&](const Json& place) {
    simulated += place["tried"].size();
    for (const char* why : {"bound", "prediction", "work"})
      left_out[why] = left_out[why].get<std::size_t>() + place["left_out"][why].get<std::size_t>();
  };
  for (const Json& place : document["between"])
    if (place.contains("tried")) count(place);
  for (const Json& cell : document["cells"]) {
    count(cell);
    if (cell["bisection"].get<bool>()) continue;
    grid.push_back(&cell);
    by_collective[cell["collective"].get<std::string>()].push_back(&cell);
  }
  document["simulated"] = simulated;
  document["left_out"] = left_out;
  document["regret"] = statistics(grid, "planner");
  document["regret_by_collective"] = Json::object();
  for (const auto& [kind, cells] : by_collective) document["regret_by_collective"][kind] = statistics(cells, "planner");
  document["others"] = {{"nccl", statistics(grid, "nccl")}, {"openmpi", statistics(grid, "openmpi")}};
  if (!grid.empty() && grid[0]->contains("table")) document["others"]["table"] = statistics(grid, "table");
}

}  // namespace gccl::sim
