#include "sim/tuning/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/canvas.hpp"
#include "sim/report/embedded.hpp"
#include "sim/report/table.hpp"
#include "sim/tuning/regret.hpp"
#include "sim/tuning/summary.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kChangesShown = 12;

constexpr std::string_view kOwnStyle = R"(
table.map { border-collapse: separate; border-spacing: 2px; font: 12px var(--mono); }
table.map th { font-weight: 600; padding: 2px 8px; text-align: right; color: var(--soft); }
table.map td { padding: 4px 8px; border-radius: 4px; color: #111; min-width: 84px; }
table.map td small { display: block; opacity: .75; }
table.list { border-collapse: collapse; font-size: 13.5px; }
table.list td, table.list th { padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); text-align: left; }
table.list td.n { white-space: nowrap; }
table.list + h4 { margin-top: 16px; }
pre { overflow-x: auto; max-height: 300px; font: 12px var(--mono); background: var(--paper); padding: 10px; }
svg { max-width: 100%; height: auto; background: #fff; border-radius: 8px; }
/* Wide tables scroll in their card. On a phone so do drawings, which would be too small to read. */
@media screen { .card { overflow-x: auto; } }
@media screen and (max-width: 640px) { svg { max-width: none; width: 760px; } }
@media print { pre { max-height: none; white-space: pre-wrap; overflow-wrap: anywhere; } }
)";

// Light enough for dark text; apart for most colour-blind readers (after Tol's light scheme, 2018).
constexpr std::string_view kColors[] = {"#77aadd", "#ee8866", "#44bb99", "#eedd88", "#ffaabb", "#bbcc33",
                                        "#99ddff", "#dddddd", "#c9a0dc", "#d2b48c", "#a8d8b9", "#f4c2c2"};

using Grid = std::map<std::uint64_t, std::map<std::uint64_t, const Json*>>;  // by bytes, then ranks

struct Shown {
  std::string color, text, small, hint;
};

