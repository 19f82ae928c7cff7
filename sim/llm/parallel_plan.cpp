#include "sim/llm/parallel_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "libgccl/base/counted.hpp"
#include "sim/llm/arithmetic.hpp"
#include "sim/report/table.hpp"

namespace gccl::sim::llm {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kCandidatesMax = 5000;

struct Candidate {
  Json document;
  double memory_GB = 0, estimate_us = 0;
  bool possible = true;
};

// Some sizes divide model and batch, and yet nodes or algorithms do not suit them, such as expert groups that have
// nodes in part. They are left out; where all are, why the first was is what is wrong.
struct Impossible {
  std::string first;

  template <class Do>
  bool unless(Do f) {
    try {
      f();
      return true;
    } catch (const json::InputError& e) {
      if (first.empty()) first = e.what();
      return false;
    }
  }
};

double most_memory_GB(const LlmWorkload& w) {
  double most = 0;
  for (Rank s = 0; s < w.parallel.pipeline; ++s) most = std::max(most, memory_of(w, s).sum() / 1e9);
  return most;
}

// The workload with ZeRO 1 and 3, each with the least recomputation that fits; nothing where sizes do not divide.
void add_fitting(const ParallelQuestion& q, Json document, double& least_GB, std::vector<Candidate>& all) {
  for (const int zero : {1, 3})
    for (const char* recompute : {"none", "selective", "full"}) {
      document["parallel"]["zero"] = zero;
      document["recompute"] = recompute;
      double memory = 0;
      try {
        const LlmWorkload w = read_workload(json::Node::parse(document.dump(), q.file));
        if (zero > 1 && w.parallel.dense_data() == 1 && w.parallel.expert_data() == 1) return;  // nothing to share out
        memory = most_memory_GB(w);
      } catch (const json::InputError&) {
        return;  // what does not divide
      }
      least_GB = least_GB == 0 ? memory : std::min(least_GB, memory);
      if (memory > q.memory_GB * q.memory_share) continue;
      all.push_back({document, memory, 0});
      break;
    }
}

std::vector<Rank> divisors(Count n, Count most) {
  std::vector<Rank> all;
  for (Rank d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) all.push_back(d);
  return all;
}

// How often each stage's layers are cut: by a power of two, or evenly.
std::vector<unsigned> interleavings(Rank stages, Count layers) {
  std::vector<unsigned> all{1};
  for (unsigned v = 2; v <= 8 && stages > 1; ++v)
    if (std::has_single_bit(v) || layers % (Count(stages) * v) == 0) all.push_back(v);
  return all;
}

std::vector<Candidate> candidates(const ParallelQuestion& q, const LlmWorkload& base) {
  std::vector<Candidate> all;
  double least_GB = 0;
  const Model& model = base.model;
  for (const Rank t : divisors(q.ranks, q.tensor_max))
    for (const Rank c : divisors(q.ranks / t, q.context_max))
      for (const Rank p : divisors(q.ranks / t / c, model.layers + 2)) {
        const Rank d = q.ranks / (t * c * p);
        for (const Rank e : divisors(std::max<Count>(model.experts.count, 1), q.ranks / p))
          for (const unsigned v : interleavings(p, model.layers))
            for (Count micro = 1; micro <= q.micro_max; micro *= 2) {
              Json document = q.document;
              Json& parallel = document["parallel"];
              parallel["tensor"] = t;
              parallel["context"] = c;
              parallel["pipeline"] = p;
              parallel["data"] = d;
              parallel["expert"] = e;
              parallel["interleave"] = v;
              document["batch"]["micro"] = micro;
              add_fitting(q, std::move(document), least_GB, all);
              if (all.size() > kCandidatesMax)
                throw json::InputError(
                    fmt::format("more than {} ways fit; limit --tensor, --context or --micro", kCandidatesMax));
            }
      }
  if (all.empty())
    throw json::InputError(
        least_GB == 0
            ? fmt::format("{}: no numbers of tensor, context, expert and pipeline ranks divide model, batch and {}",
                          q.file.string(), counted(q.ranks, "rank"))
            : fmt::format(
                  "{}: nothing fits {:.4g} GB on {}: the least that a step takes is {:.4g} GB, of {:.4g} GB that may "
                  "be used",
                  q.file.string(), q.memory_GB, counted(q.ranks, "rank"), least_GB, q.memory_GB * q.memory_share));
  return all;
}

Json plan_row(const Candidate& c, const LlmWorkload& w) {
  const Parallel& p = w.parallel;
  return {{"tensor", p.tensor},
          {"context", p.context},
          {"expert", p.expert},
          {"pipeline", p.pipeline},
          {"data", p.data},
          {"interleave", p.interleave},
          {"micro", w.micro_batch},
          {"zero", p.zero},
          {"recompute", c.document["recompute"]},
          {"memory_GB", c.memory_GB},
          {"estimate_us", c.estimate_us}};
}

}  // namespace

