#include <fmt/format.h>

#include <cmath>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/llm/step_report.hpp"
#include "sim/report/canvas.hpp"
#include "sim/report/embedded.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPageStyle = R"(
table.list { border-collapse: collapse; font-size: 13.5px; }
table.list td, table.list th { padding: 3px 14px 3px 0; border-bottom: 1px solid var(--line); text-align: left; }
table.list td.n, table.list th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
svg { max-width: 100%; height: auto; background: #fff; border-radius: 8px; }
/* Wide tables scroll in their card. On a phone so do drawings, which would be too small to read. */
@media screen { .card { overflow-x: auto; } }
@media screen and (max-width: 640px) { svg { max-width: none; width: 760px; } }
)";
// Forward, backward, and the kinds; after Okabe and Ito (2008).
constexpr std::string_view kForward = "#56b4e9", kBackward = "#0072b2", kOptimizer = "#332266", kBubble = "#eceff3",
                           kSlowed = "#99bb66";
constexpr std::string_view kKindColors[] = {"#e69f00", "#cc79a7", "#d55e00", "#009e73", "#8b95a3", "#552211"};
constexpr std::size_t kStagesShown = 16;
constexpr double kWidth = 1180, kLeft = 90;

std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t flush_left) {
  std::string out = "<table class=\"list\">\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out += "<tr>";
    for (std::size_t c = 0; c < rows[i].size(); ++c) {
      const std::string_view tag = i == 0 ? "th" : "td";
      out += fmt::format("<{}{}>{}</{}>", tag, c < flush_left ? "" : " class=\"n\"", escaped(rows[i][c]), tag);
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string part(double us, double of) { return fmt::format("{:.1f} %", of > 0 ? us / of * 100 : 0); }

// First, last and those between them at equal distances.
std::vector<Rank> stages_shown(Rank stages) {
  std::vector<Rank> all;
  const std::size_t n = std::min<std::size_t>(stages, kStagesShown);
  for (std::size_t i = 0; i < n; ++i) all.push_back(n == 1 ? 0 : Rank(i * (stages - 1) / (n - 1)));
  return all;
}

// Where not all stages are shown, how many.
std::string some_of(Rank stages) {
  const std::size_t shown = stages_shown(stages).size();
  return shown < stages ? fmt::format(" ({} of {})", shown, stages) : "";
}

void legend(Canvas& c, double y, const std::vector<std::pair<std::string, std::string_view>>& items) {
  double x = kLeft;
  for (const auto& [words, color] : items) {
    c.box(x, y, 12, 12, color, color);
    c.text(x + 17, y + 10, words, 11);
    x += 36 + Canvas::width_of(words, 11);
  }
}

double pixels_per_us(double us) { return us > 0 ? (kWidth - kLeft - 20) / us : 0; }

std::string bars(const PlayedStep& s) {
  const Timeline& t = s.timeline;
  Canvas c;
  const double scale = pixels_per_us(t.step_us);
  double y = 30;
  std::vector<std::pair<std::string, std::string_view>> items{{"compute", kBackward}, {"slowed", kSlowed}};
  for (std::size_t k = 0; k < kKinds; ++k)
    for (const StageTime& one : t.stages)
      if (one.exposed[k] > 0) {
        items.emplace_back("exposed: " + std::string(kind_names()[k]), kKindColors[k]);
        break;
      }
  items.emplace_back("bubble", kBubble);
  legend(c, 6, items);
  for (const Rank stage : stages_shown(s.graph.stages)) {
    const StageTime& one = t.stages[stage];
    double x = kLeft;
    const auto add = [&](double us, std::string_view color) {
      if (us * scale > 0.05) c.box(x, y, us * scale, 14, color, color);
      x += us * scale;
    };
    c.text(kLeft - 8, y + 11, fmt::format("{} {}", s.workload.chakra ? "rank" : "stage", stage), 11,
           Canvas::Anchor::end);
    add(one.compute, kBackward);
    add(one.slowed, kSlowed);
    for (std::size_t k = 0; k < kKinds; ++k) add(one.exposed[k], kKindColors[k]);
    add(one.bubble, kBubble);
    y += 19;
  }
  return c.document(kWidth, y + 8, "what the step's time goes to, by stage");
}

// Boxes of one queue of one stage between two times. Neighbours of one color with no visible gap are one box.
class Row {
 public:
  Row(Canvas& c, double y, double height, double from, double scale)
      : c_(c), y_(y), h_(height), from_(from), k_(scale) {}
  ~Row() { flush(); }
  void add(double begin, double end, std::string_view color) {
    const double x = kLeft + (begin - from_) * k_, right = kLeft + (end - from_) * k_;
    if (color == color_ && x - right_ < 0.4 && right_ - x_ < 40) {
      right_ = std::max(right_, right);
      return;
    }
    flush();
    x_ = x, right_ = right, color_ = color;
  }

 private:
  void flush() {
    if (!color_.empty()) c_.box(x_, y_, std::max(right_ - x_, 0.3), h_, color_, "#ffffff");
    color_ = {};
  }
  Canvas& c_;
  double y_, h_, from_, k_, x_ = 0, right_ = -1;
  std::string_view color_;
};

std::string_view color_of(const PlayedStep& s, const StepTask& t) {
  if (!t.computes()) return kKindColors[std::size_t(s.expansion->traffic[t.traffic].kind)];
  if (s.workload.chakra) return kBackward;  // as "compute" of the bars
  return t.what == "optimizer" ? kOptimizer : t.backward ? kBackward : kForward;
}

using Rows = std::vector<std::vector<std::uint32_t>>;  // by stage and queue

void axis(Canvas& c, double y, double from, double to) {
  c.line(kLeft, y, kWidth - 20, y, "#b0bec5");
  for (int i = 0; i <= 4; ++i) {
    const double x = kLeft + (kWidth - 20 - kLeft) * i / 4;
    c.line(x, y, x, y + 4, "#b0bec5");
    c.text(x, y + 16, format_time(from + (to - from) * i / 4), 11,
           i < 4 ? Canvas::Anchor::middle : Canvas::Anchor::end);
  }
}

std::string timeline(const PlayedStep& s, const Rows& rows) {
  Canvas c;
  if (s.workload.chakra)
    legend(c, 6, {{"compute", kBackward}});
  else if (s.workload.phase == Phase::training)
    legend(c, 6, {{"forward", kForward}, {"backward", kBackward}, {"optimizer", kOptimizer}});
  else
    legend(c, 6, {{"forward", kForward}});
  const double scale = pixels_per_us(s.timeline.step_us);
  double y = 30;
  for (const Rank stage : stages_shown(s.graph.stages)) {
    c.text(kLeft - 8, y + 12, fmt::format("{} {}", s.workload.chakra ? "rank" : "stage", stage), 11,
           Canvas::Anchor::end);
    Row row(c, y, 16, 0, scale);
    for (const std::uint32_t t : rows[stage * kQueues])
      row.add(s.timeline.begin[t], s.timeline.end[t], color_of(s, s.graph.tasks[t]));
    y += 20;
  }
  axis(c, y + 4, 0, s.timeline.step_us);
  return c.document(kWidth, y + 28, "compute of the stages");
}

// All queues of one stage between two times.
std::string cut_out(const PlayedStep& s, const Rows& rows, Rank stage, double from, double to) {
  Canvas c;
  const double scale = pixels_per_us(to - from);
  double y = 12;
  for (std::size_t q = 0; q < kQueues; ++q) {
    const auto& all = rows[stage * kQueues + q];
    if (all.empty()) continue;
    c.text(kLeft - 8, y + 12, name(Queue(q)), 11, Canvas::Anchor::end);
    Row row(c, y, 16, from, scale);
    for (const std::uint32_t t : all)
      if (s.timeline.end[t] > from && s.timeline.begin[t] < to)
        row.add(std::max(from, s.timeline.begin[t]), std::min(to, s.timeline.end[t]), color_of(s, s.graph.tasks[t]));
    y += 21;
  }
  axis(c, y + 4, from, to);
  return c.document(kWidth, y + 28, "what a stage does at the same time");
}

std::string communications(const Json& r) {
  std::vector<std::vector<std::string>> rows{
      {"traffic", "communication", "calls", "algorithm", "alone", "times a step"}};
  for (const Json& t : r["traffic"]) {
    std::string calls;
    for (const Json& c : t["calls"])
      calls +=
          fmt::format("{}{} {} on {}", calls.empty() ? "" : " + ", c["collective"].get_ref<const std::string&>(),
                      json::format_bytes(c["bytes"].get<std::uint64_t>()), counted(c["ranks"].get<Rank>(), "rank"));
    rows.push_back({t["kind"], t["what"], calls, algorithms_text(t["calls"]), format_time(t["time_us"]),
                    std::to_string(t["number_max"].get<std::size_t>())});
  }
  return table(without_repetition(rows), 4);
}

std::string went_to(const Json& r) {
  const double step = r["step_us"];
  const bool trace = r["phase"] == "trace";
  std::vector<std::vector<std::string>> rows{
      {trace ? "mean of the ranks" : "mean of the stages", "time", "of the step"}};
  const auto row = [&](const std::string& what, double us) {
    if (us > 0.0005) rows.push_back({what, format_time(us), part(us, step)});
  };
  row("compute", r["compute_us"]);
  row("slowed by concurrent communication", r["slowed_us"]);
  for (const auto& [key, k] : r["kinds"].items()) row("exposed: " + key, k["exposed_us"]);
  row(trace ? "waiting for others" : "pipeline bubble", r["bubble_us"]);
  return table(rows, 1);
}

std::string memory(const Json& r) {
  std::vector<std::vector<std::string>> rows{
      {"stage", "weights", "gradients", "optimiser", "activations", "cache", "gathered", "backward", "GB"}};
  for (const Rank i : stages_shown(Rank(r["stages"].size()))) {
    const Json& m = r["stages"][i]["memory"];
    rows.push_back({std::to_string(i)});
    for (const char* key : {"weights_GB", "gradients_GB", "optimizer_GB", "activations_GB", "cache_GB", "gathered_GB",
                            "backward_GB", "sum_GB"})
      rows.back().push_back(fmt::format("{:.2f}", m[key].get<double>()));
  }
  return table(rows, 1);
}

}  // namespace

std::string step_page(const PlayedStep& s) {
  const Json& r = s.result;
  const std::string title = r["workload"]["name"];
  const Rows rows = tasks_by_row(s);
  const std::string missing = memory_missing(s);
  std::string body = fmt::format(
      "<header><h1>{}</h1><p class=\"facts\">{} on {}: {}; {} engine. {}</p></header>\n<main>\n<div class=\"card "
      "headlines\"><h3>{} {}{}{}</h3>{}{}</div>\n",
      escaped(title), escaped(r["phase"].get<std::string>()), escaped(r["cluster"]["name"].get<std::string>()),
      counted(r["ranks"].get<std::uint64_t>(), "rank"), escaped(r["engine"].get<std::string>()),
      escaped(r["workload"]["description"].get<std::string>()),
      r["phase"] == "decode" ? "A token takes" : "A step takes", format_time(r["step_us"]),
      r["tokens_per_s"] > 0 ? fmt::format(", {} tokens/s", format_number(r["tokens_per_s"], 4)) : "",
      r["mfu_percent"].is_number() && r["phase"] != "decode"
          ? fmt::format(", {:.1f} % MFU", r["mfu_percent"].get<double>())
          : "",
      missing.empty() ? "" : fmt::format("<p>{}</p>", escaped("This step " + missing)), went_to(r));
  const std::string by = fmt::format(", by {}{}", s.workload.chakra ? "rank" : "stage", some_of(s.graph.stages));
  body += fmt::format("<div class=\"card\"><h4>What the step's time goes to{}</h4>\n{}</div>\n", by, bars(s));
  body += fmt::format("<div class=\"card\"><h4>Compute{}</h4>\n{}</div>\n", by, timeline(s, rows));
  // One micro-batch's share of the step, from its middle on, on the middle stage.
  const double whole = s.timeline.step_us, each = whole / double(std::max<Count>(s.workload.micro_batches(), 1));
  const double from = s.workload.micro_batches() > 2 ? whole / 2 : 0, to = std::min(whole, from + 1.5 * each);
  const Rank stage = s.graph.stages / 2;
  body += fmt::format("<div class=\"card\"><h4>{} {} in detail</h4>\n{}</div>\n", s.workload.chakra ? "Rank" : "Stage",
                      stage, cut_out(s, rows, stage, from, to));
  if (from > 0 && whole - each > to)
    body += fmt::format("<div class=\"card\"><h4>Stage 0 at the end</h4>\n{}</div>\n",
                        cut_out(s, rows, 0, whole - 1.5 * each, whole));
  if (const Json changes = r.value("what_if", Json::array()); !changes.empty()) {
    std::vector<std::vector<std::string>> list{{"what if", "step", "change", "exposed", "bubble"}};
    const double step = r["step_us"];
    for (const Json& c : changes)
      list.push_back({c["change"], format_time(c["step_us"]), change_text(step, c["step_us"]),
                      part(c["exposed_us"], c["step_us"]), part(c["bubble_us"], c["step_us"])});
    body += fmt::format("<div class=\"card\"><h4>What if</h4>\n{}</div>\n", table(list, 1));
  }
  if (!r["traffic"].empty())
    body += fmt::format("<div class=\"card\"><h4>Communication</h4>\n{}</div>\n", communications(r));
  if (!s.workload.chakra)
    body += fmt::format("<div class=\"card\"><h4>Memory of a card, GB{}</h4>\n{}</div>\n", by, memory(r));
  body += fmt::format(
      "</main>\n<footer><p class=\"facts\">Each distinct communication is played on the simulated cluster; the step is "
      "composed of "
      "these and stated or computed times of compute. gccl {}</p></footer>\n",
      escaped(r["version"].get<std::string>()));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"gccl\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{} - "
      "GCCL "
      "step</title>\n<style>\n{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), embedded::report_css, kPageStyle, body);
}

}  // namespace gccl::sim::llm
