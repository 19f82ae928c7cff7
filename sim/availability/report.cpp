#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "libgccl/base/counted.hpp"
#include "sim/availability/study.hpp"
#include "sim/report/canvas.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

std::string name_of(const Json& setting) {
  std::string name = setting["policy"].get<std::string>();
  if (name != "shrink") name += ", " + counted(setting["spare_nodes"].get<std::uint64_t>(), "spare");
  return name;
}

// A length of time below an axis.
std::string tick(double s) {
  return s < 600     ? fmt::format("{:.3g} s", s)
         : s < 36000 ? fmt::format("{:.3g} min", s / 60)
                     : fmt::format("{:.3g} h", s / 3600);
}

void expect(Json* all, bool ok, std::string text, std::string found) {
  all->push_back({{"text", std::move(text)}, {"found", std::move(found)}, {"ok", ok}});
}

// Goodput against the checkpoint interval: a line for each policy and number of spares, with a dot at each interval,
// and circles for what the formula says. Where colours come again, lines are dashed.
std::string chart(const Json& result, std::uint64_t cards) {
  static constexpr const char* kColors[] = {"#1565c0", "#2e7d32", "#c62828", "#6a1b9a",
                                            "#ef6c00", "#00838f", "#5d4037", "#455a64"};
  static constexpr const char* kDashes[] = {"", "6 3", "2 2", "9 3 2 3"};
  constexpr double kLeft = 60, kTop = 46, kWidth = 620, kHeight = 300, kRight = kLeft + kWidth, kEntry = 20;
  double least = 100, first = 1e300, last = 0;
  std::vector<std::pair<std::string, std::map<double, const Json*>>> lines;  // by interval
  for (const Json& s : result["settings"]) {
    if (s["cards"] != cards) continue;
    const std::string name = name_of(s);
    auto line = std::ranges::find(lines, name, [](const auto& l) { return l.first; });
    if (line == lines.end()) line = lines.insert(line, {name, {}});
    line->second[s["every_s"].get<double>()] = &s;
    least = std::min(least, s["goodput_percent"].get<double>());
    first = std::min(first, s["every_s"].get<double>());
    last = std::max(last, s["every_s"].get<double>());
  }
  least = std::clamp(std::floor(least / 10) * 10, 0.0, 90.0);
  if (last <= first) last = first * 2;
  const auto x = [&](double s) { return kLeft + kWidth * std::log(s / first) / std::log(last / first); };
  const auto y = [&](double percent) { return kTop + kHeight * (100 - percent) / (100 - least); };
  Canvas c;
  c.text(kLeft, 20, fmt::format("{}: work that is kept, % of the time", counted(cards, "card")), 14,
         Canvas::Anchor::start, "#263238", true);
  for (double p = least; p <= 100; p += (100 - least) / 5) {
    c.line(kLeft, y(p), kRight, y(p), "#cfd8dc", 0.6);
    c.text(kLeft - 6, y(p) + 4, fmt::format("{:.0f}", p), 11, Canvas::Anchor::end);
  }
  double taken = 0;  // by labels of the axis, which never overlap
  for (const auto& [s, point] : lines.front().second) {
    const double half = Canvas::width_of(tick(s), 11) / 2;
    if (x(s) - half < taken) continue;
    c.text(x(s), kTop + kHeight + 16, tick(s), 11, Canvas::Anchor::middle);
    taken = x(s) + half + 4;
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* const color = kColors[i % std::size(kColors)];
    const char* const dash = kDashes[i / std::size(kColors) % std::size(kDashes)];
    std::optional<std::pair<double, double>> before;
    for (const auto& [s, p] : lines[i].second) {
      const double px = x(s), py = y((*p)["goodput_percent"]);
      if (before) c.line(before->first, before->second, px, py, color, 1.8, dash);
      before = {px, py};
      c.box(px - 1.6, py - 1.6, 3.2, 3.2, color, color);
      if (!(*p)["daly_percent"].is_null()) c.box(px - 4, y((*p)["daly_percent"]) - 4, 8, 8, "none", color);
    }
    const double entry = kTop + kEntry * double(i);
    c.line(kRight + 14, entry + 6, kRight + 34, entry + 6, color, 2, dash);
    c.text(kRight + 40, entry + 10, lines[i].first, 12);
  }
  const double legend_ends = kTop + kEntry * double(lines.size()) + 14;
  c.text(kLeft + kWidth / 2, kTop + kHeight + 34, "work between two checkpoints", 12, Canvas::Anchor::middle);
  c.text(kRight + 14, legend_ends, "circles: Daly's formula", 11);
  return c.document(kRight + 190, std::max(kTop + kHeight + 46, legend_ends + 12),
                    "Goodput of " + counted(cards, "card"));
}

}  // namespace

