#include "sim/scenario/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gccl::sim {
namespace {

using Check = Expectation::Check;

// What an expectation came to.
struct Finding {
  std::string found;
  bool ok = true;
  double excess = -1e300;  // how far beyond the limit; the worst is told
};

bool selects(const Expectation& e, const Plan& plan, const Point& p) {
  const World& world = plan.worlds[p.world];
  if (e.cluster && world.cluster_name != *e.cluster) return false;
  if (e.engine && name(p.engine) != *e.engine) return false;
  if (e.ranks && world.ranks() != Rank(*e.ranks)) return false;
  if (e.bytes && std::find(p.asked.begin(), p.asked.end(), *e.bytes) == p.asked.end()) return false;
  if (!e.algorithm) return true;
  return *e.algorithm == "auto" ? p.automatic : p.part().algorithm->name == *e.algorithm;
}

double time_us(const nlohmann::json& row) { return row.at("time_us").get<double>(); }

class Judge {
 public:
  Judge(const Plan& plan, const std::vector<nlohmann::json>& rows) : plan_(plan), rows_(rows) {}

  Finding operator()(const Expectation& e, std::size_t run) const {
    Finding worst;
    std::size_t selected = 0;
    for (std::size_t i = 0; i < plan_.points.size(); ++i) {
      if (plan_.points[i].run != run || !selects(e, plan_, plan_.points[i])) continue;
      Finding f = one(e, i);
      ++selected;
      if (selected > 1 && f.excess <= worst.excess) continue;
      f.ok = f.ok && worst.ok;
      worst = std::move(f);
    }
    if (selected > 1) worst.found += fmt::format(" ({} results)", selected);
    return worst;
  }

 private:
  Finding one(const Expectation& e, std::size_t i) const {
    const nlohmann::json& row = rows_[i];
    switch (e.check) {
      case Check::max_time:
        return {fmt::format("{:.6g} us", time_us(row)), time_us(row) <= e.limit, time_us(row) - e.limit};
      case Check::min_time:
        return {fmt::format("{:.6g} us", time_us(row)), time_us(row) >= e.limit, e.limit - time_us(row)};
      case Check::min_busbw: {
        const double found = row.at("busbw_GBps").get<double>();
        return {fmt::format("{:.6g} GB/s", found), found >= e.limit, e.limit - found};
      }
      case Check::correct: {
        const auto wrong = row.at("wrong").get<std::uint64_t>();
        return {wrong ? fmt::format("{} wrong elements", wrong) : "no wrong element", wrong == 0, double(wrong)};
      }
      default: return compared(e, i);
    }
  }

  // fastest, within: point i among its competitors.
  Finding compared(const Expectation& e, std::size_t i) const {
    std::size_t first = i;
    while (first > 0 && competitors_end(plan_, first - 1) > i) --first;
    const std::size_t end = competitors_end(plan_, first);
    std::size_t best = first, subject = end;
    for (std::size_t k = first; k < end; ++k) {
      if (time_us(rows_[k]) < time_us(rows_[best])) best = k;
      if (plan_.points[k].part().algorithm->name == e.subject) subject = k;
    }
    if (e.subject == "best") subject = best;
    if (subject == end) return {fmt::format("{} cannot serve this call", e.subject), false, 1e300};
    const std::string_view best_name = plan_.points[best].part().algorithm->name;
    if (e.check == Check::fastest) {
      const double behind = time_us(rows_[subject]) - time_us(rows_[best]);
      if (behind <= 0) return {std::string(e.subject), true, 0};
      return {fmt::format("{} at {}: {:.6g} us, {} {:.6g} us", best_name, size(best), time_us(rows_[best]), e.subject,
                          time_us(rows_[subject])),
              false, behind};
    }
    const double base = time_us(rows_[subject]), own = time_us(rows_[i]);
    const double percent = base > 0 ? (own / base - 1) * 100 : (own > 0 ? 1e9 : 0);
    return {fmt::format("{} is {:.3g} % {} {} at {}", plan_.points[i].part().algorithm->name, std::abs(percent),
                        percent < 0 ? "faster than" : "behind", plan_.points[subject].part().algorithm->name, size(i)),
            percent <= e.limit, percent - e.limit};
  }

  std::string size(std::size_t i) const { return json::format_bytes(rows_[i].at("bytes").get<std::uint64_t>()); }

  const Plan& plan_;
  const std::vector<nlohmann::json>& rows_;
};

std::string text_of(const Expectation& e, const Run& run) {
  std::string text = run.label;
  if (text.empty()) text = run.kind == Run::Kind::collective ? std::string(name(run.task().kind)) : "sequence";
  if (e.cluster) text += fmt::format(" on {}", *e.cluster);
  if (e.engine) text += fmt::format(" ({})", *e.engine);
  if (e.ranks) text += fmt::format(" {} ranks", *e.ranks);
  if (e.bytes) text += fmt::format(" {}", json::format_bytes(*e.bytes));
  if (e.algorithm) text += fmt::format(" {}", *e.algorithm);
  switch (e.check) {
    case Check::max_time: return text + fmt::format(": time_us <= {:.6g}", e.limit);
    case Check::min_time: return text + fmt::format(": time_us >= {:.6g}", e.limit);
    case Check::min_busbw: return text + fmt::format(": busbw_GBps >= {:.6g}", e.limit);
    case Check::correct: return text + ": every element right";
    case Check::fastest: return text + fmt::format(": fastest is {}", e.subject);
    default: return text + fmt::format(": within {:.6g} % of {}", e.limit, e.subject);
  }
}

}  // namespace

std::size_t competitors_end(const Plan& plan, std::size_t first) {
  const Point& a = plan.points[first];
  std::size_t end = first + 1;
  for (; end < plan.points.size(); ++end) {
    const Point& b = plan.points[end];
    if (b.run != a.run || b.world != a.world || b.engine != a.engine || b.asked != a.asked) break;
  }
  return end;
}

void check_expectations(const Plan& plan) {
  for (std::size_t r = 0; r < plan.scenario->runs.size(); ++r)
    for (const Expectation& e : plan.scenario->runs[r].expectations) {
      const auto hit = [&](const Point& p) { return p.run == r && selects(e, plan, p); };
      if (std::any_of(plan.points.begin(), plan.points.end(), hit)) continue;
      std::string clusters;
      for (const World& w : plan.worlds)
        clusters += fmt::format("{}\"{}\" with {} ranks", clusters.empty() ? "" : ", ", w.cluster_name, w.ranks());
      e.where.fail(fmt::format("selects no result; this scenario runs on {}", clusters));
    }
}

nlohmann::json evaluate(const Plan& plan, const std::vector<nlohmann::json>& rows) {
  const Judge judge(plan, rows);
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t r = 0; r < plan.scenario->runs.size(); ++r)
    for (const Expectation& e : plan.scenario->runs[r].expectations) {
      const Finding f = judge(e, r);
      all.push_back({{"pointer", e.where.pointer()},
                     {"text", text_of(e, plan.scenario->runs[r])},
                     {"found", f.found},
                     {"ok", f.ok}});
    }
  return all;
}

}  // namespace gccl::sim
