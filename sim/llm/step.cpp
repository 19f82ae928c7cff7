#include "sim/llm/step.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "libgccl/json/nearest.hpp"
#include "sim/llm/arithmetic.hpp"
#include "sim/llm/chakra_step.hpp"
#include "sim/llm/step_result.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

// Two kinds that are in flight at the same time for less than this part of the step are taken as independent.
constexpr double kTogetherMin = 0.002;

std::size_t at(Kind k) { return std::size_t(k); }

// How often each traffic is carried out on one rank of a stage.
std::vector<std::vector<std::size_t>> numbers(const StepGraph& g, std::size_t traffic) {
  std::vector<std::vector<std::size_t>> all(g.stages, std::vector<std::size_t>(traffic));
  for (const StepTask& t : g.tasks)
    if (!t.computes()) ++all[t.stage][t.traffic];
  return all;
}

std::unique_ptr<PlayedStep> expanded(const LlmWorkload& w, const StepWorld& world) {
  auto s = std::make_unique<PlayedStep>(PlayedStep{w, {}, {}, {}, {}, {}});
  s->expansion = std::make_shared<Expansion>(expand(s->workload, expert_ranks_in_node(w, world)));
  s->graph = schedule(*s->expansion);
  s->costs.sm_share = w.sm_share;
  return s;
}

std::vector<Json> runs_of(const PlayedStep& s, const StepWorld& world) {
  std::vector<Json> runs;
  for (const Traffic& t : s.expansion->traffic) runs.push_back(run_of(s.workload, world, {&t}));
  return runs;
}

// Plays those kinds concurrently that the timeline has in flight at the same time, each by the communication on which
// it spends most.
Json contention(PlayedStep& s, const StepWorld& world, Pricer& pricer) {
  const auto& traffic = s.expansion->traffic;
  const auto number = numbers(s.graph, traffic.size());
  ByKind<std::optional<std::size_t>> most;
  ByKind<double> spent{};
  for (std::size_t t = 0; t < traffic.size(); ++t) {
    double us = 0;
    for (const auto& stage : number) us += double(stage[t]) * s.costs.us[t];
    const std::size_t k = at(traffic[t].kind);
    if (!most[k] || us > spent[k]) most[k] = t, spent[k] = us;
  }
  std::vector<std::array<std::size_t, 4>> pairs;  // kinds, traffic
  std::vector<Json> runs;
  for (std::size_t a = 0; a < kKinds; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      const double together = s.timeline.together[a][b];
      if (together == 0 || together < kTogetherMin * s.timeline.step_us * s.graph.stages) continue;
      std::size_t ta = *most[a], tb = *most[b];
      if (a == b) {
        if (Kind(a) != Kind::pipeline || !s.expansion->backward_send) continue;
        ta = *s.expansion->forward_send, tb = *s.expansion->backward_send;
      }
      pairs.push_back({a, b, ta, tb});
      runs.push_back(run_of(s.workload, world, {&traffic[ta], &traffic[tb]}));
    }
  Json out = Json::array();
  const std::vector<Json> rows = pricer.play(s.workload, world, runs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [a, b, ta, tb] = pairs[i];
    const auto slower = slower_together(rows[i], traffic[ta].calls.size(), s.costs.us[ta], s.costs.us[tb]);
    s.costs.slower[a][b] = slower.first;
    s.costs.slower[b][a] = a == b ? std::max(slower.first, slower.second) : slower.second;
    out.push_back({{"kinds", {kind_names()[a], kind_names()[b]}},
                   {"what", {traffic[ta].what, traffic[tb].what}},
                   {"slower", {slower.first, slower.second}},
                   {"together_us", s.timeline.together[a][b] / s.graph.stages}});
  }
  return out;
}

Json calls_of(const PlayedStep& s, const Traffic& t, const Json& row, Rank in_node) {
  Json all = Json::array();
  for (std::size_t i = 0; i < t.calls.size(); ++i) {
    const TrafficCall& c = t.calls[i];
    Json call = {{"collective", name(c.collective)},
                 {"bytes", c.bytes},
                 {"dtype", name(c.dtype)},
                 {"ranks", group_size(c.groups, s.workload.parallel, in_node)}};
    if (!row.is_null()) add_operation(call, row["operations"][i]);
    all.push_back(std::move(call));
  }
  return all;
}

double sent(const PlayedStep& s, const Traffic& t, Rank in_node) {
  double bytes = 0;
  for (const TrafficCall& c : t.calls) bytes += sent_bytes(c, group_size(c.groups, s.workload.parallel, in_node));
  return bytes;
}

