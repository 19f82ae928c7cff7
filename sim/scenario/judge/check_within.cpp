// "within_percent_of": at most so many percent longer than another algorithm at the same point, than the same point of
// another run, or of a stored result.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libgccl/json/nearest.hpp"
#include "libgccl/json/schema_of.hpp"
#include "sim/scenario/judge/baseline.hpp"
#include "sim/scenario/judge/check.hpp"
#include "sim/scenario/judge/row_text.hpp"

namespace gccl::sim {
namespace {

constexpr const char* kSchema = "gccl/result/1";

constexpr double kTimeMax = 1e300;  // of a stored row: a number that JSON can hold, and its percentages too

// What a result of an earlier `gccl run` holds.
std::shared_ptr<const nlohmann::json> read_stored(const json::Node& node) {
  const std::filesystem::path file = node.path();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), error))
      if (entry.path().extension() == ".json" && json::schema_of(entry.path()) == kSchema)
        found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    const std::vector<std::string_view> names(found.begin(), found.end());
    node.fail(fmt::format("there is no file {}{}", file.string(), suggestion(file.filename().string(), names)));
  }
  const json::Node result = json::Node::load(file);
  result.schema(kSchema);
  for (const json::Node& row : result.at("runs").items()) {
    row.at("time_us").number(0, kTimeMax);
    for (const char* key : {"cluster", "engine", "collective", "algorithm", "label"}) row.at(key).string();
  }
  return std::make_shared<const nlohmann::json>(with_present_names(result.at("runs").raw()));
}

void read_within(const json::Node& node, const ScenarioRun& run, Expectation& e) {
  node.allow({"algorithm", "run", "result", "percent"});
  e.limit = node.at("percent").number(0, 1e6);
  const auto result = node.find("result");
  e.label = node.find("run");
  if (int(node.has("algorithm")) + int(e.label.has_value()) + int(result.has_value()) != 1)
    node.fail("expected exactly one of \"algorithm\", \"run\" and \"result\" to compare with");
  if (e.label) e.subject = e.label->string();
  if (result) e.subject = result->string(), e.stored = read_stored(*result);
  if (e.label || result) return;
  if (run.kind != ScenarioRun::Kind::collective)
    node.fail("is about a single collective; a run of several can be compared with a \"run\" or a \"result\"");
  e.subject = read_algorithm(node.at("algorithm"), run, "best");
  if (!e.algorithm && !run.task().algorithms.automatic)
    node.fail("compares the automatic choice, which this run does not ask for; state the \"algorithm\" beside it");
  if (!e.algorithm) e.algorithm = "auto";
}

// The row has another algorithm there: both are the planner's choice.
std::string chosen_there(const ResultRow& row, std::string_view there) {
  return row.single && row.algorithm != there ? fmt::format(", where auto chose {}", there) : "";
}

// prepare_within looks before anything runs, but another seed may place ranks, and so plan, otherwise.
Judgement nothing_there(const Expectation& e, std::string_view name) {
  return {fmt::format("{} has no result for {}", e.subject, name), false, kUnlimited};
}

Judgement incomplete_there(const Expectation& e, std::string_view name) {
  return {fmt::format("{} did not complete for {}", e.subject, name), false, kUnlimited};
}

Judgement judge_within(const Expectation& e, const ResultRows& rows, std::size_t i) {
  const ResultRow& row = rows[i];
  if (!row.completed) return {rows.incomplete(i), false, kUnlimited};
  double than_us = 0;
  std::string other;
  if (e.stored) {
    const auto there = same_rows(*e.stored, *row.json);
    if (there.empty()) return nothing_there(e, rows.name(i));
    if (!completed(*there.front())) return incomplete_there(e, rows.name(i));
    than_us = there.front()->at("time_us");
    other = e.subject + chosen_there(row, there.front()->at("algorithm").get_ref<const std::string&>());
  } else if (e.run) {
    const auto there = same_point(rows, *e.run, row);
    if (!there) return nothing_there(e, rows.name(i));
    if (!rows[*there].completed) return incomplete_there(e, rows.name(i));
    than_us = rows[*there].time_us;
    other = fmt::format("\"{}\"{}", e.subject, chosen_there(row, rows[*there].algorithm));
  } else {
    const auto [best, named, end] = rows.rivals(i, e.subject);
    const std::size_t subject = e.subject == "best" ? best : named;
    if (subject == end) return {fmt::format("{} cannot serve this call", e.subject), false, kUnlimited};
    if (subject == i)
      return {fmt::format("{} is {}", rows.name(i), e.subject == "best" ? "the fastest" : "itself"), true, -e.limit};
    if (!rows[subject].completed) return {rows.incomplete(subject), false, kUnlimited};
    than_us = rows[subject].time_us;
    other = rows[subject].algorithm;
  }
  const double own = row.time_us, percent = than_us > 0 ? (own / than_us - 1) * 100 : (own > 0 ? kUnlimited : 0);
  const std::string than = std::abs(percent) < 5e-4 ? fmt::format("is as fast as {}", other)
                           : percent == kUnlimited  ? fmt::format("takes longer than {}", other)
                                                    : fmt::format("takes {:.3g} % {} than {}", std::abs(percent),
                                                                 percent < 0 ? "less" : "longer", other);
  return {fmt::format("{} {} ({:.6g} us, {:.6g} us)", rows.name(i), than, own, than_us),
          own <= than_us * (1 + e.limit / 100) * (1 + kRoundingPart), percent - e.limit};
}

// What the point is to be compared with must have that point, with one time.
void prepare_within(const Expectation& e, const Scenario& scenario, const ResultRows& heads, std::size_t i) {
  const nlohmann::json& head = *heads[i].json;
  if (e.run && !same_point(heads, *e.run, heads[i]))
    e.where.at("run").fail(fmt::format("the run \"{}\" has no result for {}", e.subject, describe(scenario, head)));
  if (!e.stored) return;
  const std::vector<const nlohmann::json*> there = same_rows(*e.stored, head);
  if (there.empty())
    e.where.at("result").fail(
        fmt::format("{} has no result for {}{}", e.subject, describe(scenario, head), nearest_row(*e.stored, head)));
  for (const nlohmann::json* other : there)
    if (other->at("time_us") != there[0]->at("time_us"))
      e.where.at("result").fail(
          fmt::format("{} has several results for {}: {} us at /runs/{} and {} us at /runs/{}; expected one, or a "
                      "\"label\" for each run, there and here",
                      e.subject, describe(scenario, head), json::format_value(there[0]->at("time_us")),
                      there[0] - &(*e.stored)[0], json::format_value(other->at("time_us")), other - &(*e.stored)[0]));
}

std::string demand_within(const Expectation& e) {
  const char* const quote = e.run ? "\"" : "";
  return fmt::format("within {:.6g} % of {}{}{}", e.limit, quote, e.subject, quote);
}

}  // namespace

extern const Check within_check{.key = "within_percent_of",
                                .virtual_time = true,
                                .read = read_within,
                                .demand = demand_within,
                                .judge = judge_within,
                                .prepare = prepare_within};

}  // namespace gccl::sim
