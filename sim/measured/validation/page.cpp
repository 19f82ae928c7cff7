// A validation as an HTML page: a plot of predicted against measured times, and the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/validation/validation.hpp"
#include "sim/report/canvas.hpp"
#include "sim/report/embedded.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kColours = 12;  // of report.css
constexpr double kSide = 620, kLeft = 76, kTop = 12, kBelow = 52;

std::string text_of(const Json& value) { return escaped(value.get_ref<const std::string&>()); }

// Both axes show the same decades, so that the diagonal is where a prediction is right.
class Plot {
 public:
  explicit Plot(const Json& rows) {
    low_ = 1e300;
    for (const Json& row : rows)
      for (const char* key : {"measured_us", "predicted_us"})
        if (const double us = row[key].get<double>(); us > 0) low_ = std::min(low_, us), high_ = std::max(high_, us);
    low_ = std::floor(std::log10(low_));
    high_ = std::max(low_ + 1, std::ceil(std::log10(high_)));
    for (const Json& row : rows) {
      const auto [at, fresh] = colour_.try_emplace(row["collective"].get<std::string>(), colour_.size() % kColours);
      add(row, at->second);
    }
  }

  std::string svg() const {
    std::string axes;
    for (double decade = low_; decade <= high_; ++decade) {
      const double us = std::pow(10, decade);
      axes += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>)", x(us), kTop,
                          kTop + kSide);
      axes += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/>)", kLeft,
                          kLeft + kSide, y(us));
      axes += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", x(us), kTop + kSide + 18,
                          format_time(us));
      axes += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 8, y(us) + 4,
                          format_time(us));
    }
    for (const double factor : {0.5, 1.0, 2.0}) axes += diagonal(factor);
    return fmt::format(
        "<svg class=\"chart\" viewBox=\"0 0 {0:.0f} {1:.0f}\" style=\"max-width:{0:.0f}px\" role=\"img\" "
        "aria-label=\"Predicted against measured times\">{2}{3}"
        "<text class=\"axis-title\" x=\"{4:.0f}\" y=\"{5:.0f}\" text-anchor=\"middle\">measured</text>"
        "<text class=\"axis-title\" transform=\"translate(14 {6:.0f}) rotate(-90)\" text-anchor=\"middle\">predicted"
        "</text></svg>",
        kLeft + kSide + 40, kTop + kSide + kBelow, axes, dots_, kLeft + kSide / 2, kTop + kSide + 42, kTop + kSide / 2);
  }

  std::string legend() const {
    std::string out = "<p class=\"key\">";
    for (const auto& [name, colour] : colour_)
      out += fmt::format(
          R"(<span class="s{}"><svg width="12" height="12"><circle class="dots" cx="6" cy="6" r="4"/></svg>{}</span>)",
          colour, escaped(name));
    return out +
           R"(<span class="other s7"><svg width="12" height="12"><circle class="dots" cx="6" cy="6" r="4"/></svg>outlier</span>)"
           "<span>lines: predicted as measured, half of it, twice as much</span></p>";
  }

 private:
  double x(double us) const { return kLeft + (std::log10(us) - low_) / (high_ - low_) * kSide; }
  double y(double us) const { return kTop + kSide - (std::log10(us) - low_) / (high_ - low_) * kSide; }

  std::string diagonal(double factor) const {
    const double shift = std::log10(factor);  // predicted = factor * measured
    const double from = std::max(low_, low_ - shift), to = std::min(high_, high_ - shift);
    return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)",
                       factor == 1 ? "even" : "cross", x(std::pow(10, from)), y(std::pow(10, from + shift)),
                       x(std::pow(10, to)), y(std::pow(10, to + shift)));
  }

  void add(const Json& row, std::size_t colour) {
    const double measured = row["measured_us"], predicted = row["predicted_us"];
    if (!(predicted > 0)) return;
    dots_ += fmt::format(
        R"(<g class="s{}{}"><circle class="dots" cx="{:.1f}" cy="{:.1f}" r="3.2"><title>{}, {} of {}, {} x {}, {}: measured {}, predicted {} ({}), {:+.1f} %</title></circle></g>)",
        colour, row["outlier"].get<bool>() ? " other" : "", x(measured), y(predicted), text_of(row["system"]),
        text_of(row["collective"]), json::format_bytes(row["bytes"].get<Count>()), row["nodes"].get<Rank>(),
        row["gpus_per_node"].get<Rank>(), text_of(row["algorithm"]), format_time(measured), format_time(predicted),
        text_of(row["predicted_algorithm"]), row["error_percent"].get<double>());
    dots_ += '\n';
  }

  double low_ = 0, high_ = -300;
  std::map<std::string, std::size_t> colour_;
  std::string dots_;
};