Json memory_json(const Memory& m) {
  return {{"weights_GB", m.weights / 1e9},     {"gradients_GB", m.gradients / 1e9},
          {"optimizer_GB", m.optimizer / 1e9}, {"activations_GB", m.activations / 1e9},
          {"cache_GB", m.cache / 1e9},         {"gathered_GB", m.gathered / 1e9},
          {"backward_GB", m.backward / 1e9},   {"sum_GB", m.sum() / 1e9}};
}

void add_result(PlayedStep& s, const StepWorld& world, const std::vector<Json>& rows) {
  const LlmWorkload& w = s.workload;
  const Parallel& p = w.parallel;
  const Timeline& t = s.timeline;
  const auto& traffic = s.expansion->traffic;
  const Rank in_node = expert_ranks_in_node(w, world);
  const auto number = numbers(s.graph, traffic.size());
  static constexpr std::string_view kPhases[] = {"training", "prefill", "decode"};
  Json& r = s.result;
  r = step_head(w, *world.cluster, kPhases[std::size_t(w.phase)], t.step_us);
  r["parallel"] = {{"tensor", p.tensor},         {"context", p.context}, {"data", p.data}, {"pipeline", p.pipeline},
                   {"interleave", p.interleave}, {"expert", p.expert},   {"zero", p.zero}, {"sequence", p.sequence}};
  r["micro_batches"] = w.micro_batches();
  const double seconds = t.step_us / 1e6;
  const double tokens = double(w.global_batch) * (w.phase == Phase::decode ? 1 : double(w.sequence));
  r["tokens_per_s"] = seconds > 0 ? tokens / seconds : 0;
  const double per_TFLOPS = seconds > 0 ? 1 / (p.ranks() * seconds * 1e12) : 0;
  const double flops = step_flops(w, true) * per_TFLOPS;
  r["TFLOPS_per_card"] = flops;
  const bool peak = w.compute.card_TFLOPS > 0;
  r["mfu_percent"] = peak ? Json(flops / w.compute.card_TFLOPS * 100) : Json();
  r["mfu_full_attention_percent"] =
      peak ? Json(step_flops(w, false) * per_TFLOPS / w.compute.card_TFLOPS * 100) : Json();

  std::vector<StageRow> stages;
  for (Rank i = 0; i < s.graph.stages; ++i) {
    StageRow& stage = stages.emplace_back(StageRow{t.stages[i], {}, memory_json(memory_of(w, i))});
    for (std::size_t x = 0; x < traffic.size(); ++x)
      stage.sent_bytes[at(traffic[x].kind)] += double(number[i][x]) * sent(s, traffic[x], in_node);
  }
  add_stages(stages, r);
  Json list = Json::array();
  for (std::size_t x = 0; x < traffic.size(); ++x) {
    std::size_t most = 0;
    for (const auto& stage : number) most = std::max(most, stage[x]);
    list.push_back({{"kind", name(traffic[x].kind)},
                    {"what", traffic[x].what},
                    {"calls", calls_of(s, traffic[x], rows.empty() ? Json() : rows[x], in_node)},
                    {"time_us", s.costs.us[x]},
                    {"number_max", most},
                    {"sent_bytes", sent(s, traffic[x], in_node)}});
  }
  r["traffic"] = std::move(list);
}

Json* find_path(Json& document, const std::string& path, bool create) {
  Json* at = &document;
  std::size_t from = 0;
  while (from <= path.size()) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::string key = path.substr(from, dot - from);
    if (key.empty() || (!at->is_object() && !(create && at->is_null()))) return nullptr;
    if (!create && !at->contains(key)) return nullptr;
    at = &(*at)[key];
    from = dot + 1;
  }
  return at;
}

void change_algorithm(Json& document, const std::string& value, std::string_view option) {
  std::vector<std::string_view> names;
  bool found = false;
  for (const Algorithm& a : algorithms()) {
    if (std::ranges::find(names, a.name) == names.end()) names.push_back(a.name);
    if (a.name != value) continue;
    Json& named = document["algorithms"];
    if (!named.is_null() && !named.is_object())
      throw json::InputError(fmt::format("{}: found \"algorithms\" {}, expected an object", option, named.dump()));
    named[std::string(name(a.kind))] = value;
    found = true;
  }
  if (!found)
    throw json::InputError(fmt::format("{}: found algorithm \"{}\"{}", option, value, suggestion(value, names)));
}

}  // namespace

