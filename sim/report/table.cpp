#include "sim/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "libgccl/base/counted.hpp"
#include "libgccl/json/reader.hpp"
#include "sim/report/findings.hpp"
#include "sim/scenario/judge/contest.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;
using Cells = std::vector<std::vector<std::string>>;

std::string marks(const Json& row) {
  return fmt::format("{}{}", row["auto"].get<bool>() ? "@" : " ", row["fastest"].get<bool>() ? "*" : " ");
}

// Of what did not complete no time is shown beside others'.
std::string time_text(const Json& row) { return completed(row) ? format_time(row["time_us"]) : "failed"; }
std::string rate_text(const Json& rate) { return rate.is_null() ? "-" : fmt::format("{:.4g}", rate.get<double>()); }

std::string size_text(const Json& row) { return json::format_bytes(row["bytes"].get<std::uint64_t>()); }

std::size_t kinds_of(const std::vector<const Json*>& rows, const char* key) {
  std::set<std::string> values;
  for (const Json* row : rows) values.insert(row->contains(key) ? row->at(key).dump() : "");
  return values.size();
}

std::string protocol_of(const Json& row) { return row.value("protocol", "-"); }

// One line per size: the fastest, then one column per algorithm.
std::string by_size(const std::vector<const Json*>& rows, std::size_t width) {
  // Sizes that read alike are shown in bytes, or one line would hide the other.
  std::map<std::string, std::set<std::uint64_t>> alike;
  for (const Json* row : rows) alike[size_text(*row)].insert((*row)["bytes"].get<std::uint64_t>());
  const auto size_of = [&](const Json& row) {
    const std::string text = size_text(row);
    return alike[text].size() == 1 ? text : row["bytes"].dump() + " B";
  };
  std::vector<std::string> sizes, names;
  std::map<std::string, std::string> fastest;
  std::map<std::pair<std::string, std::string>, std::string> cells;
  // The protocol of the fastest; the others' are in the document.
  std::map<std::string, std::string> protocol;
  const bool several = kinds_of(rows, "protocol") > 1;
  const auto remember = [](std::vector<std::string>& list, const std::string& x) {
    if (std::find(list.begin(), list.end(), x) == list.end()) list.push_back(x);
  };
  for (const Json* row : rows) {
    const std::string size = size_of(*row);
    const std::string algorithm = (*row)["algorithm"];
    remember(sizes, size);
    remember(names, algorithm);
    cells[{size, algorithm}] = time_text(*row) + marks(*row);
    const bool best = (*row)["fastest"].get<bool>();
    if (best) fastest[size] = algorithm;
    if (best || !protocol.count(size)) protocol[size] = protocol_of(*row);
  }
  Cells table(1, {"bytes"});
  if (names.size() > 1) table[0].push_back("fastest");
  if (several) table[0].push_back("protocol");
  for (const std::string& n : names) table[0].push_back(n + "  ");
  for (const std::string& size : sizes) {
    auto& line = table.emplace_back(1, size);
    if (names.size() > 1) line.push_back(fastest[size]);
    if (several) line.push_back(protocol[size]);
    for (const std::string& n : names) line.push_back(cells.count({size, n}) ? cells[{size, n}] : "-  ");
  }
  return aligned(table, width);
}

// One line per algorithm.
std::string by_algorithm(const std::vector<const Json*>& rows, std::size_t width) {
  Cells table(1, {"algorithm", "time", "closed form", "algbw GB/s", "busbw GB/s", "messages"});
  const bool checked = std::any_of(rows.begin(), rows.end(), [](const Json* r) { return !(*r)["wrong"].is_null(); });
  if (checked) table[0].push_back("wrong");
  // What the planner decided for each, where it is not the same for all.
  std::vector<const char*> planned;
  for (const char* key : {"chunks", "channels", "window", "protocol"})
    if (kinds_of(rows, key) > 1) planned.push_back(key);
  table[0].insert(table[0].begin() + 1, planned.begin(), planned.end());
  for (const Json* row : rows) {
    const Json& predicted = (*row)["predicted_us"];
    auto& line = table.emplace_back();
    line.push_back((*row)["algorithm"].get<std::string>() + " " + marks(*row));
    for (const char* key : planned)
      line.push_back(key == std::string_view("protocol") ? protocol_of(*row) : (*row)[key].dump());
    line.push_back(time_text(*row));
    line.push_back(predicted.is_null() ? "-" : format_time(predicted));
    line.push_back(rate_text((*row)["algbw_GBps"]));
    line.push_back(rate_text((*row)["busbw_GBps"]));
    line.push_back((*row)["messages"].is_null() ? "-" : (*row)["messages"].dump());
    if (checked) line.push_back((*row)["wrong"].is_null() ? "-" : (*row)["wrong"].dump());
  }
  return aligned(table, width);
}