double estimate_us(const LlmWorkload& w, Pricer& pricer) {
  const StepWorld world = pricer.world(w);
  const Expansion e = expand(w, expert_ranks_in_node(w, world));
  std::vector<Json> runs;
  for (const Traffic& t : e.traffic) runs.push_back(run_of(w, world, {&t}, true));
  std::vector<double> us = pricer.predict(w, world, runs);
  const Rank stages = separate_stages(w, world);
  for (std::size_t i = 0; i < us.size(); ++i) us[i] *= groups_at_once(w, world, e.traffic[i], stages);
  // The time of one pass of both halves: what blocks adds up; what overlaps counts where it is longer than compute.
  const auto time = [&](const Program& program) {
    double sum = 0, hidden = 0, compute = 0;
    for (const Item& i : program) {
      if (i.compute)
        compute += i.us * e.halves;
      else if (i.aside || w.overlap[std::size_t(e.traffic[i.traffic].kind)])
        hidden += us[i.traffic] * e.halves;
      else
        sum += us[i.traffic] * e.halves;
    }
    return sum + std::max(compute, hidden);
  };
  const Parallel& p = w.parallel;
  const auto of = [&](const std::optional<std::uint32_t>& traffic) { return traffic ? us[*traffic] : 0; };
  const double forward = of(e.forward_send), backward = of(e.backward_send);
  const bool data_overlaps = w.overlap[std::size_t(Kind::data)];
  double slowest = 0, all = 0, data = 0;
  for (Rank s = 0; s < p.pipeline; ++s) {
    double one = 0, own = 0, shards = 0;  // of a micro-batch, of the step, and of the weights for each micro-batch
    double sent_forward = 0, sent_backward = 0;
    for (Count c = s; c < w.chunks(); c += p.pipeline) {
      const ChunkPlan& chunk = e.chunks[c];
      for (const LayerProgram* l : {&chunk.embedding, &chunk.head}) one += time(l->forward) + time(l->backward);
      for (Count l = chunk.first_layer; l < chunk.first_layer + chunk.layers; ++l) {
        const double layer = time(e.layer(l).forward) + time(e.layer(l).backward);
        const Expansion::Sharded& z = e.sharded(l);
        const double gathers = 2 * (of(z.gather) + of(z.gather_experts)) + of(z.reduce) + of(z.reduce_experts);
        shards += gathers;
        one += data_overlaps ? std::max(layer, gathers) : layer + gathers;
      }
      const double embeddings = of(chunk.gather_embedding) + of(chunk.reduce_embedding);
      shards += embeddings;
      if (!data_overlaps) one += embeddings;
      if (c + 1 < w.chunks()) sent_forward += forward;
      if (c > 0) sent_backward += backward;
      for (const Buckets* b : {&chunk.dense, &chunk.experts})
        for (const auto& x : {b->reduce, b->gather})
          if (x) own += double(b->number) * us[*x];
    }
    // What overlaps is no faster than its own queue: of the data ranks, and of messages in each direction.
    if (data_overlaps) one = std::max(one, shards);
    one = w.overlap[std::size_t(Kind::pipeline)] ? std::max({one, sent_forward, sent_backward})
                                                 : one + sent_forward + sent_backward;
    slowest = std::max(slowest, one);
    all += one;
    // Hidden at most behind one micro-batch's pass, which it begins or ends with.
    data = std::max(data, data_overlaps ? std::max(0.0, own - one) : own);
  }
  const double filling = (p.pipeline - 1) * (all / p.pipeline / p.interleave + forward + backward);
  return slowest * double(w.micro_batches()) + filling + data + of(e.embedding) + w.compute.optimizer_us;
}

