#include "sim/report/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/canvas.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : "-"; }
double number_of(const Json& object, const char* key) { return object.at(key).get<double>(); }

// "latency", "nic": what a column of parts is called.
std::string part_name(const Json& part) {
  if (part.contains("tier")) return part["tier"];
  std::string kind = part["kind"];
  std::replace(kind.begin(), kind.end(), '_', '-');
  return kind;
}

std::string sliced(const Json& plan) {
  const auto chunks = plan["chunks"].get<std::uint64_t>(), channels = plan["channels"].get<std::uint64_t>();
  if (chunks == 1) return "whole";
  return channels == 1 ? fmt::format("{} chunks", chunks) : fmt::format("{} in {} channels", chunks, channels);
}

// "ring, LL, 8 in 4 channels".
std::string plan_text(const Json& plan) {
  if (!plan["algorithm"].is_string()) return "-";
  std::string text = plan["algorithm"];
  if (plan.contains("protocol") && plan["protocol"].is_string()) text += ", " + plan["protocol"].get<std::string>();
  if (plan.contains("chunks") && plan["chunks"].get<std::uint64_t>() > 1) text += ", " + sliced(plan);
  return text;
}

std::string call_text(const Json& e) {
  return fmt::format("{} of {} ({} x {}) on {} of {}{}", e["collective"].get<std::string>(),
                     json::format_bytes(e["bytes"].get<std::uint64_t>()), e["count"].get<std::uint64_t>(),
                     e["dtype"].get<std::string>(), counted(e["ranks"].get<std::uint64_t>(), "rank"),
                     e["cluster"].get<std::string>(),
                     e.contains("parameters") ? ", with " + e["parameters"].get<std::string>() : "");
}

// Columns as wide as their widest cell; the first `left` ones flush left.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<std::size_t> width;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == width.size()) width.push_back(0);
      width[i] = std::max(width[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < left ? fmt::format(" {:<{}} ", row[i], width[i]) : fmt::format(" {:>{}} ", row[i], width[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

// Kinds of cost that some candidate's time goes to, as they are listed in each.
std::vector<std::size_t> parts_shown(const Json& candidates) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; !candidates.empty() && i < candidates[0]["parts"].size(); ++i)
    if (std::ranges::any_of(candidates, [&](const Json& c) {
          return number_of(c["parts"][i], "us") > 1e-4 * number_of(c, "predicted_us");
        }))
      shown.push_back(i);
  return shown;
}

std::string candidate_table(const Json& e) {
  const Json& candidates = e["candidates"];
  const auto shown = parts_shown(candidates);
  std::vector<std::vector<std::string>> rows{{"candidate", "protocol", "cut up", "predicted"}};
  for (const std::size_t i : shown) rows[0].push_back(part_name(candidates[0]["parts"][i]));
  for (const Json& c : candidates) {
    rows.push_back({c["algorithm"], text_of(c["protocol"]), sliced(c), format_time(number_of(c, "predicted_us"))});
    for (const std::size_t i : shown) {
      const double us = number_of(c["parts"][i], "us");
      rows.back().push_back(us > 1e-4 * number_of(c, "predicted_us") ? format_time(us) : "-");
    }
  }
  return "\nwhere the predicted time goes\n" + columns(rows, 3);
}

// With --as candidates and machines are still what GCCL compares; where the choice changes is the other library's.
struct Headings {
  std::string library, lost, crossovers, what_if;
};
Headings headings(const Json& e) {
  if (e["planner"] == "gccl")
    return {"GCCL", "why the others lost", "where the choice changes with the size", "what would change it"};
  const std::string library = e["planner"] == "nccl" ? "NCCL" : "Open MPI";
  return {library, "why the others lose to GCCL's own choice",
          fmt::format("where {}'s choice changes with the size", library), "what would change GCCL's own choice"};
}

std::string reasons(const Json& e, bool all) {
  std::string text;
  std::set<std::string> seen;
  const Json& candidates = e["candidates"];
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Json& c = candidates[i];
    const bool first = seen.insert(c["algorithm"]).second;
    if (i == 0 || (!first && !all && c["algorithm"] != candidates[0]["algorithm"])) continue;
    text += fmt::format("  {}{}: {}\n", c["algorithm"].get<std::string>(),
                        c["protocol"].is_string() ? " with " + c["protocol"].get<std::string>() : "",
                        c["why"].get<std::string>());
  }
  for (const Json& x : e["excluded"]) {
    if (x["protocol"].is_string() && !all) continue;
    text += fmt::format("  {}{}: {}\n", x["algorithm"].get<std::string>(),
                        x["protocol"].is_string() ? " with " + x["protocol"].get<std::string>() : "",
                        x["why"].get<std::string>());
  }
  return text.empty() ? "" : fmt::format("\n{}\n{}", headings(e).lost, text);
}

std::string crossover_table(const Json& e) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& c : e["crossovers"]) {
    rows.push_back({"from " + json::format_bytes(c["from_bytes"].get<std::uint64_t>())});
    if (c.contains("theirs")) {
      rows.back().push_back(text_of(c["theirs"]));
      rows.back().push_back(c["algorithm"].is_string() ? "here: " + c["algorithm"].get<std::string>()
                                                       : "no such row here");
    } else {
      rows.back().push_back(c["algorithm"].is_string()
                                ? fmt::format("{}{}", c["algorithm"].get<std::string>(),
                                              c["protocol"].is_string() ? ", " + c["protocol"].get<std::string>() : "")
                                : "-");
    }
  }
  if (rows.empty() || e["collective"] == "barrier") return {};
  return fmt::format("\n{}\n{}", headings(e).crossovers, columns(rows, 3));
}

