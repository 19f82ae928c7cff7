// A diagnosis on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/measured/diagnosis/diagnosis.hpp"
#include "sim/measured/validation/validation.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::string text_in(const Json& value) { return value.get<std::string>(); }

std::string rows_text(const Json& rows, std::size_t columns) {
  std::vector<std::vector<std::string>> lines{
      {"call", "found", "expected", "busbw found", "expected", "found/expected"}};
  for (const Json& r : rows)
    lines.push_back({fmt::format("{} {} x {}, {}", text_in(r["collective"]), r["nodes"].get<Rank>(),
                                 r["gpus_per_node"].get<Rank>(), json::format_bytes(r["bytes"].get<Count>())),
                     format_time(r["found_us"]), format_time(r["expected_us"]),
                     fmt::format("{:.4g} GB/s", r["found_busbw_GBps"].get<double>()),
                     fmt::format("{:.4g} GB/s", r["expected_busbw_GBps"].get<double>()),
                     fmt::format("{:.2f}{}", r["ratio"].get<double>(), r["outlier"].get<bool>() ? " outlier" : "")});
  return aligned(lines, columns);
}

const Json& of_cause(const Json& d, std::string_view cause) {
  return *std::find_if(d["hypotheses"].begin(), d["hypotheses"].end(),
                       [&](const Json& h) { return h["cause"] == cause; });
}

std::string verdict_text(const Json& d) {
  const double share = d["short_share"].get<double>() * 100, healthy = of_cause(d, "healthy")["error_percent"];
  const Json& first = d["hypotheses"][0];
  if (d["verdict"] == "implausible")
    return "Implausible: most of the sizes take less than half as long as the cluster needs. Are units, numbers of "
           "ranks and the cluster right?\n";
  if (d["verdict"] == "healthy") {
    const std::string said = fmt::format(
        "As expected. {:.0f} % of the sizes are more than a quarter below what the cluster should reach.\n", share);
    if (first["cause"] == "healthy") return said;
    return said +
           fmt::format("Of the causes below \"{}\" fits these times best, but too little is missing to need one.\n",
                       text_in(first["title"]));
  }
  std::string text = fmt::format(
      "Shortfall: {:.0f} % of the sizes are more than a quarter below what the cluster should reach.\n", share);
  if (const auto observations = d["observations"].get<std::size_t>(); observations < kObservationsMin)
    return text + fmt::format("{} too few to tell causes apart: expected {} or more, sizes a factor of four apart.\n",
                              counted(observations, "observation") + (observations == 1 ? " is" : " are"),
                              kObservationsMin);
  if (d["verdict"] == "unexplained")
    return text + fmt::format(
                      "No cause that is known here explains it; predictions of a healthy cluster are "
                      "off by {:.0f} %.\n",
                      healthy);
  const std::string detail = text_in(first["detail"]);
  text += fmt::format(
      "Most likely {}{} ({:.0f} %): predictions are off by {:.0f} % then, and by {:.0f} % on a healthy cluster.\n",
      text_in(first["title"]), detail.empty() ? "" : ", " + detail, first["probability"].get<double>() * 100,
      first["error_percent"].get<double>(), healthy);
  for (const Json& h : d["hypotheses"])
    if (&h != &first && h["probability"].get<double>() * 3 > first["probability"].get<double>())
      text += fmt::format("These times hardly distinguish it from {}.\n", text_in(h["title"]));
  return text + fmt::format("Look at: {}.\n", text_in(first["check"]));
}

std::string outliers_text(const Json& rows) {
  const auto outliers =
      std::count_if(rows.begin(), rows.end(), [](const Json& row) { return row["outlier"].get<bool>(); });
  if (outliers == 0) return {};
  return fmt::format("Causes and errors are judged by {} of {}: the others are outliers.\n",
                     rows.size() - std::size_t(outliers), counted(rows.size(), "row"));
}

// Where that is so, a file and a line tell two diagnoses apart.
bool same_subject(const Json& a, const Json& b) { return a["system"] == b["system"] && a["note"] == b["note"]; }

std::string causes_text(const Json& hypotheses, std::size_t columns) {
  std::vector<std::vector<std::string>> lines{{"cause", "likely", "error", "at best as"}};
  for (const Json& h : hypotheses)
    lines.push_back({text_in(h["title"]), fmt::format("{:.1f} %", h["probability"].get<double>() * 100),
                     fmt::format("{:.1f} %", h["error_percent"].get<double>()), text_in(h["detail"])});
  return aligned(lines, columns);
}

}  // namespace

std::string diagnosis_text(Json document, std::size_t columns) {
  json::replace_control(document);
  std::string text;
  for (const Json& d : document["diagnoses"]) {
    if (!text.empty()) text += '\n';
    std::string what = text_in(d["system"]);
    if (const std::string note = text_in(d["note"]); !note.empty()) what += (what.empty() ? "" : ": ") + note;
    const Json &rows = d["rows"], &all = document["diagnoses"];
    if (std::count_if(all.begin(), all.end(), [&](const Json& other) { return same_subject(d, other); }) > 1)
      what += fmt::format("{}{}:{}", what.empty() ? "" : ", ", text_in(rows[0]["file"]), rows[0]["line"].get<int>());
    text += fmt::format("{}{}{}\n\n", text_in(document["cluster"]["name"]), what.empty() ? "" : ": ", what);
    text += rows_text(rows, columns) + '\n' + verdict_text(d) + outliers_text(rows) + '\n' +
            causes_text(d["hypotheses"], columns);
  }
  if (!document["skipped"].empty()) text += '\n' + skipped_text(document["skipped"]);
  for (const Json& remark : document["remarks"]) text += text_in(remark) + "\n";
  return text;
}

}  // namespace gccl::sim