template <class Show>
std::string heat_map(const Grid& grid, const std::set<std::uint64_t>& ranks, Show show) {
  std::string out = "<table class=\"map\"><tr><th></th>";
  for (const std::uint64_t n : ranks) out += fmt::format("<th>{}</th>", counted(n, "rank"));
  out += "</tr>\n";
  for (const auto& [bytes, row] : grid) {
    out += fmt::format("<tr><th>{}</th>", json::format_bytes(bytes));
    for (const std::uint64_t n : ranks) {
      const auto at = row.find(n);
      if (at == row.end()) {
        out += "<td></td>";
        continue;
      }
      const Shown s = show(*at->second);
      out += fmt::format("<td style=\"background:{}\" title=\"{}\">{}<small>{}</small></td>", s.color, escaped(s.hint),
                         escaped(s.text), escaped(s.small));
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

// White at 0, red from 30 % on.
std::string heat(double percent) {
  const double x = std::clamp(percent / 30, 0.0, 1.0);
  const auto mix = [&](int from, int to) { return int(std::lround(from + (to - from) * std::sqrt(x))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(226, 238), mix(245, 102), mix(236, 90));
}

double time_of(const Json& cell, const std::string& whose) {
  if (whose == "best") return cell["tried"][0]["time_us"];
  const double r = regret_percent(cell, whose);
  return cell["tried"][0]["time_us"].get<double>() * (1 + r / 100);
}

// At most some ten marks of an axis of times: decades, where there are fewer than two of these 1, 2 and 5 of each, and
// where this is too few as well both ends.
std::vector<double> time_marks(double low, double high) {
  std::vector<double> marks;
  for (const std::vector<double>& digits : {std::vector<double>{1}, {1, 2, 5}}) {
    marks.clear();
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10)
      for (const double digit : digits)
        if (digit * decade >= low && digit * decade <= high) marks.push_back(digit * decade);
    if (marks.size() >= 2) return marks;
  }
  return {low, high};
}

// Times against sizes, both logarithmic, of what was found and of what planners choose; empty where there is no size.
std::string curves(const std::vector<const Json*>& cells) {
  constexpr double kLeft = 70, kRight = 620, kTop = 20, kBottom = 280;
  const std::pair<std::string, std::string> kLines[] = {{"openmpi", "Open MPI's rules"},
                                                        {"nccl", "NCCL's rules"},
                                                        {"planner", "GCCL's planner"},
                                                        {"best", "the fastest"}};
  constexpr std::string_view kLineColors[] = {"#999999", "#d55e00", "#0072b2", "#009268"};
  std::set<double> sizes;
  double low = 1e300, high = 0;
  for (const Json* c : cells)
    for (const auto& [key, title] : kLines) {
      const double us = time_of(*c, key), bytes = (*c)["bytes"].get<double>();
      if (!(us > 0) || bytes <= 0) continue;
      sizes.insert(bytes);
      low = std::min(low, us), high = std::max(high, us);
    }
  if (sizes.empty()) return {};
  const double low_b = *sizes.begin(), high_b = std::max(*sizes.rbegin(), low_b * 2);
  high = std::max(high, low * 1.01);
  const auto x = [&](double b) { return kLeft + (kRight - kLeft) * std::log(b / low_b) / std::log(high_b / low_b); };
  const auto y = [&](double us) { return kBottom - (kBottom - kTop) * std::log(us / low) / std::log(high / low); };
  Canvas canvas;
  canvas.line(kLeft, kBottom, kRight, kBottom, "#b0bec5");
  canvas.line(kLeft, kTop, kLeft, kBottom, "#b0bec5");
  for (const double us : time_marks(low, high)) {
    canvas.line(kLeft, y(us), kRight, y(us), "#eceff3");
    canvas.text(kLeft - 6, y(us) + 4, format_time(us), 11, Canvas::Anchor::end);
  }
  // The largest size has its label, and of the others those that leave room.
  const auto half = [](double b) { return Canvas::width_of(json::format_bytes(std::uint64_t(b)), 11) / 2 + 2; };
  double taken = 0;
  for (const double b : sizes) {
    const double last = *sizes.rbegin();
    if (b != last && (x(b) - half(b) < taken || x(b) + half(b) > x(last) - half(last))) continue;
    canvas.text(x(b), kBottom + 18, json::format_bytes(std::uint64_t(b)), 11, Canvas::Anchor::middle);
    taken = x(b) + half(b);
  }
  double legend = kTop;
  for (std::size_t k = 0; k < std::size(kLines); ++k) {
    double last_x = -1, last_y = 0;
    for (const Json* c : cells) {
      const double us = time_of(*c, kLines[k].first), bytes = (*c)["bytes"].get<double>();
      if (!(us > 0) || bytes <= 0) continue;
      if (last_x >= 0)
        canvas.line(last_x, last_y, x(bytes), y(us), kLineColors[k], k + 1 == std::size(kLines) ? 2.2 : 1.4);
      last_x = x(bytes), last_y = y(us);
      canvas.box(last_x - 1.8, last_y - 1.8, 3.6, 3.6, kLineColors[k], kLineColors[k]);
    }
    if (last_x < 0) continue;
    canvas.line(kRight + 16, legend, kRight + 40, legend, kLineColors[k], 2);
    canvas.text(kRight + 46, legend + 4, kLines[k].second, 12);
    legend += 20;
  }
  return canvas.document(780, 310, "time against size");
}

std::string regret_row(std::string_view who, const Json& r) {
  if (r.is_null()) return fmt::format("<tr><td>{}</td><td colspan=\"4\">nothing to compare</td></tr>", who);
  return fmt::format(
      "<tr><td>{}</td><td class=\"n\">{} %</td><td class=\"n\">{} %</td><td>{} %: {}</td><td "
      "class=\"n\">{} of {}</td></tr>\n",
      who, format_number(r["mean_percent"]), format_number(r["p95_percent"]), format_number(r["worst_percent"]),
      escaped(place_text(r["worst_at"])), r["best_chosen"].get<std::size_t>(), r["cells"].get<std::size_t>());
}

std::string changes(const Json& document, const std::string& whose, const Exporting& how, std::string_view title) {
  const Json all = improvements(document, whose, how, kChangesShown);
  if (all.empty()) return {};
  std::string out = fmt::format(
      "<h4>{}</h4><table class=\"list\"><tr><th>call</th><th>now</th><th>better</th><th>saves</th></tr>\n", title);
  for (const Json& c : all)
    out += fmt::format("<tr><td>{}</td><td>{} ({})</td><td>{} ({})</td><td class=\"n\">{:.3g} %</td></tr>\n",
                       escaped(c["at"].get<std::string>()), escaped(c["now"].get<std::string>()),
                       format_time(c["now_us"]), escaped(c["best"].get<std::string>()), format_time(c["best_us"]),
                       (1 - c["best_us"].get<double>() / c["now_us"].get<double>()) * 100);
  return out + "</table>\n";
}

std::string collective_section(const std::string& kind, const std::vector<const Json*>& cells) {
  Grid grid;
  std::set<std::uint64_t> ranks;
  std::map<std::string, std::size_t> color;
  for (const Json* c : cells) {
    if ((*c)["tried"].empty()) continue;
    const auto n = (*c)["ranks"].get<std::uint64_t>();
    grid[(*c)["bytes"].get<std::uint64_t>()][n] = c;
    ranks.insert(n);
    color.emplace((*c)["tried"][0]["algorithm"].get<std::string>(), color.size());
  }
  if (grid.empty()) return {};
  std::string out =
      fmt::format("<h2 id=\"{0}\">{0}</h2>\n<div class=\"card\"><h4>The fastest algorithm</h4>\n", escaped(kind));
  out += heat_map(grid, ranks, [&](const Json& c) {
    const Json& best = c["tried"][0];
    const std::string protocol = best["protocol"].is_string() ? best["protocol"].get<std::string>() + ", " : "";
    return Shown{std::string(kColors[color[best["algorithm"].get<std::string>()] % std::size(kColors)]),
                 best["algorithm"], protocol + format_time(best["time_us"]),
                 fmt::format("{}: {} chunks in {} channels", place_text(c), best["chunks"].get<std::uint64_t>(),
                             best["channels"].get<std::uint64_t>())};
  });
  out += "</div>\n<div class=\"card\"><h4>How much longer GCCL's planner takes</h4>\n";
  out += heat_map(grid, ranks, [&](const Json& c) {
    const double r = regret_percent(c, "planner");
    if (std::isnan(r)) return Shown{"#eeeeee", "?", "not simulated", place_text(c)};
    const Json& own = c["tried"][c["planner"].get<std::size_t>()];
    return Shown{heat(r), format_number(r) + " %", own["algorithm"], place_text(c)};
  });
  std::vector<const Json*> most;
  for (const auto& [bytes, row] : grid)
    if (const auto at = row.find(*ranks.rbegin()); at != row.end()) most.push_back(at->second);
  out += "</div>\n";
  if (const std::string drawing = curves(most); !drawing.empty())
    out += fmt::format("<div class=\"card\"><h4>Time against size, {}</h4>\n{}</div>\n",
                       counted(*ranks.rbegin(), "rank"), drawing);
  return out;
}

std::string file_section(const ShownFile& f, std::size_t i) {
  return fmt::format(
      "<div class=\"card\"><h4>{} <button class=\"save\" "
      "onclick=\"navigator.clipboard.writeText(document.getElementById("
      "'file{}').textContent)\">copy</button></h4>\n<p class=\"soft\"><code>{}</code></p>\n<pre "
      "id=\"file{}\">{}</pre></div>\n",
      escaped(f.title), i, escaped(f.use), i,
      // Line ends stay, which escaped() would take away.
      [&] {
        std::string out;
        std::string_view left = f.text;
        while (!left.empty()) {
          const std::size_t end = std::min(left.find('\n'), left.size());
          out += escaped(left.substr(0, end)) + '\n';
          left.remove_prefix(std::min(left.size(), end + 1));
        }
        return out;
      }());
}

}  // namespace

std::string tuning_page(const Json& d, const std::vector<ShownFile>& files, const Exporting& how) {
  const std::string cluster = cluster_text(d);
  std::map<std::string, std::vector<const Json*>> by_collective;
  for (const Json& c : d["cells"]) by_collective[c["collective"]].push_back(&c);
  std::string body = fmt::format(
      "<header><h1>Tuning {}</h1><p class=\"facts\">{} cards on {}; {} engine, {}; {} simulations of {} "
      "calls{}</p>"
      "</header>\n<main>\n",
      escaped(cluster), d["cluster"]["cards"].get<std::size_t>(),
      counted(d["cluster"]["nodes"].get<std::size_t>(), "node"), escaped(d["engine"].get<std::string>()),
      escaped(d["dtype"].get<std::string>()), d["simulated"].get<std::size_t>(),
      d["cells"].size() +
          std::size_t(std::ranges::count_if(d["between"], [](const Json& p) { return p.contains("tried"); })),
      !d["failed"].empty()        ? "; <span class=\"badge bad\">incomplete</span>"
      : d["complete"].get<bool>() ? ""
                                  : "; <span class=\"badge bad\">interrupted</span>");
  body +=
      "<div class=\"card headlines\"><h3>How much longer than the fastest of all algorithms, at the sizes asked "
      "for</h3><table "
      "class=\"list\"><tr><th>who "
      "chooses</th><th>mean</th><th>95th percentile</th><th>worst</th><th>the fastest chosen</th></tr>\n" +
      regret_row("GCCL's planner", d["regret"]) + regret_row("NCCL's default rules", d["others"]["nccl"]) +
      regret_row("Open MPI's default rules", d["others"]["openmpi"]) +
      (d["others"].contains("table") ? regret_row("The table that was checked", d["others"]["table"]) : "") +
      "</table></div>\n";
  const std::string change =
      changes(d, "nccl", how, "In NCCL, with its file below; calls are cut up as GCCL's planner does") +
      changes(d, "openmpi", how, "In Open MPI, with its rules below") +
      changes(d, "planner", how, "In GCCL, with its table");
  if (!change.empty())
    body += "<div class=\"card\"><h3>What to change, and what it brings, also at sizes where winners change</h3>\n" +
            change + "</div>\n";
  for (const auto& [kind, cells] : by_collective) body += collective_section(kind, cells);
  if (!files.empty()) body += "<h2>Files</h2>\n";
  for (std::size_t i = 0; i < files.size(); ++i) body += file_section(files[i], i);
  const Json& out = d["left_out"];
  body += fmt::format(
      "</main>\n<footer><p class=\"facts\">Times are simulated. Not simulated: {} ways that cannot be faster by a "
      "bound "
      "of their own work, {} by prediction beyond {:.3g} times the best, {} of more than {:.3g} steps. NCCL's and Open "
      "MPI's rules choose on the same simulated machine, where GCCL's algorithms stand for theirs. gccl "
      "{}</p></footer>\n",
      out["bound"].get<std::size_t>(), out["prediction"].get<std::size_t>(), d["margin"].get<double>(),
      out["work"].get<std::size_t>(), d["steps_max"].get<double>(), escaped(d["version"].get<std::string>()));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"gccl\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
      "'unsafe-inline'\">\n<title>Tuning {}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(cluster), embedded::report_css, kOwnStyle, body);
}

}  // namespace gccl::sim
