#include "sim/tuning/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "libgccl/base/counted.hpp"
#include "libgccl/cluster/read/tuning_file.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;
using json::Node;

constexpr std::size_t kRowsMax = 1'000'000;
constexpr double kTimeMax = 1e18;
constexpr double kRounding = 1e-9;    // percent
constexpr double kFromNothing = 1e9;  // percent, where there was no time before: JSON has no infinity
constexpr std::size_t kPrinted = 20;  // of each list; the JSON has all

// What one document says, by what it is about.
struct DocumentTimes {
  std::map<std::string, double> times;
  std::map<std::string, std::string> failures;  // of those times that are not of a call that succeeded, how it did not
  std::map<std::string, std::string> winners;
  struct Choice {
    std::string algorithm, what;  // by which its time is known
  };
  std::map<std::string, Choice> choices;  // for "auto"

  std::string failure(const std::string& what) const {
    const auto found = failures.find(what);
    return found == failures.end() ? std::string() : found->second;
  }
};

// Exact: 16388 B are not 16 KiB.
std::string size_and_ranks(const Node& row) {
  const std::uint64_t bytes = row.at("bytes").bytes(~std::uint64_t(0));
  std::string size = json::format_bytes(bytes);
  if (json::parse_bytes(size) != bytes) size = fmt::format("{} B", bytes);
  return fmt::format("{}, {}", size, counted(std::uint64_t(row.at("ranks").integer(1, 1 << 30)), "rank"));
}

std::string optional_text(const Node& row, const char* key) {
  const auto value = row.raw().find(key);
  return value != row.raw().end() && value->is_string() ? value->get<std::string>() : "";
}

bool is_set(const Node& row, const char* key) {
  const auto value = row.raw().find(key);
  return value != row.raw().end() && *value == true;
}

// 0 where nothing is said of it.
std::uint64_t optional_number(const Node& row, const char* key) {
  const auto value = row.find(key);
  return value && value->is_number() ? std::uint64_t(value->integer(0, INT64_MAX)) : 0;
}

// What stands in several rows gets a number from the second on. By which name it was added.
template <class Value>
std::string add(std::map<std::string, Value>& to, const std::string& what, const Value& value) {
  if (to.emplace(what, value).second) return what;
  for (unsigned i = 2;; ++i)
    if (std::string one = fmt::format("{} (row {} of these)", what, i); to.emplace(one, value).second) return one;
}

// What of a call is not as usual.
std::string unusual(const Node& row) {
  std::string text;
  if (const std::string op = optional_text(row, "op"); !op.empty() && op != "sum") text += ", " + op;
  if (const auto root = optional_number(row, "root")) text += fmt::format(", root {}", root);
  if (is_set(row, "in_place")) text += ", in place";
  if (const auto groups = optional_number(row, "groups"); groups > 1) text += fmt::format(", {} groups", groups);
  if (const auto repeats = optional_number(row, "repeats")) text += fmt::format(", {} times", repeats);
  return text;
}

// The algorithm, and of how it was carried out what the scenario states: what the planner chose may change.
std::string stated_plan(const Node& row, const std::string& algorithm) {
  std::string text = algorithm;
  if (const std::string planner = optional_text(row, "planner"); !planner.empty()) text += ", as chosen by " + planner;
  if (const std::string protocol = optional_text(row, "protocol");
      !protocol.empty() && !is_set(row, "protocol_planned"))
    text += ", " + protocol;
  const auto chunks = optional_number(row, "chunks"), channels = optional_number(row, "channels"),
             window = optional_number(row, "window");
  if (chunks > 0 && !is_set(row, "planned")) text += fmt::format(", {}/{}, window {}", chunks, channels, window);
  return text;
}

// How it did not succeed; empty where it did.
std::string failure(const Node& row) {
  if (const auto wrong = optional_number(row, "wrong")) return counted(wrong, "wrong element");
  const auto faults = row.find("faults");
  const auto completed = faults ? faults->find("completed") : std::nullopt;
  return completed && !completed->boolean() ? "not completed" : "";
}

