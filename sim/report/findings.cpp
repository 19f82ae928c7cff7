#include "sim/report/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/row_fields.hpp"
#include "sim/report/table.hpp"
#include "sim/scenario/judge/contest.hpp"

namespace gccl::sim {
namespace {

using namespace row_fields;

constexpr double kLead = 1.005;            // a smaller lead changes no recommendation
constexpr double kBusy = 0.85;             // a link that carries this much of its bandwidth is the limit
constexpr double kHalfBusy = 0.6;          // below this no link's bandwidth is
constexpr double kEnginesApart = 10;       // percent
constexpr double kTickUs = 1e-3;           // virtual time is in whole nanoseconds: a smaller difference is rounding
constexpr std::uint64_t kLarge = 1 << 20;  // bytes: latency alone explains idle links below this
constexpr std::size_t kSpansMax = 4;

std::string percent(double p) { return fmt::format("{:.{}f} %", p, std::abs(p) < 9.95 ? 1 : 0); }

// The rows of one engine that may be compared, by what the x axis of a chart would be.
class Contest {
 public:
  Contest(const Rows& rows, bool by_ranks) : rows_(rows), by_ranks_(by_ranks) {
    for (const char* key : kDimensions)
      if (stated_differs(rows, key)) dimensions_.push_back(key);
    for (const Json* row : rows)
      if (number(*row, "time_us") >= 0 && completed(*row)) columns_[x(*row)].push_back(row);
    // Of those that take as long, the one that the result marks as the fastest comes first.
    const auto order = [](const Json* row) {
      return std::pair(number(*row, "time_us"), row->value("fastest", Json()) != true);
    };
    for (auto& [at, column] : columns_)
      std::stable_sort(column.begin(), column.end(), [&](const Json* a, const Json* b) { return order(a) < order(b); });
  }

  bool empty() const { return columns_.empty(); }
  std::uint64_t x(const Json& row) const { return whole(row, by_ranks_ ? "ranks" : "bytes"); }
  std::string at(std::uint64_t x) const { return by_ranks_ ? counted(x, "rank") : json::format_bytes(x); }
  // "ring", or "ring, chunks 8" where runs differ in that too.
  std::string name(const Json& row) const {
    std::string name = text(row, "algorithm");
    for (const char* key : dimensions_)
      if (!stated(row, key).empty()) name += fmt::format(", {} {}", key, stated(row, key));
    return name;
  }
  const std::map<std::uint64_t, Rows>& columns() const { return columns_; }
  const Json& best(std::uint64_t x) const { return *columns_.at(x)[0]; }
  std::uint64_t last() const { return columns_.rbegin()->first; }