// A table of cells that are escaped already.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<div class=\"scroll tall\"><table class=\"numbers\"><thead><tr>";
  for (const std::string& h : head) out += "<th style=\"padding:4px 9px\">" + h + "</th>";
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += i == 0 ? "<td><span class=\"name\">" + row[i] + "</span></td>" : "<td>" + row[i] + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::vector<std::string> error_cells(std::string what, const Json& s) {
  std::vector<std::string> cells{std::move(what), s["points"].dump()};
  for (const char* key : {"mape_percent", "median_percent", "p90_percent", "worst_percent", "bias_percent"})
    cells.push_back(fmt::format("{:.1f} %", s[key].get<double>()));
  return cells;
}

std::string statistics_section(const Json& statistics) {
  const Json &all = statistics["all"], &without = statistics["without_outliers"];
  const std::vector<std::string> head{"", "points", "MAPE", "median", "p90", "worst", "bias"};
  std::vector<std::vector<std::string>> rows{error_cells("all points", all["overall"])};
  if (all["overall"]["points"] != without["overall"]["points"])
    rows.push_back(error_cells("without outliers", without["overall"]));
  for (const Json& g : without["by_collective"])
    rows.push_back(error_cells(text_of(g["collective"]) + " " + text_of(g["size_class"]), g));
  if (without["by_system"].size() > 1)
    for (const Json& g : without["by_system"]) rows.push_back(error_cells(escaped(system_name(g)), g));
  return "<section class=\"card\"><h3>Errors</h3><p class=\"facts\">Predicted / measured - 1, in percent; by "
         "collective "
         "and by system without outliers.</p>" +
         table(head, rows) + "</section>";
}

std::string rows_section(const Json& rows, bool outliers) {
  std::vector<std::vector<std::string>> cells;
  for (const Json& row : rows) {
    if (outliers && !row["outlier"].get<bool>()) continue;
    cells.push_back(
        {text_of(row["system"]), fmt::format("{} x {}", row["nodes"].get<Rank>(), row["gpus_per_node"].get<Rank>()),
         text_of(row["collective"]), text_of(row["algorithm"]), json::format_bytes(row["bytes"].get<Count>()),
         format_time(row["measured_us"]), format_time(row["predicted_us"]), text_of(row["predicted_algorithm"]),
         fmt::format("{:+.1f} %", row["error_percent"].get<double>()),
         outliers ? text_of(row["outlier_reason"])
                  : fmt::format("{}:{}", text_of(row["file"]), row["line"].get<std::size_t>())});
  }
  if (cells.empty()) return {};
  const std::vector<std::string> head{
      "system",   "nodes x cards", "collective", "algorithm", "bytes",
      "measured", "predicted",     "as",         "error",     outliers ? "why" : "from"};
  return fmt::format("<details class=\"card\"{}><summary>{} ({})</summary>{}</details>", outliers ? " open" : "",
                     outliers ? "Outliers" : "All points", cells.size(), table(head, cells));
}

std::string skipped_section(const Json& skipped) {
  if (skipped.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Json& s : skipped) {
    std::string places;
    for (const Json& at : s["first"]) places += (places.empty() ? "" : ", ") + text_of(at);
    rows.push_back({text_of(s["reason"]), s["rows"].dump(), places});
  }
  return "<section class=\"card\"><h3>Skipped rows</h3>" + table({"reason", "rows", "first"}, rows) + "</section>";
}

}  // namespace

std::string validation_html(const Json& given) {
  const Json d = Json::parse(json::format_value(given));  // what is no UTF-8 is replaced
  const std::string name = text_of(d["cluster"]["name"]);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"gccl\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{} - GCCL validation</title>\n<style>\n{}\n.even {{ stroke: var(--faint); }}\n"
      "/* On a phone the plot scrolls in its card: made as small, it could not be read. */\n"
      "@media screen {{ .card {{ overflow-x: auto; }} }}\n"
      "@media screen and (max-width: 640px) {{ svg.chart {{ width: 600px; }} "
      "}}\n</style>\n</head>\n<body>\n<header><h1>{}</h1>"
      "<p class=\"facts\">{}, predicted by {}{}</p></header>\n<main>\n",
      name, embedded::report_css, name, counted(d["rows"].size(), "measured point"),
      d["engine"] == "closed" ? "closed forms" : "the engine " + text_of(d["engine"]),
      d["parameters"].is_null() ? "" : ", parameters of " + text_of(d["parameters"]));
  if (!d["rows"].empty()) {
    const Plot plot(d["rows"]);
    page += "<section class=\"card\"><h3>Predicted against measured</h3>" + plot.legend() + plot.svg() +
            "</section>\n" + statistics_section(d["statistics"]) + rows_section(d["rows"], true);
  }
  page += skipped_section(d["skipped"]) + rows_section(d["rows"], false);
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace gccl::sim