DocumentTimes of_result(const Node& document) {
  DocumentTimes m;
  for (const Node& row : document.at("runs").items(0, kRowsMax)) {
    std::string call = row.at("collective").string();
    if (const std::string label = optional_text(row, "label"); !label.empty()) call += " (" + label + ")";
    call += fmt::format(" {} {}{} on {} ({})", size_and_ranks(row), optional_text(row, "dtype"), unusual(row),
                        row.at("cluster").string(), row.at("engine").string());
    const std::string algorithm = row.at("algorithm").string(), plan = stated_plan(row, algorithm);
    const std::string what = add(m.times, fmt::format("{}: {}", call, plan), row.at("time_us").number(0, kTimeMax));
    if (const std::string why = failure(row); !why.empty()) m.failures[what] = why;
    if (const auto fastest = row.find("fastest"); fastest && fastest->boolean()) add(m.winners, call, plan);
    if (is_set(row, "auto")) add(m.choices, fmt::format("{}: {}", call, stated_plan(row, "auto")), {algorithm, what});
  }
  return m;
}

DocumentTimes of_tuning(const Node& document) {
  DocumentTimes m;
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

// Its time, those under changes, and what each of its communications takes alone. A decoded token is no training step,
// whatever its workload is called.
DocumentTimes of_step(const Node& document) {
  DocumentTimes m;
  const std::string where = fmt::format("{} on {} ({})", document.at("workload").at("name").string(),
                                        document.at("cluster").at("name").string(), document.at("engine").string());
  const std::string phase = optional_text(document, "phase"),
                    step = phase == "prefill" || phase == "decode" ? phase + " step" : "step";
  add(m.times, fmt::format("{}: {}", where, step), document.at("step_us").number(0, kTimeMax));
  if (const auto changes = document.find("what_if"))
    for (const Node& change : changes->items(0, kRowsMax))
      add(m.times, fmt::format("{}: {} with {}", where, step, change.at("change").string()),
          change.at("step_us").number(0, kTimeMax));
  for (const Node& traffic : document.at("traffic").items(0, kRowsMax)) {
    std::string call = fmt::format("{}: {}, {}", where, traffic.at("kind").string(), traffic.at("what").string());
    std::string algorithms;
    for (const Node& one : traffic.at("calls").items(0, kRowsMax)) {
      call += fmt::format(", {} {}", one.at("collective").string(), size_and_ranks(one));
      algorithms += (algorithms.empty() ? "" : ", ") + one.at("algorithm").string();
    }
    add(m.times, call, traffic.at("time_us").number(0, kTimeMax));
    m.winners[call] = algorithms;
  }
  return m;
}

// What two documents say of the same, and how much only one of them speaks of.
struct Both {
  DocumentTimes before, after;
  std::size_t compared = 0, times = 0, only_before = 0, only_after = 0;
};

Both of_rows(DocumentTimes before, DocumentTimes after) {
  // Where "auto" chose the same algorithm, that one's row says all.
  for (const auto& [call, was] : before.choices) {
    const auto at = after.choices.find(call);
    if (at == after.choices.end() || at->second.algorithm == was.algorithm) continue;
    const std::string what = fmt::format("{} ({} before, {} after)", call, was.algorithm, at->second.algorithm);
    for (const auto& [document, row] : {std::pair(&before, &was.what), {&after, &at->second.what}}) {
      document->times.emplace(what, document->times.at(*row));
      if (const std::string why = document->failure(*row); !why.empty()) document->failures.emplace(what, why);
    }
  }
  Both both{std::move(before), std::move(after)};
  for (const auto& [what, us] : both.before.times) both.compared += both.after.times.count(what);
  both.times = both.compared;
  both.only_before = both.before.times.size() - both.compared;
  both.only_after = both.after.times.size() - both.compared;
  return both;
}

// "8 to 16 ranks".
std::string range_text(Rank from, Rank to, std::string_view what) {
  if (from == to) return counted(from, what);
  return fmt::format("{} to {} {}s", from, to, what);
}

std::string decision(const TuningTable::Entry& e) {
  std::string text(e.algorithm->name);
  if (!e.protocol.empty()) text += " " + e.protocol;
  if (e.chunks > 0) text += fmt::format(", {}/{}", e.chunks, std::max<Count>(e.channels, 1));
  if (e.window > 0) text += fmt::format(", window {}", e.window);
  return text;
}

// Whether the times of both are of the same call: of as many ranks and nodes, and of one size. Older files do not state
// the size; there it is the smallest simulated in the range, so the ranges must be the same. "All that the machine has"
// is the same in both, though one has grown.
bool times_of_one_call(const TuningTable::Entry& x, const TuningTable::Machine& of_x, const TuningTable::Entry& y,
                       const TuningTable::Machine& of_y) {
  if (!x.predicted_us || !y.predicted_us || x.ranks_min != y.ranks_min || x.nodes_min != y.nodes_min) return false;
  const auto same_end = [](Rank min, Rank one, Rank whole, Rank other, Rank whole_other) {
    return one == other || (one == whole && other == whole_other && min < std::min(one, other));
  };
  if (!same_end(x.ranks_min, x.ranks_max, of_x.nodes * of_x.cards_per_node, y.ranks_max,
                of_y.nodes * of_y.cards_per_node) ||
      !same_end(x.nodes_min, x.nodes_max, of_x.nodes, y.nodes_max, of_y.nodes))
    return false;
  if (x.predicted_at_bytes && y.predicted_at_bytes) return x.predicted_at_bytes == y.predicted_at_bytes;
  return x.from_bytes == y.from_bytes && x.to_bytes == y.to_bytes;
}

// Compares the ranges of calls for which both tables have an entry, and their times where these are of the same call.
Both of_tables(const Node& before, const Node& after) {
  using Entry = TuningTable::Entry;
  const TuningTable a = read_tuning_table(before), b = read_tuning_table(after);
  if (a.machine.cluster != b.machine.cluster)
    after.at("machine").at("cluster").fail(
        fmt::format("found \"{}\", expected \"{}\", as the other file has", b.machine.cluster, a.machine.cluster));
  Both both;
  std::vector<bool> met(b.entries.size());
  for (const Entry& x : a.entries) {
    bool any = false;
    for (const Entry& y : b.entries) {
      if (x.algorithm->kind != y.algorithm->kind) continue;
      const Count from = std::max(x.from_bytes, y.from_bytes), to = std::min(x.to_bytes, y.to_bytes);
      const Rank ranks_min = std::max(x.ranks_min, y.ranks_min), ranks_max = std::min(x.ranks_max, y.ranks_max);
      const Rank nodes_min = std::max(x.nodes_min, y.nodes_min), nodes_max = std::min(x.nodes_max, y.nodes_max);
      if (from >= to || ranks_min > ranks_max || nodes_min > nodes_max) continue;
      any = met[std::size_t(&y - b.entries.data())] = true;
      ++both.compared;
      const std::string call = fmt::format(
          "{} from {}{}, {} on {} of {}", name(x.algorithm->kind), json::format_bytes(from),
          to == Entry::kNoEnd ? "" : " to less than " + json::format_bytes(to),
          range_text(ranks_min, ranks_max, "rank"), range_text(nodes_min, nodes_max, "node"), a.machine.cluster);
      both.before.winners[call] = decision(x);
      both.after.winners[call] = decision(y);
      if (!times_of_one_call(x, a.machine, y, b.machine)) continue;
      ++both.times;
      const auto at = x.predicted_at_bytes && y.predicted_at_bytes ? x.predicted_at_bytes : std::nullopt;
      const std::string timed = at ? fmt::format("{}: at {}", call, json::format_bytes(*at)) : call;
      add(both.before.times, timed, *x.predicted_us);
      add(both.after.times, timed, *y.predicted_us);
    }
    both.only_before += !any;
  }
  both.only_after = std::size_t(std::ranges::count(met, false));
  return both;
}

std::string kind_of(const Node& document) {
  constexpr std::string_view kKinds[] = {"gccl/result/1", "gccl/step/1", "gccl/tuning/1", "gccl/table/1"};
  const std::string schema = document.at("schema").string();
  if (std::ranges::find(kKinds, schema) == std::end(kKinds))
    document.at("schema").fail(
        fmt::format("found \"{}\", expected \"gccl/result/1\" or \"gccl/step/1\" (gccl run --json), \"gccl/tuning/1\" "
                    "(gccl tune --json) or \"gccl/table/1\" (gccl tune --table)",
                    schema));
  return schema;
}

}  // namespace