Json availability_json(const AvailabilityStudy& s, const std::vector<AvailabilityOutcome>& outcomes) {
  Json settings = Json::array(), expectations = Json::array();
  double best = 0, worst_daly = -1;
  std::map<std::uint64_t, std::pair<double, std::uint64_t>> seen;  // by cards: seconds at risk, and failures, of all
  const auto mttf_of = [](double at_risk, std::uint64_t failures) {
    return failures > 0 ? std::optional(at_risk / double(failures)) : std::nullopt;
  };
  for (const AvailabilityOutcome& o : outcomes) {
    const auto percent = [](double part) { return part * 100; };
    const std::optional<double> mttf = mttf_of(o.at_risk, o.failures);
    settings.push_back({{"cards", o.cards},
                        {"policy", availability_policies()[std::size_t(o.policy)]},
                        {"spare_nodes", o.spares},
                        {"every_s", o.interval},
                        {"goodput_percent", percent(o.goodput)},
                        {"standard_error_percent", s.replicas > 1 ? Json(percent(o.error)) : Json()},
                        {"lowest_percent", percent(o.lowest)},
                        {"highest_percent", percent(o.highest)},
                        {"writing_percent", percent(o.writing)},
                        {"lost_percent", percent(o.lost)},
                        {"down_percent", percent(o.down)},
                        {"waiting_percent", percent(o.waiting)},
                        {"missing_percent", percent(o.missing)},
                        {"mttf_s", mttf ? Json(*mttf) : Json()},
                        {"daly_percent", o.daly < 0 ? Json() : Json(percent(o.daly))}});
    best = std::max(best, o.goodput);
    if (o.daly >= 0) worst_daly = std::max(worst_daly, std::abs(o.goodput - o.daly));
    seen[o.cards].first += o.at_risk;
    seen[o.cards].second += o.failures;
  }
  std::map<std::uint64_t, std::optional<double>> mttf;
  for (const auto& [cards, all] : seen) mttf[cards] = mttf_of(all.first, all.second);
  if (s.min_goodput >= 0)
    expect(&expectations, best >= s.min_goodput, fmt::format("goodput >= {:.4g} %", s.min_goodput * 100),
           fmt::format("{:.4g} % at best", best * 100));
  if (s.max_daly_error >= 0)
    expect(&expectations, worst_daly >= 0 && worst_daly <= s.max_daly_error,
           fmt::format("within {:.3g} points of Daly's formula", s.max_daly_error * 100),
           worst_daly < 0 ? "no restarts that never wait for a node, which it is about"
                          : fmt::format("{:.3g} points at worst", worst_daly * 100));
  for (const auto& [cards, time] : s.mttf)
    expect(&expectations, mttf[cards] && std::abs(*mttf[cards] / time - 1) <= s.mttf_tolerance,
           fmt::format("{}: a failure every {} h, within {:.3g} %", counted(cards, "card"), format_number(time / 3600),
                       s.mttf_tolerance * 100),
           mttf[cards] ? format_number(*mttf[cards] / 3600) + " h" : "no failure");
  Json intervals = Json::array();
  for (const auto& [cards, time] : mttf)
    if (time)
      intervals.push_back({{"cards", cards},
                           {"mttf_s", *time},
                           {"young_s", young_interval(s.write, *time)},
                           {"daly_s", daly_interval(s.write, *time)}});
  const bool ok =
      std::all_of(expectations.begin(), expectations.end(), [](const Json& e) { return e["ok"].get<bool>(); });
  return {{"schema", "gccl/availability-result/1"},
          {"name", s.name},
          {"description", s.description},
          {"failures", s.rates.name},
          {"source", s.rates.source},
          {"days", s.days},
          {"replicas", s.replicas},
          {"seed", s.seed},
          {"ok", ok},
          {"intervals", std::move(intervals)},
          {"settings", std::move(settings)},
          {"expectations", std::move(expectations)}};
}

