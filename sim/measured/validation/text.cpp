// A validation on a terminal, and as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/validation/validation.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::vector<std::string>>;

constexpr std::size_t kOutliersShown = 20, kWorstShown = 10, kReasonsShown = 12;

std::vector<std::string> figures(const Json& s) {
  std::vector<std::string> cells{s["points"].dump()};
  for (const char* key : {"mape_percent", "median_percent", "p90_percent", "worst_percent"})
    cells.push_back(fmt::format("{:.1f} %", s[key].get<double>()));
  cells.push_back(fmt::format("{:+.1f} %", s["bias_percent"].get<double>()));
  return cells;
}

void add_line(Lines& lines, const std::string& what, const Json& statistics) {
  lines.push_back({what});
  for (std::string& cell : figures(statistics)) lines.back().push_back(std::move(cell));
}

Lines heading(const std::string& what) { return {{what, "points", "MAPE", "median", "p90", "worst", "bias"}}; }

std::string point_text(const Json& row) {
  return fmt::format("{} of {}, {} x {} cards, {}", row["collective"].get_ref<const std::string&>(),
                     json::format_bytes(row["bytes"].get<Count>()), row["nodes"].get<Rank>(),
                     row["gpus_per_node"].get<Rank>(), row["algorithm"].get_ref<const std::string&>());
}

std::string place_text(const Json& row) {
  return fmt::format("{}:{}", row["file"].get_ref<const std::string&>(), row["line"].get<std::size_t>());
}

std::string statistics_text(const Json& d, std::size_t columns) {
  const Json &all = d["statistics"]["all"], &without = d["statistics"]["without_outliers"];
  const auto count = [](const Json& s) { return s["overall"]["points"].get<std::size_t>(); };
  const std::size_t outliers = count(all) - count(without);
  Lines lines = heading("error");
  add_line(lines, "all points", all["overall"]);
  if (outliers) add_line(lines, "without " + counted(outliers, "outlier"), without["overall"]);
  std::string text = aligned(lines, columns) + '\n';
  lines = heading(outliers ? "without outliers" : "collective");
  for (const Json& g : without["by_collective"])
    add_line(lines, g["collective"].get<std::string>() + " " + g["size_class"].get<std::string>(), g);
  text += aligned(lines, columns) + '\n';
  if (without["by_system"].size() > 1) {
    lines = heading("system");
    for (const Json& g : without["by_system"]) add_line(lines, system_name(g), g);
    text += aligned(lines, columns) + '\n';
  }
  return text;
}

std::string times_text(const Json& row) {
  const std::string protocol = row["predicted_protocol"];
  return fmt::format("measured {}, predicted {} ({}{}), {:+.0f} %", format_time(row["measured_us"]),
                     format_time(row["predicted_us"]), row["predicted_algorithm"].get_ref<const std::string&>(),
                     protocol.empty() ? "" : ", " + protocol, row["error_percent"].get<double>());
}

std::string points_text(const Json& rows) {
  std::vector<const Json*> outliers, others;
  for (const Json& row : rows) (row["outlier"].get<bool>() ? outliers : others).push_back(&row);
  std::string text;
  if (!outliers.empty()) text += "Outliers, measured points that are left out of the figures above:\n";
  for (std::size_t i = 0; i < std::min(outliers.size(), kOutliersShown); ++i)
    text += fmt::format("  {}: {}: {}, {}\n", place_text(*outliers[i]), point_text(*outliers[i]),
                        format_time((*outliers[i])["measured_us"]),
                        (*outliers[i])["outlier_reason"].get_ref<const std::string&>());
  if (outliers.size() > kOutliersShown) text += fmt::format("  and {} more\n", outliers.size() - kOutliersShown);
  if (!outliers.empty()) text += '\n';
  std::stable_sort(others.begin(), others.end(), [](const Json* a, const Json* b) {
    return std::abs((*a)["error_percent"].get<double>()) > std::abs((*b)["error_percent"].get<double>());
  });
  if (!others.empty()) text += "The worst points:\n";
  for (std::size_t i = 0; i < std::min(others.size(), kWorstShown); ++i)
    text += fmt::format("  {}: {}: {}\n", place_text(*others[i]), point_text(*others[i]), times_text(*others[i]));
  return text + (others.empty() ? "" : "\n");
}

}  // namespace

std::string system_name(const Json& group) {
  const auto& name = group["system"].get_ref<const std::string&>();
  return name.empty() ? "(no name)" : name;
}

std::string skipped_text(const Json& skipped) {
  std::size_t rows = 0;
  for (const Json& s : skipped) rows += s["rows"].get<std::size_t>();
  if (rows == 0) return {};
  std::string text = fmt::format("Skipped {}:\n", counted(rows, "row"));
  for (std::size_t i = 0; i < std::min(skipped.size(), kReasonsShown); ++i) {
    const Json& s = skipped[i];
    text += fmt::format("  {:>5}  {} ({}{})\n", s["rows"].get<std::size_t>(), s["reason"].get_ref<const std::string&>(),
                        s["first"][0].get_ref<const std::string&>(), s["rows"] > 1 ? ", ..." : "");
    rows -= s["rows"].get<std::size_t>();
  }
  if (rows)
    text += fmt::format("  {:>5}  for {}: gccl validate --json lists them\n", rows,
                        counted(skipped.size() - kReasonsShown, "other reason"));
  return text;
}

std::string left_out_text(Json d) {
  json::replace_control(d);
  std::string text = skipped_text(d["skipped"]);
  for (const Json& remark : d["remarks"]) text += remark.get<std::string>() + "\n";
  return text;
}

std::string left_out_text(const Measured& measured) {
  return left_out_text({{"skipped", skipped_json(measured.skipped)}, {"remarks", measured.remarks}});
}

std::string validation_text(Json d, std::size_t columns) {
  json::replace_control(d);
  std::string text = fmt::format(
      "{}: {} by {}{}\n\n", d["cluster"]["name"].get_ref<const std::string&>(), counted(d["rows"].size(), "point"),
      d["engine"] == "closed" ? "closed forms" : d["engine"].get<std::string>(),
      d["parameters"].is_null() ? "" : ", parameters of " + d["parameters"].get<std::string>());
  if (!d["rows"].empty()) text += statistics_text(d, columns) + points_text(d["rows"]);
  return text + left_out_text(std::move(d));
}

std::string validation_csv(const Json& document) {
  static const std::vector<std::string> kColumns{"system",
                                                 "nodes",
                                                 "gpus_per_node",
                                                 "collective",
                                                 "algorithm",
                                                 "protocol",
                                                 "bytes",
                                                 "measured_us",
                                                 "predicted_us",
                                                 "error_percent",
                                                 "size_class",
                                                 "dtype",
                                                 "predicted_algorithm",
                                                 "predicted_protocol",
                                                 "planner",
                                                 "chunks",
                                                 "channels",
                                                 "derived",
                                                 "packed",
                                                 "outlier",
                                                 "outlier_reason",
                                                 "file",
                                                 "line"};
  return csv_of(document.at("rows"), kColumns);
}

}  // namespace gccl::sim