Json compare(const Node& before, const Node& after, double threshold_percent) {
  const std::string kind = kind_of(before);
  if (kind_of(after) != kind)
    after.at("schema").fail(fmt::format("found \"{}\", expected \"{}\", as the other file has", kind_of(after), kind));
  const Both both = kind == "gccl/table/1"    ? of_tables(before, after)
                    : kind == "gccl/tuning/1" ? of_rows(of_tuning(before), of_tuning(after))
                    : kind == "gccl/step/1"   ? of_rows(of_step(before), of_step(after))
                                              : of_rows(of_result(before), of_result(after));
  Json slower = Json::array(), faster = Json::array(), failed = Json::array(), changed = Json::array();
  for (const auto& [what, us] : both.before.times) {
    const auto at = both.after.times.find(what);
    if (at == both.after.times.end()) continue;
    if (const std::string was = both.before.failure(what), is = both.after.failure(what);
        was != is) {  // no times of the same thing
      if (was.empty()) failed.push_back({{"what", what}, {"before", was}, {"after", is}});
      continue;
    }
    const double percent = us > 0 ? (at->second / us - 1) * 100 : at->second > 0 ? kFromNothing : 0;
    Json row = {{"what", what}, {"before_us", us}, {"after_us", at->second}, {"percent", percent}};
    if (percent > threshold_percent + kRounding)
      slower.push_back(std::move(row));
    else if (percent < -threshold_percent - kRounding)
      faster.push_back(std::move(row));
  }
  if (both.compared == 0)
    throw json::InputError(fmt::format("{} and {}: they have no row in common: nothing to compare",
                                       before.file().string(), after.file().string()));
  for (const auto& [what, winner] : both.before.winners)
    if (const auto at = both.after.winners.find(what); at != both.after.winners.end() && at->second != winner)
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
          {"of", kind},
          {"compared", both.compared},
          {"times", both.times},
          {"only_before", both.only_before},
          {"only_after", both.only_after},
          {"ok", slower.empty() && failed.empty()},
          {"failed", std::move(failed)},
          {"slower", std::move(slower)},
          {"faster", std::move(faster)},
          {"winner_changed", std::move(changed)}};
}

