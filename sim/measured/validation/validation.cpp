#include "sim/measured/validation/validation.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "sim/measured/read/read.hpp"
#include "sim/measured/validation/outliers.hpp"
#include "sim/measured/validation/statistics.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPlacesOfReason = 3;

Json statistics_json(const std::vector<double>& errors) {
  const ErrorStatistics s = statistics_of(errors);
  return {{"points", s.points},   {"mape_percent", s.mape},   {"median_percent", s.median},
          {"p90_percent", s.p90}, {"worst_percent", s.worst}, {"bias_percent", s.bias}};
}

// One entry for each group of rows that have the same keys, in the order in which they first come.
Json grouped(const std::vector<const Json*>& rows, const std::function<Json(const Json&)>& keys) {
  std::vector<std::pair<Json, std::vector<double>>> groups;
  for (const Json* row : rows) {
    const Json key = keys(*row);
    auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == key; });
    if (at == groups.end()) at = groups.emplace(at, key, std::vector<double>());
    at->second.push_back((*row)["error_percent"].get<double>());
  }
  Json all = Json::array();
  for (const auto& [key, errors] : groups) {
    Json entry = key;
    entry.update(statistics_json(errors));
    all.push_back(std::move(entry));
  }
  return all;
}

Collective kind_of(const Json& row) { return *measured_collective(row["collective"].get<std::string>()); }

Json statistics_of_rows(const Json& rows, bool with_outliers) {
  std::vector<const Json*> used;
  std::vector<double> errors;
  for (const Json& row : rows)
    if (with_outliers || !row["outlier"].get<bool>()) {
      used.push_back(&row);
      errors.push_back(row["error_percent"].get<double>());
    }
  // Classes of one collective follow each other, short messages first.
  std::stable_sort(used.begin(), used.end(), [](const Json* a, const Json* b) {
    const auto place = [](const Json* row) {
      static constexpr Count kOnePerClass[] = {0, 32u << 10, 1u << 20, 64u << 20};
      std::size_t at = 0;
      while ((*row)["size_class"] != size_class(kOnePerClass[at])) ++at;
      return at;
    };
    return std::pair(name(kind_of(*a)), place(a)) < std::pair(name(kind_of(*b)), place(b));
  });
  // Programs spell the same collective differently: the first spelling is everybody's.
  std::map<Collective, std::string> spelling;
  for (const Json* row : used) spelling.try_emplace(kind_of(*row), (*row)["collective"]);
  return {
      {"overall", statistics_json(errors)},
      {"by_collective",
       grouped(used,
               [&](const Json& row) {
                 return Json::object({{"collective", spelling.at(kind_of(row))}, {"size_class", row["size_class"]}});
               })},
      {"by_system", grouped(used, [](const Json& row) {
         return Json::object({{"system", row["system"]}});
       })}};
}

}  // namespace

Json skipped_json(const std::vector<SkippedRow>& skipped) {
  std::vector<std::pair<std::string, std::vector<const SkippedRow*>>> reasons;
  for (const SkippedRow& s : skipped) {
    auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == s.reason; });
    if (at == reasons.end()) at = reasons.emplace(at, s.reason, std::vector<const SkippedRow*>());
    at->second.push_back(&s);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  Json all = Json::array();
  for (const auto& [reason, rows] : reasons) {
    Json first = Json::array();
    for (std::size_t i = 0; i < std::min(rows.size(), kPlacesOfReason); ++i) first.push_back(rows[i]->at.text());
    all.push_back({{"reason", reason}, {"rows", rows.size()}, {"first", std::move(first)}});
  }
  return all;
}

Json validation(const Measured& measured, const std::vector<Predicted>& predicted, const MeasuredPoints& points,
                const ValidatedWith& with) {
  const std::vector<std::string> outliers = outliers_of(measured.rows);
  Json rows = Json::array();
  for (const Predicted& p : predicted) {
    const Measurement& m = measured.rows[p.row];
    Json row = {{"system", m.system},
                {"nodes", m.nodes},
                {"gpus_per_node", m.cards},
                {"collective", m.collective},
                {"algorithm", m.algorithm},
                {"protocol", m.protocol},
                {"bytes", m.bytes},
                {"measured_us", m.time_us},
                {"predicted_us", p.us},
                {"error_percent", (p.us / m.time_us - 1) * 100},
                {"size_class", size_class(m.bytes)},
                {"dtype", name(m.dtype)},
                {"predicted_algorithm", p.algorithm},
                {"predicted_protocol", p.protocol},
                {"planner", p.planner},
                {"chunks", p.slicing.shares},
                {"channels", p.slicing.lanes},
                {"derived", m.derived},
                {"packed", points.packed(p.row)},
                {"outlier", !outliers[p.row].empty()},
                {"file", m.at.file},
                {"line", m.at.line}};
    if (!outliers[p.row].empty()) row["outlier_reason"] = outliers[p.row];
    rows.push_back(std::move(row));
  }
  const Json all = statistics_of_rows(rows, true), without = statistics_of_rows(rows, false);
  return {{"schema", "gccl/validation/1"},
          {"version", GCCL_VERSION_TEXT},
          {"cluster", {{"name", with.cluster}, {"file", with.cluster_file}}},
          {"parameters", with.parameters.empty() ? Json() : Json(with.parameters)},
          {"engine", with.engine},
          {"statistics", {{"all", all}, {"without_outliers", without}}},
          {"skipped", skipped_json(measured.skipped)},
          {"remarks", measured.remarks},
          {"rows", std::move(rows)}};
}

}  // namespace gccl::sim