std::string availability_text(const Json& r) {
  std::string text = fmt::format("{}: {:.4g} {}, {}, failures of {}\n", r["name"].get<std::string>(),
                                 r["days"].get<double>(), r["days"] == 1 ? "day" : "days",
                                 counted(r["replicas"].get<unsigned>(), "replica"), r["failures"].get<std::string>());
  for (const Json& i : r["intervals"])
    text +=
        fmt::format("{}: a failure every {} h; best checkpoint interval {} min by Young, {} min by Daly\n",
                    counted(i["cards"].get<std::uint64_t>(), "card"), format_number(i["mttf_s"].get<double>() / 3600),
                    format_number(i["young_s"].get<double>() / 60), format_number(i["daly_s"].get<double>() / 60));
  text += fmt::format("{:>8}  {:<20}{:>10}{:>10}{:>9}{:>9}{:>8}{:>7}{:>7}{:>9}{:>9}\n", "cards", "policy", "every s",
                      "goodput", "+-", "Daly", "write", "lost", "down", "waiting", "missing");
  const auto known = [](const Json& percent) {
    return percent.is_null() ? "" : fmt::format("{:.2f}%", percent.get<double>());
  };
  for (const Json& s : r["settings"])
    text += fmt::format("{:>8}  {:<20}{:>10.0f}{:>9.2f}%{:>9}{:>9}{:>7.2f}%{:>6.2f}%{:>6.2f}%{:>8.2f}%{:>8.2f}%\n",
                        s["cards"].get<std::uint64_t>(), name_of(s), s["every_s"].get<double>(),
                        s["goodput_percent"].get<double>(), known(s["standard_error_percent"]),
                        known(s["daly_percent"]), s["writing_percent"].get<double>(), s["lost_percent"].get<double>(),
                        s["down_percent"].get<double>(), s["waiting_percent"].get<double>(),
                        s["missing_percent"].get<double>());
  for (const Json& e : r["expectations"])
    text += fmt::format("{:<7} {}; found {}\n", e["ok"].get<bool>() ? "held" : "BROKEN", e["text"].get<std::string>(),
                        e["found"].get<std::string>());
  return text;
}

std::string availability_html(const Json& r) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{0}</title>\n<style>body{{font:14px "
      "sans-serif;margin:2em;color:#263238;overflow-wrap:anywhere}}pre{{font-size:12px;overflow-wrap:normal}}"
      "@media screen{{div,pre{{overflow-x:auto}}}}@media (max-width:640px){{body{{margin:1em}}}}"
      "@media print{{svg{{max-width:100%}}pre{{font-size:8pt}}}}</style>\n<h1>{0}</h1>\n<p>{1}</p>\n<p>Failure rates: "
      "{2} ({3}).</p>\n",
      escaped(r["name"].get<std::string>()), escaped(r["description"].get<std::string>()),
      escaped(r["failures"].get<std::string>()), escaped(r["source"].get<std::string>()));
  std::vector<std::uint64_t> drawn;
  for (const Json& s : r["settings"]) {
    const std::uint64_t cards = s["cards"];
    if (std::find(drawn.begin(), drawn.end(), cards) != drawn.end()) continue;
    drawn.push_back(cards);
    page += "<div>" + chart(r, cards) + "</div>\n";
  }
  std::string text = availability_text(r), table;
  for (const char c : text)
    table += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
  return page + "<pre>" + table + "</pre>\n";
}

}  // namespace gccl::sim