std::vector<std::vector<std::uint32_t>> tasks_by_row(const PlayedStep& s) {
  const auto& tasks = s.graph.tasks;
  std::vector<std::vector<std::uint32_t>> rows(std::size_t(s.graph.stages) * kQueues);
  const auto add = [&](Rank stage, std::uint32_t t) {
    if (tasks[t].queue != Queue::none) rows[stage * kQueues + std::size_t(tasks[t].queue)].push_back(t);
  };
  for (std::uint32_t t = 0; t < tasks.size(); ++t) add(tasks[t].stage, t);
  if (s.workload.chakra)
    for (const auto& [call, end] : s.graph.edges)
      if (!tasks[call].computes() && tasks[end].stage != tasks[call].stage) add(tasks[end].stage, call);
  for (auto& row : rows)
    std::ranges::stable_sort(
        row, [&](std::uint32_t a, std::uint32_t b) { return s.timeline.begin[a] < s.timeline.begin[b]; });
  return rows;
}

std::unique_ptr<PlayedStep> play_step(const LlmWorkload& w, Pricer& pricer) {
  if (w.chakra) return play_traces(w, pricer);
  const StepWorld world = pricer.world(w);
  auto s = expanded(w, world);
  s->runs = runs_of(*s, world);
  const std::vector<Json> rows = pricer.play(s->workload, world, s->runs);
  for (const Json& row : rows) s->costs.us.push_back(row["time_us"].get<double>());
  s->timeline = timeline_of(s->graph, *s->expansion, s->costs, pricer.stop());
  Json together = contention(*s, world, pricer);
  if (!together.empty()) s->timeline = timeline_of(s->graph, *s->expansion, s->costs, pricer.stop());
  add_result(*s, world, rows);
  s->result["together"] = std::move(together);
  add_expectations(w, s->result);
  return s;
}

void check_layer_times(const LlmWorkload& w, const LlmWorkload& other, const std::string& change) {
  if (!w.compute.forward_us || !other.compute.forward_us) return;
  const bool training = other.phase == Phase::training;
  const auto states = [&](std::string_view half) {
    return ("," + change).find(fmt::format(",compute.layer_us.{}=", half)) != std::string::npos;
  };
  if (states("forward") && (!training || states("backward"))) return;
  const auto work = [](const LlmWorkload& x) {
    const Model& m = x.model;
    return std::tuple(x.phase, x.parallel.tensor, x.parallel.context, x.micro_batch, x.sequence, x.recompute, m.hidden,
                      m.ffn, m.heads, m.kv_heads, m.head_dim, m.gated, m.latent, m.experts.count, m.experts.top_k,
                      m.experts.shared, m.experts.ffn, x.dtype,
                      x.phase == Phase::decode ? x.parallel.expert : Rank(0));  // whose weights a card reads
  };
  if (work(w) != work(other))
    other.where.at("compute")
        .at("layer_us")
        .fail(fmt::format(
            "is the time of another layer than this change leaves; expected its own beside the change, such as "
            "compute.layer_us.forward=5ms{}, or \"card_TFLOPS\" in place of \"layer_us\" in the workload",
            training ? ",compute.layer_us.backward=10ms" : ""));
}

Json changed(const Json& document, const std::string& change, std::string_view option) {
  Json out = document;
  std::set<std::string> keys;
  std::size_t from = 0;
  while (from <= change.size()) {
    const std::size_t comma = std::min(change.find(',', from), change.size());
    const std::string one = change.substr(from, comma - from);
    from = comma + 1;
    const std::size_t equal = one.find('=');
    if (one != json::valid_text(one))
      throw json::InputError(fmt::format("{}: found \"{}\", expected UTF-8", option, one));
    if (equal == std::string::npos || equal == 0 || equal + 1 == one.size())
      throw json::InputError(fmt::format(
          "{}: found \"{}\", expected KEY=VALUE, such as bucket_bytes=25MiB or parallel.tensor=4", option, one));
    const std::string key = one.substr(0, equal), value = one.substr(equal + 1);
    if (!keys.insert(key).second)
      throw json::InputError(fmt::format("{}: found \"{}\" twice in \"{}\", expected one value", option, key, change));
    if (key == "algorithm") {
      change_algorithm(out, value, option);
      continue;
    }
    Json* const place = find_path(out, key, true);
    if (!place)
      throw json::InputError(fmt::format("{}: found \"{}\", which is no path of keys in the workload", option, key));
    const Json parsed = Json::parse(value, nullptr, false);
    *place = parsed.is_discarded() || parsed.is_structured() ? Json(value) : parsed;
  }
  return out;
}

}  // namespace gccl::sim::llm
