#include "sim/tuning/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;
using json::Node;

constexpr std::size_t kRowsMax = 1'000'000;
constexpr double kTimeMax = 1e18;
constexpr std::size_t kPrinted = 20;  // of each list; the JSON has all

// What one document says, by what it is about.
struct Measured {
  std::map<std::string, double> times;
  std::map<std::string, std::string> winners;
};

std::string size_and_ranks(const Node& row) {
  return fmt::format("{}, {}", json::format_bytes(row.at("bytes").bytes(~std::uint64_t(0))),
                     json::format_ranks(std::uint64_t(row.at("ranks").integer(1, 1 << 30))));
}

std::string optional_text(const Node& row, const char* key) {
  const auto value = row.raw().find(key);
  return value != row.raw().end() && value->is_string() ? value->get<std::string>() : "";
}

// What stands in several rows gets a number from the second on.
void add(std::map<std::string, double>& times, const std::string& what, double us) {
  if (times.emplace(what, us).second) return;
  for (unsigned i = 2;; ++i)
    if (times.emplace(fmt::format("{} (row {} of these)", what, i), us).second) return;
}

Measured of_result(const Node& document) {
  Measured m;
  for (const Node& row : document.at("runs").items(0, kRowsMax)) {
    std::string call = row.at("collective").string();
    if (const std::string label = optional_text(row, "label"); !label.empty()) call += " (" + label + ")";
    call += fmt::format(" {} {} on {} ({})", size_and_ranks(row), optional_text(row, "dtype"),
                        row.at("cluster").string(), row.at("engine").string());
    const std::string algorithm = row.at("algorithm").string();
    add(m.times, fmt::format("{}: {}", call, algorithm), row.at("time_us").number(0, kTimeMax));
    if (const auto fastest = row.find("fastest"); fastest && fastest->boolean()) m.winners[call] = algorithm;
  }
  return m;
}

Measured of_tuning(const Node& document) {
  Measured m;
  const std::string where = fmt::format("{} on {} ({})", document.at("dtype").string(),
                                        document.at("cluster").at("name").string(), document.at("engine").string());
  for (const Node& cell : document.at("cells").items(0, kRowsMax)) {
    const std::string call = fmt::format("{} {} {}", cell.at("collective").string(), size_and_ranks(cell), where);
    const std::vector<Node> tried = cell.at("tried").items(0, kRowsMax);
    if (tried.empty()) continue;
    add(m.times, call + ": fastest", tried[0].at("time_us").number(0, kTimeMax));
    const std::string protocol = optional_text(tried[0], "protocol");
    m.winners[call] = tried[0].at("algorithm").string() + (protocol.empty() ? "" : " " + protocol);
    if (!cell.raw().contains("planner") || cell.raw()["planner"].is_null()) continue;  // was not simulated
    const Node planner = cell.at("planner");
    if (const auto i = std::size_t(planner.integer(0, std::int64_t(kRowsMax))); i < tried.size())
      add(m.times, call + ": planner's choice", tried[i].at("time_us").number(0, kTimeMax));
    else
      planner.fail(fmt::format("found {}, expected one of the {} in \"tried\"", i, tried.size()));
  }
  return m;
}

std::string kind_of(const Node& document) {
  const std::string schema = document.at("schema").string();
  if (schema != "gccl/result/1" && schema != "gccl/tuning/1")
    document.at("schema").fail(fmt::format(
        "found \"{}\", expected \"gccl/result/1\" (gccl run --json) or \"gccl/tuning/1\" (gccl tune --json)", schema));
  return schema;
}

}  // namespace

Json compare(const Node& before, const Node& after, double threshold_percent) {
  const std::string kind = kind_of(before);
  if (kind_of(after) != kind)
    after.at("schema").fail(fmt::format("found \"{}\", expected \"{}\", as the other file has", kind_of(after), kind));
  const auto read = kind == "gccl/result/1" ? of_result : of_tuning;
  const Measured a = read(before), b = read(after);
  Json slower = Json::array(), faster = Json::array(), changed = Json::array();
  std::size_t both = 0;
  for (const auto& [what, us] : a.times) {
    const auto at = b.times.find(what);
    if (at == b.times.end()) continue;
    ++both;
    const double percent = us > 0 ? (at->second / us - 1) * 100 : at->second > 0 ? 1e9 : 0;
    Json row = {{"what", what}, {"before_us", us}, {"after_us", at->second}, {"percent", percent}};
    if (percent > threshold_percent)
      slower.push_back(std::move(row));
    else if (percent < -threshold_percent)
      faster.push_back(std::move(row));
  }
  if (both == 0)
    throw json::InputError(fmt::format("{} and {}: they have no row in common: nothing to compare",
                                       before.file().string(), after.file().string()));
  for (const auto& [what, winner] : a.winners)
    if (const auto at = b.winners.find(what); at != b.winners.end() && at->second != winner)
      changed.push_back({{"what", what}, {"before", winner}, {"after", at->second}});
  const auto by_size = [](const Json& x, const Json& y) {
    return std::abs(x["percent"].get<double>()) > std::abs(y["percent"].get<double>());
  };
  std::stable_sort(slower.begin(), slower.end(), by_size);
  std::stable_sort(faster.begin(), faster.end(), by_size);
  return {{"schema", "gccl/comparison/1"},
          {"version", GCCL_VERSION_TEXT},
          {"before", json::valid_text(before.file().string())},
          {"after", json::valid_text(after.file().string())},
          {"threshold_percent", threshold_percent},
          {"compared", both},
          {"only_before", a.times.size() - both},
          {"only_after", b.times.size() - both},
          {"ok", slower.empty()},
          {"slower", std::move(slower)},
          {"faster", std::move(faster)},
          {"winner_changed", std::move(changed)}};
}

std::string comparison_text(const Json& c) {
  std::string text = fmt::format("{} times in both; {} only before, {} only after; threshold {:.4g} %\n",
                                 c["compared"].get<std::size_t>(), c["only_before"].get<std::size_t>(),
                                 c["only_after"].get<std::size_t>(), c["threshold_percent"].get<double>());
  const auto list = [&](const char* key, std::string_view title, auto line) {
    const Json& rows = c[key];
    text += fmt::format("\n{}: {}\n", title, rows.size());
    for (std::size_t i = 0; i < rows.size() && i < kPrinted; ++i) text += "  " + line(rows[i]) + '\n';
    if (rows.size() > kPrinted) text += fmt::format("  and {} more\n", rows.size() - kPrinted);
  };
  const auto times = [](const Json& r) {
    return fmt::format("{}: {} -> {}, {:+.3g} %", r["what"].get<std::string>(), format_time(r["before_us"]),
                       format_time(r["after_us"]), r["percent"].get<double>());
  };
  list("slower", "slower", times);
  list("faster", "faster", times);
  list("winner_changed", "another winner", [](const Json& r) {
    return fmt::format("{}: {} -> {}", r["what"].get<std::string>(), r["before"].get<std::string>(),
                       r["after"].get<std::string>());
  });
  return text;
}

}  // namespace gccl::sim