  std::string recommendation() const {
    struct Span {
      std::string name;
      std::uint64_t to;
    };
    std::vector<Span> spans;
    std::set<std::string> names;
    for (const Json* row : rows_)
      if (completed(*row)) names.insert(name(*row));
    for (const auto& [x, column] : columns_) {
      const double limit = number(*column[0], "time_us") * kLead;
      const auto held = std::find_if(column.begin(), column.end(), [&](const Json* row) {
        return !spans.empty() && name(*row) == spans.back().name && number(*row, "time_us") <= limit;
      });
      if (held != column.end())
        spans.back().to = x;
      else
        spans.push_back({name(*column[0]), x});
    }
    if (names.size() == 1) return *names.begin();
    if (columns_.size() == 1) {
      const Rows& column = columns_.begin()->second;
      if (column.size() < 2) return name(*column[0]);
      const double best = number(*column[0], "time_us"), next = number(*column[1], "time_us");
      return next <= best * kLead ? fmt::format("use {} or {}", name(*column[0]), name(*column[1]))
                                  : fmt::format("use {} ({} takes {} longer)", name(*column[0]), name(*column[1]),
                                                percent((next / best - 1) * 100));
    }
    if (spans.size() == 1)
      return fmt::format("use {} at every {}", spans[0].name, by_ranks_ ? "number of ranks" : "size");
    if (spans.size() > kSpansMax) {
      std::map<std::string, std::size_t> wins;
      for (const auto& [x, column] : columns_) ++wins[name(*column[0])];
      const auto most =
          std::max_element(wins.begin(), wins.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      return fmt::format("the fastest changes {} times, most often it is {}; use {} at the largest {}",
                         spans.size() - 1, most->first, spans.back().name, by_ranks_ ? "number of ranks" : "size");
    }
    std::string words = "use ";
    for (std::size_t i = 0; i < spans.size(); ++i)
      words += fmt::format("{}{} {}", i ? ", " : "", spans[i].name,
                           i + 1 < spans.size() ? "to " + at(spans[i].to) : "above");
    return words;
  }

 private:
  Rows rows_;
  bool by_ranks_;
  std::vector<const char*> dimensions_;
  std::map<std::uint64_t, Rows> columns_;  // fastest first
};

// What the use of the links says about where the time goes.
std::string limit_of(const Json& row) {
  if (text(row, "engine") == "real") return "";  // nobody counts its messages
  if (whole(row, "messages", 1) == 0) return "no message travels";
  double busiest = -1;
  std::string tier;
  if (row.contains("tiers") && row["tiers"].is_array())
    for (const Json& t : row["tiers"]) {
      const double u = t.is_object() ? number(t, "busiest_utilisation") : NAN;
      if (u > busiest) busiest = u, tier = text(t, "tier");
    }
  if (busiest < 0) return "";
  const std::string busy = busiest < 0.01 ? "1 % busy" : fmt::format("{:.0f} % busy", std::min(busiest, 1.0) * 100);
  if (busiest >= kBusy) return fmt::format("the busiest {} link is {}: its bandwidth is the limit", tier, busy);
  if (busiest >= kHalfBusy)
    return fmt::format("the busiest {} link is {}: most of the time is its bandwidth, the rest latency and waiting",
                       tier, busy);
  const std::string idle = fmt::format("no link is more than {} (the busiest is a {} link): ", busy, tier);
  if (row.contains("faults") && row["faults"].is_object() && row["faults"].contains("events") &&
      !row["faults"]["events"].empty())
    return idle + "faults, latency or waiting are the limit";
  if (whole(row, "bytes") < kLarge) return idle + "latency is the limit, not bandwidth";
  if (is_sequence(row)) return idle + "latency, waiting or combining is the limit, not bandwidth";
  if (const auto error = prediction_error_percent(row); error && *error < -kPredictionErrorMax)
    return idle + fmt::format("ranks wait for each other, for links or for stragglers (closed form: {})",
                              format_time(number(row, "predicted_us")));
  const auto chunks = whole(row, "chunks", 1), channels = whole(row, "channels", 1);
  if (chunks > 1)
    return idle + fmt::format(
                      "even with {} chunks on {} latency, waiting or combining is "
                      "the limit, not bandwidth",
                      chunks, counted(channels, "channel"));
  return idle + "latency or missing pipelining is the limit, not bandwidth; try more chunks and channels";
}

std::string reached(const Contest& contest, const Json& row) {
  const double busbw = number(row, "busbw_GBps");
  const std::string time = format_time(number(row, "time_us"));
  if (!(busbw > 0)) return time;
  const std::string where = contest.at(contest.x(row));
  return fmt::format("{} GB/s bus bandwidth at {} ({})", format_number(busbw), where, time);
}

// What faults did to a run.
std::string fault_words(const Json& row) {
  if (!row.contains("faults") || !row["faults"].is_object()) return "";
  const Json& f = row["faults"];
  if (f.value("completed", Json()) != true) return "not completed";
  const Json dead = f.value("dead", Json());
  if (!dead.is_array() || dead.empty()) return "";
  std::string words = dead.size() == 1 ? "rank" : "ranks";
  for (const Json& rank : dead) words += (&rank == &dead[0] ? " " : ", ") + json::format_value(rank);
  words += " failed";
  if (number(f, "detection_us") >= 0) words += ", noticed within " + format_time(number(f, "detection_us"));
  if (number(f, "recovery_us") >= 0) words += ", at work again after " + format_time(number(f, "recovery_us"));
  return words;
}

// Of what did not complete nothing is said but that.
std::string headline(const Contest& contest) {
  if (contest.empty()) return "not completed.";
  const Json& row = contest.best(contest.last());
  std::string words = contest.recommendation() + ": " + reached(contest, row);
  for (const std::string& more : {fault_words(row), limit_of(row)})
    if (!more.empty()) words += "; " + more;
  return words + ".";
}

std::string choice_note(const Json& result, const Rows& rows) {
  double total = 0, worst = -1;
  std::size_t points = 0, hits = 0;
  const Json* at = nullptr;
  const bool some = std::ranges::any_of(rows, [](const Json* r) { return r->value("auto", Json()) == true; });
  if (!some || !result.contains("choices") || !result["choices"].is_array()) return "";
  for (const Json& c : result["choices"]) {
    const double regret = c.is_object() ? number(c, "regret_percent") : NAN;
    if (!(regret >= 0) || whole(c, "compared", 2) < 2) continue;
    const bool ours = std::any_of(rows.begin(), rows.end(), [&](const Json* row) {
      for (const char* key : {"run", "cluster", "collective", "engine", "ranks", "bytes", "dtype"})
        if (c.contains(key) && (!row->contains(key) || row->at(key) != c[key])) return false;
      return row->value("auto", Json()) == true;
    });
    if (!ours) continue;
    ++points;
    hits += regret <= 0;
    total += regret;
    if (regret > worst) worst = regret, at = &c;
  }
  if (points == 0) return "";
  if (hits == points)
    return fmt::format("auto chose the fastest of those simulated at {}",
                       points == 1 ? "the one point" : fmt::format("each of {} points", points));
  return fmt::format(
      "auto chose the fastest of those simulated at {} of {} points; {} slower on average, {} at worst "
      "({}: {} instead of {})",
      hits, points, percent(total / double(points)), percent(worst), json::format_bytes(whole(*at, "bytes")),
      text(*at, "chosen"), text(*at, "fastest"));
}

// Which of the environment's variables chose for "auto" in place of the planner.
std::string authority_note(const Rows& rows, std::string_view in, std::string_view places) {
  std::map<std::string, std::size_t> chosen;
  for (const Json* row : rows)
    if (const std::string by = text(*row, "decided_by"); !by.empty()) ++chosen[by];
  std::string words;
  for (const auto& [by, times] : chosen)
    words += (words.empty() ? "" : "; ") +
             fmt::format("{} chose for auto {} {} of {} {}", by, in, times, rows.size(), places);
  return words;
}

// What another library's rules chose, by size, and where a row stands for something else.
std::string planner_note(const Rows& rows, std::string_view planner) {
  std::map<std::uint64_t, const Json*> by_bytes;
  for (const Json* row : rows)
    if (text(*row, "planner") == planner) by_bytes.emplace(whole(*row, "bytes"), row);
  if (by_bytes.empty()) return "";
  std::string words, last, notes;
  std::uint64_t to = 0;
  const auto close = [&](bool end) {
    if (last.empty()) return;
    words += words.empty() ? " " : "; ";
    words += last + (end ? (by_bytes.size() == 1 ? "" : " to the largest size") : " to " + json::format_bytes(to));
  };
  std::set<std::string> seen;
  for (const auto& [bytes, row] : by_bytes) {
    const std::string choice = text(*row, "planner_choice").empty() ? "no rule" : text(*row, "planner_choice");
    if (choice != last) {
      close(false);
      last = choice;
    }
    to = bytes;
    if (const std::string note = text(*row, "planner_note"); !note.empty() && seen.insert(choice + note).second)
      notes += fmt::format("; {} is simulated as {} ({})", choice, text(*row, "algorithm"), note);
  }
  close(true);
  return fmt::format("planned as {} would:{}{}", planner, words, notes);
}

std::string prediction_note(const Rows& rows) {
  std::size_t predicted = 0, far = 0;
  const Json* worst = nullptr;
  double most = 0;
  for (const Json* row : rows) {
    const auto error = prediction_error_percent(*row);
    if (!error) continue;
    ++predicted;
    if (std::abs(number(*row, "predicted_us") - number(*row, "time_us")) <= kTickUs) continue;
    far += std::abs(*error) > kPredictionErrorMax;
    // 3 times too long is as wrong as 3 times too short.
    const double apart = std::abs(std::log(std::max(1 + *error / 100, 1e-9)));
    if (apart > most) most = apart, worst = row;
  }
  if (far == 0) return "";
  const std::string where = whole(*worst, "bytes") ? " at " + json::format_bytes(whole(*worst, "bytes")) : "";
  return fmt::format(
      "prediction (closed form, what auto compares) and simulation differ by more than {:.0f} % at {} of "
      "{} points, most for {}{} ({}): predicted {}, simulated {}",
      kPredictionErrorMax, far, predicted, text(*worst, "algorithm"), where, text(*worst, "engine"),
      format_time(number(*worst, "predicted_us")), format_time(number(*worst, "time_us")));
}

std::string engine_note(const Contest& a, const Contest& b, const std::string& first, const std::string& second) {
  std::size_t points = 0, apart = 0, columns = 0, other = 0;
  double most = 1;
  std::string worst;
  for (const auto& [x, column] : a.columns()) {
    const auto same = b.columns().find(x);
    if (same == b.columns().end()) continue;
    ++columns;
    const Json& best = *same->second[0];
    for (const Json* row : column)
      for (const Json* twin : same->second) {
        const double one = number(*row, "time_us"), two = number(*twin, "time_us");
        if (a.name(*row) != b.name(*twin) || !(one > 0) || !(two > 0)) continue;
        ++points;
        const double ratio = std::abs(one - two) <= kTickUs ? 1 : std::max(one / two, two / one);
        apart += ratio > 1 + kEnginesApart / 100;
        if (ratio > most)
          most = ratio, worst = fmt::format("{} at {}: {} {}, {} {}", a.name(*row), a.at(x), first, format_time(one),
                                            second, format_time(two));
        // Another winner counts when this engine would lose by more than a lead that changes nothing.
        if (row == column[0] && b.name(best) != a.name(*row)) other += two > number(best, "time_us") * kLead;
      }
  }
  if (points == 0) return "";
  std::string words = fmt::format("{} and {} differ by more than {:.0f} % at {} of {} points", first, second,
                                  kEnginesApart, apart, points);
  if (apart) words += fmt::format(", most for {}", worst);
  return words + fmt::format("; the fastest differs at {} of {} sizes", other, columns);
}

// `apart`: what tells these rows from others of the same collective and label.
Json finding_of(const Json& result, const Rows& rows, bool several_ranks, const std::string& apart) {
  const Json& first = *rows[0];
  const bool by_ranks = kinds(rows, "bytes") == 1 && kinds(rows, "ranks") > 1;
  std::vector<std::pair<std::string, Contest>> engines;
  for (const Rows& of : grouped(rows, [](const Json& row) { return text(row, "engine"); }))
    engines.emplace_back(text(*of[0], "engine"), Contest(of, by_ranks));
  const auto failed =
      std::size_t(std::count_if(rows.begin(), rows.end(), [](const Json* r) { return !completed(*r); }));
  if (engines[0].second.empty() && failed == 0) return Json();
  std::string subject = text(first, "collective");
  if (const std::string label = text(first, "label"); !label.empty()) subject += fmt::format(" \"{}\"", label);
  if (several_ranks && !by_ranks) subject += ", " + counted(whole(first, "ranks"), "rank");
  subject += apart;
  if (engines.size() > 1) subject += fmt::format(" ({} engine)", engines[0].first);
  Json notes = Json::array();
  const auto add = [&](const std::string& note) {
    if (!note.empty()) notes.push_back(note + ".");
  };
  if (failed > 0 && failed < rows.size()) add(fmt::format("{} of {} points did not complete", failed, rows.size()));
  for (const std::string_view planner : {"nccl", "openmpi"}) add(planner_note(rows, planner));
  Rows automatic;
  std::ranges::copy_if(rows, std::back_inserter(automatic),
                       [](const Json* r) { return r->value("auto", Json()) == true; });
  add(authority_note(automatic, "at", "points"));
  add(choice_note(result, rows));
  add(prediction_note(rows));
  for (std::size_t i = 1; i < engines.size(); ++i)
    add(engine_note(engines[0].second, engines[i].second, engines[0].first, engines[i].first));
  return {{"cluster", text(first, "cluster")},
          {"subject", subject},
          {"headline", headline(engines[0].second)},
          {"notes", notes}};
}

// The label, or "sequence", "concurrent", or of one collective that is repeated "allreduce ring".
std::string name_of_sequence(const Json& row) {
  if (std::string label = text(row, "label"); !label.empty()) return label;
  const std::string collective = text(row, "collective"), algorithm = text(row, "algorithm");
  return collective == "sequence" ? algorithm : collective + " " + algorithm;
}

// Several collectives have one time; each row is a finding of its own.
Json finding_of_sequence(const Json& row, const std::string& apart) {
  const double us = number(row, "time_us");
  if (!(us >= 0)) return Json();
  std::string words = fmt::format("{} on {} ({} engine)", completed(row) ? format_time(us) : "not completed",
                                  counted(whole(row, "ranks"), "rank"), text(row, "engine"));
  if (completed(row))
    for (const std::string& more : {fault_words(row), limit_of(row)})
      if (!more.empty()) words += "; " + more;
  Rows operations;
  if (row.contains("operations") && row["operations"].is_array())
    for (const Json& o : row["operations"])
      if (o.is_object()) operations.push_back(&o);
  const std::string note = authority_note(operations, "in", "operations");
  return {{"cluster", text(row, "cluster")},
          {"subject", name_of_sequence(row) + apart},
          {"headline", words + "."},
          {"notes", note.empty() ? Json::array() : Json::array({note + "."})}};
}

}  // namespace

std::optional<double> prediction_error_percent(const Json& row) {
  const double predicted = number(row, "predicted_us"), simulated = number(row, "time_us");
  if (!(predicted >= 0) || !(simulated > 0)) return std::nullopt;
  return (predicted / simulated - 1) * 100;
}

Json findings(const Json& result) {
  Rows rows;
  if (result.is_object() && result.contains("runs") && result["runs"].is_array())
    for (const Json& row : result["runs"])
      if (row.is_object()) rows.push_back(&row);
  Json all = Json::array();
  // Families have one headline each, so their subjects must differ by what the families differ in.
  const auto related = [](const Json& row) {
    return parts_of(row, {"cluster", "collective", "label"}) + (is_sequence(row) ? name_of_sequence(row) : "");
  };
  // What is asked of them differs otherwise, so that neither is better than the other.
  const auto asked = [&](const Json& row) {
    return related(row) + parts_of(row, {"dtype", "op", "root", "in_place", "groups"}) + part_of_world(row);
  };
  const auto like = [&](const Json& row) {
    return asked(row) + parts_of(row, {"like_run"}) + (is_sequence(row) ? fmt::format("{}", fmt::ptr(&row)) : "");
  };
  std::map<std::string, std::set<std::string_view>> differing;  // by what relates rows: the fields they differ in
  for (const Rows& relatives : grouped(rows, related)) {
    auto& keys = differing[related(*relatives[0])];
    for (const char* key :
         {"groups", "dtype", "op", "root", "in_place", "algorithm", "bytes", "ranks", "engine", "run"})
      if (kinds(relatives, key) > 1) keys.insert(key);
    for (const char* key : kDimensions)
      if (stated_differs(relatives, key)) keys.insert(key);
    const std::string part = part_of_world(*relatives[0]);
    if (std::ranges::any_of(relatives, [&](const Json* r) { return part_of_world(*r) != part; }))
      keys.insert("world_ranks");
  }
  std::set<std::string> unlike;  // what several runs ask for that may not be compared
  for (const Rows& same : grouped(rows, asked))
    if (kinds(same, "like_run") > 1) unlike.insert(asked(*same[0]));
  for (const Rows& same : grouped(rows, like)) {
    const Json& first = *same[0];
    const auto& keys = differing.at(related(first));
    const auto differs = [&](std::string_view key) { return keys.contains(key); };
    std::string apart;
    if (is_sequence(first)) {
      if (differs("algorithm")) apart += ", " + text(first, "algorithm");
      if (differs("bytes")) apart += ", " + json::format_bytes(whole(first, "bytes"));
      if (differs("ranks")) apart += ", " + counted(whole(first, "ranks"), "rank");
      if (differs("engine")) apart += fmt::format(", {} engine", text(first, "engine"));
      for (const char* key : kDimensions)
        if (differs(key) && !stated(first, key).empty()) apart += fmt::format(", {} {}", key, stated(first, key));
    }
    if (differs("groups")) apart += ", " + counted(whole(first, "groups"), "group");
    if (differs("world_ranks")) apart += fmt::format(" of {} ranks", whole(first, "world_ranks"));
    for (const char* key : {"dtype", "op"})
      if (first.contains(key) && differs(key)) apart += ", " + text(first, key);
    if (first.contains("root") && differs("root")) apart += fmt::format(", root {}", whole(first, "root"));
    if (first.value("in_place", Json()) == true && differs("in_place")) apart += ", in place";
    if (is_sequence(first) ? differs("run") : unlike.contains(asked(first)))
      apart += fmt::format(" (run {})", whole(first, "run"));
    if (is_sequence(first)) {
      all.push_back(finding_of_sequence(first, apart));
    } else {
      const bool by_ranks = kinds(same, "bytes") == 1;
      const auto split = grouped(same, [&](const Json& row) { return by_ranks ? 0 : whole(row, "ranks"); });
      for (const Rows& group : split) all.push_back(finding_of(result, group, split.size() > 1, apart));
    }
    if (all.back().is_null()) all.erase(all.size() - 1);
  }
  return all;
}

}  // namespace gccl::sim
