#include "sim/scenario/judge/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/judge/baseline.hpp"
#include "sim/scenario/run/play.hpp"

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
    std::size_t selected = 0, broken = 0;
    for (std::size_t i = 0; i < plan_.points.size(); ++i) {
      if (plan_.points[i].run != run || !selects(e, plan_, plan_.points[i])) continue;
      if (e.check == Check::fastest && i > 0 && competitors_end(plan_, i - 1) > i) continue;  // once for all rivals
      Finding f = one(e, i);
      ++selected;
      broken += !f.ok;
      if (selected == 1 || f.excess > worst.excess) worst = std::move(f);
    }
    worst.ok = broken == 0;
    if (selected > 1) worst.found += fmt::format("; the worst of {} results", selected);
    if (selected > 1 && broken) worst.found += fmt::format(", {} of which break{} it", broken, broken == 1 ? "s" : "");
    return worst;
  }

 private:
  Finding one(const Expectation& e, std::size_t i) const {
    const nlohmann::json& row = rows_[i];
    switch (e.check) {
      case Check::max_time: return {time_at(i), time_us(row) <= e.limit, time_us(row) - e.limit};
      case Check::min_time: return {time_at(i), time_us(row) >= e.limit, e.limit - time_us(row)};
      case Check::min_busbw: {
        const double found = row.at("busbw_GBps").get<double>();
        return {fmt::format("{:.6g} GB/s for {}", found, point(i)), found >= e.limit, e.limit - found};
      }
      case Check::correct: {
        const auto wrong = row.at("wrong").get<std::uint64_t>();
        return {
            fmt::format("{} for {}", wrong ? fmt::format("{} wrong elements", wrong) : "no wrong element", point(i)),
            wrong == 0, double(wrong)};
      }
      case Check::fastest: return fastest(e, i);
      default: return within(e, i);
    }
  }

  // The fastest of the points that compete with i, and the one whose algorithm is `name`; none: competitors_end.
  struct Rivals {
    std::size_t best, named, end;
  };
  Rivals rivals(std::size_t i, std::string_view name) const {
    std::size_t first = i;
    while (first > 0 && competitors_end(plan_, first - 1) > i) --first;
    const std::size_t end = competitors_end(plan_, first);
    Rivals r{first, end, end};
    for (std::size_t k = first; k < end; ++k) {
      if (time_us(rows_[k]) < time_us(rows_[r.best])) r.best = k;
      if (plan_.points[k].part().algorithm->name == name) r.named = k;
    }
    return r;
  }

  Finding fastest(const Expectation& e, std::size_t i) const {
    const auto [best, subject, end] = rivals(i, e.subject);
    if (subject == end) return {fmt::format("{} cannot serve this call", e.subject), false, 1e300};
    const double behind = time_us(rows_[subject]) - time_us(rows_[best]);
    if (behind <= 0) return {time_at(subject), true, 0};
    return {fmt::format("{}, {:.6g} us for {}", time_at(best), time_us(rows_[subject]), e.subject), false, behind};
  }

  // What point i is compared with: its name and its time.
  Finding within(const Expectation& e, std::size_t i) const {
    double base = 0;
    std::string other;
    if (e.stored) {
      const nlohmann::json* row = same_row(*e.stored, row_head(plan_, plan_.points[i]), plan_.points[i].automatic);
      base = time_us(*row);
      other = e.subject + (row->at("algorithm") == rows_[i].at("algorithm")
                               ? ""
                               : fmt::format(", where auto chose {}", row->at("algorithm").get<std::string>()));
    } else if (e.run) {
      const std::size_t twin = *same_point(plan_, *e.run, plan_.points[i]);
      base = time_us(rows_[twin]);
      other = fmt::format("\"{}\"", e.subject);
      if (rows_[i].contains("dtype") && plan_.points[twin].part().algorithm != plan_.points[i].part().algorithm)
        other += fmt::format(", where auto chose {}", plan_.points[twin].part().algorithm->name);
    } else {
      const auto [best, named, end] = rivals(i, e.subject);
      const std::size_t subject = e.subject == "best" ? best : named;
      if (subject == end) return {fmt::format("{} cannot serve this call", e.subject), false, 1e300};
      if (subject == i)
        return {fmt::format("{} is {}", point(i), e.subject == "best" ? "the fastest" : "itself"), true, -e.limit};
      base = time_us(rows_[subject]);
      other = plan_.points[subject].part().algorithm->name;
    }
    const double own = time_us(rows_[i]), percent = base > 0 ? (own / base - 1) * 100 : (own > 0 ? 1e9 : 0);
    const std::string than = std::abs(percent) < 5e-4 ? fmt::format("is as fast as {}", other)
                                                      : fmt::format("takes {:.3g} % {} than {}", std::abs(percent),
                                                                    percent < 0 ? "less" : "longer", other);
    return {fmt::format("{} {} ({:.6g} us, {:.6g} us)", point(i), than, own, base), percent <= e.limit,
            percent - e.limit};
  }

  std::string time_at(std::size_t i) const { return fmt::format("{:.6g} us for {}", time_us(rows_[i]), point(i)); }

  // "ring at 64 B (model)", and where the scenario has several clusters or numbers of ranks, which of them.
  std::string point(std::size_t i) const {
    const Point& p = plan_.points[i];
    const World& world = plan_.worlds[p.world];
    std::string text = rows_[i].contains("dtype")
                           ? fmt::format("{} at {}", p.part().algorithm->name,
                                         json::format_bytes(rows_[i].at("bytes").get<std::uint64_t>()))
                           : std::string("the whole");
    const auto differs = [&](auto&& of) {
      return std::any_of(plan_.worlds.begin(), plan_.worlds.end(), [&](const World& w) { return of(w) != of(world); });
    };
    if (differs([](const World& w) { return w.ranks(); }))
      text += fmt::format(", {}", json::format_ranks(world.ranks()));
    if (differs([](const World& w) { return w.cluster_name; })) text += fmt::format(" on {}", world.cluster_name);
    return text + fmt::format(" ({})", name(p.engine));
  }

  const Plan& plan_;
  const std::vector<nlohmann::json>& rows_;
};