std::string operations(const Json& row, std::size_t width) {
  const auto time = [](const Json& us) { return us.is_null() ? "-" : format_time(us); };
  Cells table(1, {"collective", "algorithm", "ranks x groups", "bytes", "begin", "end"});
  bool several = false;
  for (const Json& o : row["operations"]) several = several || o["stream"] != 0;
  if (several) table[0].insert(table[0].begin(), "stream");
  for (const Json& o : row["operations"]) {
    auto& line = table.emplace_back();
    if (several) line.push_back(o["stream"].dump());
    line.push_back(o["collective"]);
    line.push_back(o["algorithm"]);
    line.push_back(fmt::format("{} x {}", o["ranks"].get<std::uint64_t>(), o["groups"].get<std::uint64_t>()));
    line.push_back(size_text(o));
    line.push_back(time(o["begin_us"]));
    line.push_back(time(o["end_us"]));
  }
  std::string text =
      fmt::format("  {} {}", completed(row) ? "total" : "not completed, ended after", format_time(row["time_us"]));
  if (!row["messages"].is_null()) text += fmt::format(", {} messages", row["messages"].dump());
  if (!row["wrong"].is_null()) text += fmt::format(", {} wrong elements", row["wrong"].dump());
  return aligned(table, width) + text + '\n';
}

// What happened in a run with faults, and when.
std::string fault_events(const Json& row, std::size_t several) {
  const Json& faults = row["faults"];
  std::string text = several > 1 ? fmt::format("  {}, {}\n", row["algorithm"].get<std::string>(), size_text(row)) : "";
  for (const Json& e : faults["events"])
    text += fmt::format("  {:>9}  {}\n", format_time(e["at_us"]), e["text"].get<std::string>());
  for (const Json& i : faults["never_struck"])
    text += fmt::format("  {:>9}  {}\n", "never", json::format_value(faults["timeline"].at(i.get<std::size_t>())));
  return text;
}

std::string title(const Json& row) {
  std::string text = row["collective"];
  if (!row["label"].get_ref<const std::string&>().empty())
    text += fmt::format(" \"{}\"", row["label"].get<std::string>());
  text += fmt::format(" on {}, {}", row["cluster"].get<std::string>(),
                      counted(row["world_ranks"].get<std::uint64_t>(), "rank"));
  if (row.value("groups", 1) > 1) text += fmt::format(" in {} groups of {}", row["groups"].dump(), row["ranks"].dump());
  if (row.contains("dtype")) text += fmt::format(", {}", row["dtype"].get<std::string>());
  if (row.value("chunks", 1) > 1 && !row.value("planned", false))
    text += fmt::format(", {} chunks on {} channels", row["chunks"].dump(), row["channels"].dump());
  if (!row.value("protocol_planned", true)) text += fmt::format(", protocol {}", protocol_of(row));
  text += fmt::format(", {} engine", row["engine"].get<std::string>());
  if (row.contains("faults") && row["faults"].contains("carried_by"))
    text += fmt::format(" over {}", row["faults"]["carried_by"].get<std::string>());
  if (row.contains("faults"))
    if (const double stretch = row["faults"].value("stretch", 1.0); stretch > 1)
      text += fmt::format("\nreal times, divided by {:.4g}, as the scenario's were stretched", stretch);
  return text + '\n';
}

// For each cluster, collective and engine: how often the choice was the fastest, how far it was behind at worst and on
// average.
std::string choices(const Json& result) {
  struct Sum {
    std::size_t points = 0, best = 0;
    double total = 0;
    const Json* worst = nullptr;
  };
  std::map<std::tuple<std::size_t, std::string, std::string, std::string>, Sum> sums;
  for (const Json& c : result["choices"]) {
    if (c["compared"] == 1) continue;
    Sum& s = sums[{c["run"], c["cluster"], c["collective"], c["engine"]}];
    const double regret = c["regret_percent"];
    ++s.points;
    s.best += c["chosen"] == c["fastest"] || regret <= 0;
    s.total += regret;
    if (!s.worst || regret > (*s.worst)["regret_percent"].get<double>()) s.worst = &c;
  }
  if (sums.empty()) return "";
  std::map<std::string, std::size_t> named;
  const auto name = [](const auto& sum) {
    const std::string label = sum.second.worst->value("label", "");
    return fmt::format("{}{} on {} ({})", std::get<2>(sum.first), label.empty() ? "" : fmt::format(" \"{}\"", label),
                       std::get<1>(sum.first), std::get<3>(sum.first));
  };
  for (const auto& sum : sums) ++named[name(sum)];
  std::string text = "auto against the fastest simulated\n";
  for (const auto& sum : sums) {
    const Sum& s = sum.second;
    text += "  " + name(sum);
    if (named[name(sum)] > 1) text += fmt::format(", run {}", std::get<0>(sum.first));
    text += fmt::format(": the fastest at {} of {}; mean {} % behind", s.best, counted(s.points, "point"),
                        format_number(s.total / double(s.points), 2));
    const double worst = (*s.worst)["regret_percent"];
    if (worst > 0)
      text += fmt::format(", worst {} % at {} ({} {}, {} {})", format_number(worst), size_text(*s.worst),
                          (*s.worst)["chosen"].get<std::string>(), format_time((*s.worst)["chosen_us"]),
                          (*s.worst)["fastest"].get<std::string>(), format_time((*s.worst)["fastest_us"]));
    text += '\n';
  }
  return text + '\n';
}