std::string what_if_table(const Json& e) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& w : e["what_if"])
    rows.push_back({w["what"], format_time(number_of(w, "predicted_us")),
                    fmt::format("{:.3g} % less", std::max(0.0, number_of(w, "saves_percent"))),
                    w["changes"].get<bool>() ? "the choice becomes " + plan_text(w) : "the same choice"});
  return rows.empty() ? "" : fmt::format("\n{}\n{}", headings(e).what_if, columns(rows, 4));
}

std::string nccl_table(const Json& e) {
  if (!e.contains("nccl_model") || e["nccl_model"].empty()) return {};
  std::vector<std::vector<std::string>> rows{{"algorithm", "protocol", "NCCL's model says", "latency", "GB/s"}};
  for (const Json& c : e["nccl_model"])
    rows.push_back({c["algorithm"], c["protocol"], format_time(number_of(c, "time_us")),
                    format_time(number_of(c, "latency_us")), fmt::format("{:.4g}", number_of(c, "GBps"))});
  return "\nwhat NCCL's own model compares\n" + columns(rows, 2);
}

std::string headline(const Json& e) {
  const Json& c = e["choice"];
  const std::string who = headings(e).library;
  if (e["planner"] == "gccl") {
    if (!c["algorithm"].is_string()) return who + " has no algorithm for it";
    return fmt::format("GCCL takes {}: {} predicted", plan_text(c), format_time(number_of(c, "predicted_us")));
  }
  if (!c["theirs"].is_string())
    return who + (e["ranks"] == 1 ? " sends nothing on one rank" : " has no rule for it") +
           (e["candidates"].empty() ? ""
                                    : fmt::format("; GCCL takes {}: {} predicted", plan_text(e["candidates"][0]),
                                                  format_time(number_of(e["candidates"][0], "predicted_us"))));
  std::string text = fmt::format("{} takes {}", who, text_of(c["theirs"]));
  if (c["algorithm"].is_string()) {
    text += fmt::format("; GCCL's {} is predicted to take {}", plan_text(c), format_time(number_of(c, "predicted_us")));
    if (!e["candidates"].empty()) {
      const double best = number_of(e["candidates"][0], "predicted_us"), theirs = number_of(c, "predicted_us");
      text += fmt::format(", GCCL's own choice {}{}", plan_text(e["candidates"][0]),
                          best > 0 ? fmt::format(" {} ({:.3g} times as long)", format_time(best), theirs / best) : "");
    }
  }
  return text;
}

// Colours that stay apart in print and for most colour-blind readers (Okabe, Ito 2008).
constexpr std::string_view kColors[] = {"#999999", "#0072b2", "#cc79a7", "#d55e00", "#e69f00",
                                        "#f0e442", "#009e73", "#56b4e9", "#444444", "#7b5b3a"};

}  // namespace