std::string text_of(const Expectation& e, const Run& run) {
  std::string text = run.label;
  if (text.empty()) text = run.kind == Run::Kind::collective ? std::string(name(run.task().kind)) : "sequence";
  if (e.cluster) text += fmt::format(" on {}", *e.cluster);
  if (e.engine) text += fmt::format(" ({})", *e.engine);
  if (e.ranks) text += fmt::format(" {}", json::format_ranks(std::uint64_t(*e.ranks)));
  if (e.bytes) text += fmt::format(" {}", json::format_bytes(*e.bytes));
  if (e.algorithm) text += fmt::format(" {}", *e.algorithm);
  switch (e.check) {
    case Check::max_time: return text + fmt::format(": time_us <= {:.6g}", e.limit);
    case Check::min_time: return text + fmt::format(": time_us >= {:.6g}", e.limit);
    case Check::min_busbw: return text + fmt::format(": busbw_GBps >= {:.6g}", e.limit);
    case Check::correct: return text + ": every element right";
    case Check::fastest: return text + fmt::format(": fastest is {}", e.subject);
    default:
      return text +
             fmt::format(": within {:.6g} % of {}{}{}", e.limit, e.run ? "\"" : "", e.subject, e.run ? "\"" : "");
  }
}

// Throws json::InputError where what the point is to be compared with has no such point.
void check_baseline(const Expectation& e, const Plan& plan, const Point& p) {
  if (e.run && !same_point(plan, *e.run, p))
    e.where.at("run").fail(fmt::format("the run \"{}\" has no result for {}", e.subject, describe(plan, p)));
  if (!e.stored) return;
  const nlohmann::json head = row_head(plan, p);
  if (!same_row(*e.stored, head, p.automatic))
    e.where.at("result").fail(
        fmt::format("{} has no result for {}{}", e.subject, describe(plan, p), nearest_row(*e.stored, head)));
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
      if (std::any_of(plan.points.begin(), plan.points.end(), hit)) {
        if (e.run || e.stored)
          for (const Point& p : plan.points)
            if (hit(p)) check_baseline(e, plan, p);
        continue;
      }
      std::string clusters;
      for (const World& w : plan.worlds)
        clusters += fmt::format("{}\"{}\" with {}", clusters.empty() ? "" : ", ", w.cluster_name,
                                json::format_ranks(w.ranks()));
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