std::string comparison_text(Json c) {
  json::replace_control(c);
  const auto compared = c["compared"].get<std::size_t>();
  const bool tables = c["of"] == "gccl/table/1";
  const auto times = c["times"].get<std::size_t>();
  std::string text = fmt::format(
      "{}{} in both{}; {} only before, {} only after; threshold {:.4g} %\n",
      counted(compared, tables ? "range" : "time"), tables ? " of calls" : "",
      tables ? fmt::format(", {} with times of the same call", times == 0 ? "none" : fmt::format("{}", times)) : "",
      c["only_before"].get<std::size_t>(), c["only_after"].get<std::size_t>(), c["threshold_percent"].get<double>());
  const auto list = [&](const char* key, std::string_view title, auto line) {
    const Json& rows = c[key];
    text += fmt::format("\n{}: {}\n", title, rows.size());
    for (std::size_t i = 0; i < rows.size() && i < kPrinted; ++i) text += "  " + line(rows[i]) + '\n';
    if (rows.size() > kPrinted) text += fmt::format("  and {} more\n", rows.size() - kPrinted);
  };
  if (!c["failed"].empty())
    list("failed", "no longer right", [](const Json& r) {
      const std::string before = r["before"];
      return fmt::format("{}: {} -> {}", r["what"].get<std::string>(), before.empty() ? "right" : before,
                         r["after"].get<std::string>());
    });
  const auto change = [](const Json& r) {
    return fmt::format("{}: {} -> {}, {}{} %", r["what"].get<std::string>(), format_time(r["before_us"]),
                       format_time(r["after_us"]), r["percent"] < 0 ? "" : "+", format_number(r["percent"]));
  };
  list("slower", "slower", change);
  list("faster", "faster", change);
  list("winner_changed", "another winner", [](const Json& r) {
    return fmt::format("{}: {} -> {}", r["what"].get<std::string>(), r["before"].get<std::string>(),
                       r["after"].get<std::string>());
  });
  return text;
}

}  // namespace gccl::sim
