#include <fmt/format.h>

#include <algorithm>

#include "sim/availability/study.hpp"

namespace gccl::sim {
namespace {

constexpr std::string_view kAvailabilityPolicies[] = {"restart", "shrink", "spare"};

constexpr double kFailuresMax = 1e9;  // minutes of computing

double seconds(const json::Node& node, double least = 0) {
  const double s = double(node.nanos(1e9)) / 1e9;  // exact where it is whole, as times 1e-9 is not
  if (s < least) node.fail(fmt::format("found {} s, expected at least {} s", s, least));
  return s;
}

template <class T, class F>
std::vector<T> list(const json::Node& node, F read) {
  std::vector<T> all;
  if (!node.is_array()) return {read(node)};
  for (const json::Node& item : node.items(1, 64)) all.push_back(read(item));
  return all;
}

// A list whose settings are all different: each is a line or a point of its own.
template <class T, class F>
std::vector<T> distinct(const json::Node& node, F read) {
  std::vector<T> all;
  return list<T>(node, [&](const json::Node& item) {
    const T value = read(item);
    if (std::ranges::find(all, value) != all.end()) item.fail(fmt::format("{} appears twice", item.text()));
    return all.emplace_back(value);
  });
}

}  // namespace

std::span<const std::string_view> availability_policies() { return kAvailabilityPolicies; }

FailureRates read_rates(const json::Node& node) {
  node.schema("gccl/failures/1");
  node.allow({"$schema", "schema", "name", "source", "description", "causes"});
  FailureRates r{.name = node.at("name").string(), .source = node.at("source").string(), .causes = {}};
  if (const auto n = node.find("description")) n->string();
  for (const json::Node& cause : node.at("causes").items(1, 1000)) {
    cause.allow({"cause", "per_card_day", "per_node_day", "note"});
    FailureRates::Cause c{.name = cause.at("cause").string()};
    if (const auto n = cause.find("note")) n->string();
    if (const auto n = cause.find("per_card_day")) c.per_card_day = n->number(0, 1);
    if (const auto n = cause.find("per_node_day")) c.per_node_day = n->number(0, 1);
    if (c.per_card_day + c.per_node_day == 0) cause.fail("has no rate, expected \"per_card_day\" or \"per_node_day\"");
    r.causes.push_back(std::move(c));
  }
  return r;
}

AvailabilityStudy read_study(const json::Node& node, const std::function<std::string(const json::Node&)>& shipped) {
  node.schema("gccl/availability/1");
  node.allow({"$schema", "schema", "name", "description", "failures", "cards", "cards_per_node", "days", "replicas",
              "seed", "checkpoint", "detection_s", "restart_s", "shrink_s", "step_s", "repair_s", "policies", "spares",
              "expect"});
  AvailabilityStudy s;
  s.name = node.at("name").string();
  if (const auto n = node.find("description")) s.description = n->string();
  s.rates = read_rates(json::Node::load(shipped(node.at("failures"))));
  const auto count = [](std::int64_t most) {
    return [most](const json::Node& n) { return std::uint64_t(n.integer(0, most)); };
  };
  s.cards = distinct<std::uint64_t>(node.at("cards"),
                                    [](const json::Node& n) { return std::uint64_t(n.integer(1, 10'000'000)); });
  if (const auto n = node.find("cards_per_node")) s.cards_per_node = std::uint64_t(n->integer(1, 1024));
  for (const std::uint64_t cards : s.cards)
    if (cards % s.cards_per_node)
      node.at("cards").fail(fmt::format("{} cards are no whole nodes of {}", cards, s.cards_per_node));
  s.days = node.at("days").number(0.01, 3660);
  if (const auto n = node.find("replicas")) s.replicas = unsigned(n->integer(1, 10'000));
  if (const auto n = node.find("seed")) s.seed = std::uint64_t(n->integer(0, INT64_MAX));
  const json::Node checkpoint = node.at("checkpoint");
  checkpoint.allow({"every_s", "write_s"});
  s.intervals = distinct<double>(checkpoint.at("every_s"), [](const json::Node& n) { return seconds(n, 1); });
  s.write = seconds(checkpoint.at("write_s"));
  const auto time = [&](const char* key, double* to) {
    if (const auto n = node.find(key)) *to = seconds(*n);
  };
  time("detection_s", &s.detection);
  time("restart_s", &s.restart);
  time("shrink_s", &s.shrink);
  time("step_s", &s.step);
  time("repair_s", &s.repair);
  s.policies = distinct<AvailabilityPolicy>(
      node.at("policies"), [](const json::Node& n) { return AvailabilityPolicy(n.one_of(kAvailabilityPolicies)); });
  s.spares = {0};
  if (const auto n = node.find("spares")) s.spares = distinct<std::uint64_t>(*n, count(100'000));
  double failures = 0;  // and ends, as a replica without a failure takes its time, too
  for (const std::uint64_t cards : s.cards)
    failures += (failures_per_second(s, cards) * s.days * kDay + 1) * double(s.replicas) * double(s.intervals.size()) *
                double(s.policies.size()) * double(s.spares.size());
  if (failures > kFailuresMax)
    node.fail(fmt::format(
        "has about {:.2g} failures and ends in {:.4g} days of {} replicas of each setting, expected at most {:.2g}",
        failures, s.days, s.replicas, kFailuresMax));
  const auto expect = node.find("expect");
  if (!expect) return s;
  expect->allow({"min_goodput_percent", "max_daly_error_points", "mttf_s", "mttf_tolerance_percent"});
  if (const auto n = expect->find("min_goodput_percent")) s.min_goodput = n->number(0, 100) / 100;
  if (const auto n = expect->find("max_daly_error_points")) s.max_daly_error = n->number(0, 100) / 100;
  if (const auto n = expect->find("mttf_tolerance_percent")) s.mttf_tolerance = n->number(0, 100) / 100;
  if (const auto n = expect->find("mttf_s")) {
    const auto times = list<double>(*n, [](const json::Node& x) { return seconds(x); });
    if (times.size() != s.cards.size())
      n->fail(fmt::format("has {} times for {} numbers of cards", times.size(), s.cards.size()));
    for (std::size_t i = 0; i < times.size(); ++i) s.mttf.emplace_back(s.cards[i], times[i]);
  }
  return s;
}

}  // namespace gccl::sim