Json plan_parallel(const ParallelQuestion& q, Pricer& pricer,
                   const std::function<void(std::size_t, std::size_t)>& estimated) {
  const LlmWorkload base = read_workload(json::Node::parse(q.document.dump(), q.file));
  std::vector<Candidate> all = candidates(q, base);
  Impossible impossible;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].possible = impossible.unless([&] {
      all[i].estimate_us = estimate_us(read_workload(json::Node::parse(all[i].document.dump(), q.file)), pricer);
    });
    if (estimated) estimated(i + 1, all.size());
  }
  std::erase_if(all, [](const Candidate& c) { return !c.possible; });
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.estimate_us < b.estimate_us; });
  Json rows = Json::array();
  for (const Candidate& c : all) {
    const LlmWorkload w = read_workload(json::Node::parse(c.document.dump(), q.file));
    Json row = plan_row(c, w);
    if (rows.size() < q.played && !impossible.unless([&] {
          const auto step = play_step(w, pricer);
          for (const char* key : {"step_us", "mfu_percent", "exposed_us", "bubble_us", "tokens_per_s"})
            row[key] = step->result[key];
        }))
      continue;
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw json::InputError(impossible.first);
  const auto cluster = pricer.world(read_workload(json::Node::parse(all[0].document.dump(), q.file))).cluster;
  std::stable_sort(rows.begin(), rows.begin() + std::ptrdiff_t(std::min<std::size_t>(q.played, rows.size())),
                   [](const Json& a, const Json& b) { return a["step_us"] < b["step_us"]; });
  Json authorities = Json::array();
  for (const Authority a : pricer.authorities().stated()) authorities.push_back(name(a));
  return {{"schema", "gccl/parallel-plan/1"},
          {"version", GCCL_VERSION_TEXT},
          {"workload", {{"name", base.name}, {"file", json::valid_text(q.file.string())}}},
          {"cluster", cluster->name()},
          {"ranks", q.ranks},
          {"memory_GB", q.memory_GB},
          {"memory_share", q.memory_share},
          {"authorities", std::move(authorities)},
          {"ways", rows.size()},
          {"plans", std::move(rows)}};
}

std::string parallel_plan_text(Json plan) {
  json::replace_control(plan);
  constexpr std::size_t kShown = 20;  // or as many as were played
  std::vector<std::vector<std::string>> rows{{"", "tensor", "context", "expert", "pipeline", "x", "data", "micro",
                                              "ZeRO", "recompute", "memory", "estimate", "step", "MFU", "exposed",
                                              "bubble"}};
  const auto of_step = [](const Json& p, const char* key) {
    return p.contains("step_us") ? fmt::format("{:.1f} %", p[key].get<double>() / p["step_us"].get<double>() * 100)
                                 : "";
  };
  for (const Json& p : plan["plans"]) {
    if (rows.size() > kShown && !p.contains("step_us")) break;
    rows.push_back({std::to_string(rows.size())});
    for (const char* key : {"tensor", "context", "expert", "pipeline", "interleave", "data", "micro", "zero"})
      rows.back().push_back(std::to_string(p[key].get<std::uint64_t>()));
    rows.back().push_back(p["recompute"]);
    rows.back().push_back(fmt::format("{:.1f} GB", p["memory_GB"].get<double>()));
    rows.back().push_back(format_time(p["estimate_us"]));
    rows.back().push_back(p.contains("step_us") ? format_time(p["step_us"]) : "");
    rows.back().push_back(p.contains("step_us") && p["mfu_percent"].is_number()
                              ? fmt::format("{:.1f} %", p["mfu_percent"].get<double>())
                              : "");
    rows.back().push_back(of_step(p, "exposed_us"));
    rows.back().push_back(of_step(p, "bubble_us"));
  }
  std::string asked;
  for (const Json& a : plan["authorities"]) asked += (asked.empty() ? "" : ", ") + a.get<std::string>();
  if (!asked.empty())
    asked = fmt::format("  algorithms as {} ask{}\n", asked, plan["authorities"].size() == 1 ? "s" : "");
  const std::size_t ways = plan["ways"], more = ways - (rows.size() - 1);
  return fmt::format("{} on {}, {}: {} ways fit {:.4g} GB a card\n{}{}{}",
                     plan["workload"]["name"].get_ref<const std::string&>(),
                     plan["cluster"].get_ref<const std::string&>(), counted(plan["ranks"].get<std::uint64_t>(), "rank"),
                     ways, plan["memory_GB"].get<double>(), asked, aligned(rows, 200),
                     more > 0 ? fmt::format("  and {} more, which --json has\n", more) : "");
}

}  // namespace gccl::sim::llm