// Headlines and notes; how good the automatic choices were stands above already.
std::string in_short(const Json& result) {
  std::string text;
  for (const Json& f : findings(result)) {
    text += fmt::format("{} on {}: {}\n", f["subject"].get<std::string>(), f["cluster"].get<std::string>(),
                        f["headline"].get<std::string>());
    for (const Json& note : f["notes"])
      if (!note.get_ref<const std::string&>().starts_with("auto "))
        text += fmt::format("  {}\n", note.get<std::string>());
  }
  return text.empty() ? "" : text + '\n';
}

}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  std::size_t first = 1;
  do {
    std::size_t end = first, used = 2 + widths[0];
    while (end < widths.size() && (end == first || used + 2 + widths[end] <= width)) used += 2 + widths[end++];
    for (const auto& row : rows) {
      std::string line = fmt::format("  {:<{}}", row[0], widths[0]);
      for (std::size_t c = first; c < end; ++c) line += fmt::format("  {:>{}}", row[c], widths[c]);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    if (end < widths.size()) text += '\n';
    first = end;
  } while (first < widths.size());
  return text;
}

std::string format_time(double us) {
  static constexpr std::pair<double, std::string_view> kUnits[] = {{1e6, "s"}, {1e3, "ms"}, {1, "us"}, {1e-3, "ns"}};
  if (us == 0) return "0 us";
  for (const auto& [unit, text] : kUnits)
    if (us >= unit * 0.99995 || unit == 1e-3) return fmt::format("{:.4g} {}", us / unit, text);
  return "";
}

std::string format_number(double number, int digits) {
  return std::abs(number) < std::pow(10, digits) - 0.5 ? fmt::format("{:.{}g}", number, digits)
                                                       : fmt::format("{:.0f}", number);
}

std::string result_tables(Json result, std::size_t columns) {
  json::replace_control(result);
  std::string text;
  bool fastest = false, chosen = false;  // are marked
  const Json& rows = result["runs"];
  for (std::size_t i = 0, end; i < rows.size(); i = end) {
    const auto key = [&](std::size_t k) {
      return std::tuple(rows[k]["run"].get<std::size_t>(), rows[k]["cluster"].get<std::string>(),
                        rows[k]["world_ranks"].get<std::size_t>(), rows[k]["engine"].get<std::string>());
    };
    std::vector<const Json*> group;
    bool one_size = true;
    for (end = i; end < rows.size() && key(end) == key(i); ++end) {
      group.push_back(&rows[end]);
      one_size = one_size && rows[end]["bytes"] == rows[i]["bytes"];
    }
    text += title(rows[i]);
    if (rows[i].contains("operations")) {
      for (const Json* row : group) text += operations(*row, columns);
    } else {
      text += one_size ? by_algorithm(group, columns) : by_size(group, columns);
      fastest = true;
      for (const Json* row : group) chosen = chosen || row->at("auto").get<bool>();
    }
    for (const Json* row : group)
      if (row->contains("faults")) text += fault_events(*row, group.size());
    text += '\n';
  }
  if (fastest) text += chosen ? "* the fastest   @ chosen by \"auto\"\n\n" : "* the fastest\n\n";
  return text + choices(result) + in_short(result);
}

std::string expectation_lines(const Json& result, bool broken_only) {
  std::string text;
  for (Json e : result["expectations"]) {
    json::replace_control(e);
    if (broken_only && e["ok"].get<bool>()) continue;
    text += fmt::format("{}  {}; found {}  [{}]\n", e["ok"].get<bool>() ? "held  " : "BROKEN",
                        e["text"].get<std::string>(), e["found"].get<std::string>(), e["pointer"].get<std::string>());
  }
  return text;
}

}  // namespace gccl::sim