std::string explanation_text(Json e, bool all) {
  json::replace_control(e);
  std::string text =
      fmt::format("{}\n{}\n  {}\n", call_text(e), headline(e), e["choice"]["decided"].get<std::string>());
  if (const Json& c = e["choice"]; c.contains("note") && !c["note"].get<std::string>().empty())
    text += fmt::format("  {}\n", c["note"].get<std::string>());
  text += nccl_table(e);
  if (!e["candidates"].empty()) text += candidate_table(e);
  return text + reasons(e, all) + crossover_table(e) + what_if_table(e);
}

std::string explanation_svg(Json e) {
  json::replace_control(e);
  constexpr double kLeft = 250, kWidth = 560, kRow = 22, kTop = 96;
  const Json& candidates = e["candidates"];
  const auto shown = parts_shown(candidates);
  Canvas canvas;
  canvas.text(20, 28, call_text(e), 16, Canvas::Anchor::start, "#263238", true);
  canvas.text(20, 48, headline(e), 12);
  double x = 20;
  for (std::size_t k = 0; k < shown.size(); ++k) {
    const std::string name = part_name(candidates[0]["parts"][shown[k]]);
    canvas.box(x, 62, 12, 12, kColors[k % std::size(kColors)], "#607d8b");
    canvas.text(x + 17, 72, name, 11);
    x += 34 + Canvas::width_of(name, 11);
  }
  // Far slower ones would leave nothing to see of the others: a bar ends at four times the chosen one's time.
  double longest = 0;
  for (const Json& c : candidates) longest = std::max(longest, number_of(c, "predicted_us"));
  if (!candidates.empty() && number_of(candidates[0], "predicted_us") > 0)
    longest = std::min(longest, 4 * number_of(candidates[0], "predicted_us"));
  double y = kTop;
  for (const Json& c : candidates) {
    canvas.text(kLeft - 8, y + 13, fmt::format("{} {}", c["algorithm"].get<std::string>(), text_of(c["protocol"])), 11,
                Canvas::Anchor::end, "#263238", &c == &candidates[0]);
    double at = 0;
    for (std::size_t k = 0; k < shown.size() && longest > 0; ++k) {
      const double us = std::max(0.0, number_of(c["parts"][shown[k]], "us")), end = std::min(longest, at + us);
      if (end > at)
        canvas.box(kLeft + at / longest * kWidth, y, (end - at) / longest * kWidth, kRow - 6,
                   kColors[k % std::size(kColors)], "none");
      at += us;
    }
    canvas.text(kLeft + std::min(1.0, longest > 0 ? at / longest : 0) * kWidth + 6, y + 12,
                format_time(number_of(c, "predicted_us")) + (at > longest * 1.0001 ? " (bar cut)" : ""), 11);
    y += kRow;
  }
  y += 26;
  const auto section = [&](std::string_view title) {
    canvas.text(20, y, title, 13, Canvas::Anchor::start, "#263238", true);
    y += 20;
  };
  if (!e["crossovers"].empty() && e["collective"] != "barrier") {
    section(headings(e).crossovers);
    for (const Json& c : e["crossovers"]) {
      const std::string what = c.contains("theirs")
                                   ? text_of(c["theirs"])
                                   : fmt::format("{} {}", text_of(c["algorithm"]), text_of(c["protocol"]));
      canvas.text(40, y, fmt::format("from {}: {}", json::format_bytes(c["from_bytes"].get<std::uint64_t>()), what),
                  11);
      y += 16;
    }
    y += 16;
  }
  if (!e["what_if"].empty()) section(headings(e).what_if);
  for (const Json& w : e["what_if"]) {
    canvas.text(40, y,
                fmt::format("{}: {} ({:.3g} % less), {}", w["what"].get<std::string>(),
                            format_time(number_of(w, "predicted_us")), std::max(0.0, number_of(w, "saves_percent")),
                            w["changes"].get<bool>() ? "the choice becomes " + plan_text(w) : "the same choice"),
                11);
    y += 16;
  }
  return canvas.document(kLeft + kWidth + 150, y + 10, call_text(e));
}

}  // namespace gccl::sim
