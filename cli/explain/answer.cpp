#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/explain/question.hpp"
#include "libgccl/algorithms/parts/root_order.hpp"
#include "libgccl/cluster/cost_stairs.hpp"
#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/json/reader.hpp"
#include "libgccl/select/changes.hpp"
#include "libgccl/select/others/openmpi_rules.hpp"
#include "sim/scenario/read/sizes.hpp"

namespace gccl {
namespace {

using Json = nlohmann::json;

constexpr Count kLargestBytes = Count(4) << 30;  // of calls that cross-overs are looked for in
constexpr std::string_view kCostKinds[] = {"start_up", "latency", "bandwidth", "channel", "reduction"};

// One question on its way to an answer: the call as the planner sees it, and the machine's models.
class ExplanationBuilder {
 public:
  explicit ExplanationBuilder(const Question& q)
      : q_(q),
        layout_(layout_of(*q.cluster, q.cards)),
        view_(layout_.view(0)),
        each_(size_of(q.dtype)),
        call_{.kind = q.kind, .count = sim::elements(q.kind, q.bytes, view_.all.size, each_), .root = q.root},
        order_(order_from_root(call_, view_)),
        stairs_(cost_stairs(*q.cluster, q.cards, each_, order_)),
        tuning_(planned_by(*q.cluster, q.cards, each_).tuning),
        authorities_(q.authorities.on(view_.all.size, view_.nodes)) {}

  Json document() const {
    const Explanation e = explain(call_, view_, stairs_, tuning_, authorities_);
    Json out = {{"schema", "gccl/explanation/1"}, {"version", GCCL_VERSION_TEXT},
                {"cluster", q_.cluster->name()},  {"ranks", view_.all.size},
                {"nodes", view_.nodes},           {"collective", name(q_.kind)},
                {"bytes", bytes_of(call_.count)}, {"count", call_.count},
                {"dtype", name(q_.dtype)},        {"planner", kPlanners[std::size_t(q_.as)]}};
    if (!q_.parameters.empty()) out["parameters"] = q_.parameters;
    out["choice"] = q_.as == PlannerKind::gccl ? own_choice(e) : other_choice();
    out["candidates"] = Json::array();
    for (const Candidate& c : e.candidates) out["candidates"].push_back(candidate(c));
    out["excluded"] = Json::array();
    for (const Excluded& x : e.excluded)
      out["excluded"].push_back({{"algorithm", x.algorithm->name},
                                 {"protocol", x.protocol ? protocol(*x.protocol) : Json()},
                                 {"why", x.why}});
    if (q_.as == PlannerKind::nccl) out["nccl_model"] = nccl_model();
    out["crossovers"] = q_.as == PlannerKind::gccl ? own_crossovers() : other_crossovers();
    out["what_if"] = what_if(e.plan);
    return out;
  }

 private:
  Count bytes_of(Count count) const { return sim::total_bytes(q_.kind, count, view_.all.size, each_); }
  Count most() const { return std::max(call_.count, sim::elements(q_.kind, kLargestBytes, view_.all.size, each_)); }
  Json protocol(std::size_t p) const {
    const std::string& text = stairs_.machine()[p].protocol.name;
    return text.empty() ? Json() : Json(text);
  }
  Json plan_json(const Plan& p) const {
    if (!p.algorithm) return {{"algorithm", nullptr}};
    return {{"algorithm", p.algorithm->name},
            {"protocol", protocol(p.protocol)},
            {"chunks", p.slicing.shares},
            {"channels", p.slicing.lanes},
            {"window", p.slicing.window}};
  }
  Cost predicted_ns(const Plan& p, CostModels models) const {
    return predicted(*p.algorithm, call_, view_, models[p.protocol], p.slicing, tuning_);
  }

  Json own_choice(const Explanation& e) const {
    Json out = plan_json(e.plan);
    out["decided"] = e.plan.algorithm ? e.decided : "no algorithm can serve this call";
    if (!e.plan.algorithm) return out;
    out["authority"] = name(e.plan.by);
    out["predicted_us"] = predicted_ns(e.plan, stairs_.machine()) / 1e3;
    return out;
  }

  OtherChoice other(Count count) const {
    Call call = call_;
    call.count = count;
    return q_.as == PlannerKind::nccl ? nccl_choice(call, view_, each_, machine()) : openmpi_choice(call, view_, each_);
  }
  NcclMachine machine() const {
    const auto m = nccl_machine(*q_.cluster, q_.cards);
    if (!m)
      throw json::InputError(fmt::format(
          "--as nccl: the parameters of {} have no \"nccl\" object that says which architecture its cards are of",
          q_.cluster->name()));
    return *m;
  }
  // Theirs, and how long GCCL's row of it is predicted to take.
  Json other_choice() const {
    const OtherChoice o = other(call_.count);
    Json out = {{"theirs", o.theirs.empty() ? Json() : Json(o.theirs)}, {"note", o.note}, {"algorithm", nullptr}};
    const bool nccl = q_.as == PlannerKind::nccl;
    out["decided"] =
        o.theirs.empty()
            ? view_.all.size == 1 ? "one rank has nobody to send to" : "there is no rule for this collective"
        : !nccl ? "Open MPI's fixed rules, which look at ranks and bytes alone (select/others/openmpi_rules.hpp)"
        : nccl_model().empty() ? "NCCL has no other way, whatever the size"
                               : "the lowest time in NCCL's own model (select/others/nccl_model.hpp)";
    if (!o.algorithm) return out;
    CostModels models = stairs_.machine();
    std::size_t first = 0;
    for (std::size_t p = 0; p < models.size(); ++p)
      if (!o.protocol.empty() && models[p].protocol.name == o.protocol) first = p, models = models.subspan(p, 1);
    std::optional<Slicing> stated;
    if (!nccl) stated = Slicing{};  // its rules ask for no segments
    Plan p = plan_of(*o.algorithm, call_, view_, models, tuning_, nullptr, stated);
    p.protocol += first;
    out.update(plan_json(p));
    out["predicted_us"] = predicted_ns(p, stairs_.machine()) / 1e3;
    return out;
  }

  Json candidate(const Candidate& c) const {
    Json out = plan_json(c.plan);
    out["predicted_us"] = c.predicted_ns / 1e3;
    out["parts"] = Json::array();
    for (std::size_t i = stairs_.kinds.size(); i-- > 0;) {  // as they are met: start-up first
      const CostKind& k = stairs_.kinds[i];
      Json part = {{"kind", kCostKinds[std::size_t(k.what)]}, {"us", c.parts_ns[i] / 1e3}};
      if (!k.tier.empty()) part["tier"] = k.tier;
      out["parts"].push_back(std::move(part));
    }
    out["messages_in_a_row"] = c.path.messages;
    out["bytes_in_a_row"] = c.path.bytes;
    out["why"] = c.why;
    return out;
  }

  Json nccl_model() const {
    Json all = Json::array();
    const double bytes = double(bytes_of(call_.count));
    for (const NcclChoice& c : nccl_ranking(q_.kind, machine(), bytes)) {
      const NcclEstimate e = nccl_estimate(q_.kind, c.algorithm, c.protocol, machine());
      all.push_back({{"algorithm", kNcclAlgorithms[std::size_t(c.algorithm)]},
                     {"protocol", kNcclProtocols[std::size_t(c.protocol)]},
                     {"time_us", c.time_us},
                     {"latency_us", e.latency_us},
                     {"GBps", e.GBps}});
    }
    return all;
  }

  Json own_crossovers() const {
    Json all = Json::array();
    for (const Crossover& c : crossovers(call_, view_, stairs_.machine(), tuning_, most(), authorities_)) {
      Json entry = {{"from_bytes", bytes_of(c.count)}};
      entry.update(plan_json(c.plan));
      entry["predicted_us"] = c.predicted_ns / 1e3;
      all.push_back(std::move(entry));
    }
    return all;
  }

  // Where their choice changes.
  Json other_crossovers() const {
    Json all = Json::array();
    const auto add = [&](Count count, const OtherChoice& o) {
      Json entry = {{"from_bytes", bytes_of(count)}, {"theirs", o.theirs}};
      entry["algorithm"] = o.algorithm ? Json(o.algorithm->name) : Json();
      all.push_back(std::move(entry));
    };
    const OtherChoice first = other(1);
    if (first.theirs.empty()) return all;  // no rule, whatever the size
    add(1, first);
    if (q_.kind == Collective::barrier) return all;
    each_change(
        first, most(), {call_.count}, [&](Count count) { return other(count); },
        [](const OtherChoice& a, const OtherChoice& b) { return a.theirs == b.theirs; }, add);
    return all;
  }

  Json what_if(const Plan& now) const {
    Json all = Json::array();
    if (!now.algorithm) return all;
    const Cost before = predicted_ns(now, stairs_.machine());
    for (const Better& b : better_machines(*q_.cluster, q_.cards, each_, order_)) {
      Plan p = plan(call_, view_, b.models, tuning_, authorities_);
      Cost after = predicted_ns(p, b.models);
      // Planning leaves out what is better by little.
      if (const Cost same = predicted_ns(now, b.models); same <= after) p = now, after = same;
      // Messages that are combined faster come closer behind each other, and share a link where they followed before:
      // by the model the call may then take a little longer.
      after = std::min(after, before);
      Json entry = {{"what", b.what}};
      entry.update(plan_json(p));
      entry["predicted_us"] = after / 1e3;
      entry["saves_percent"] = before > 0 ? (1 - after / before) * 100 : 0.0;
      entry["changes"] = p.algorithm != now.algorithm || p.protocol != now.protocol;
      all.push_back(std::move(entry));
    }
    return all;
  }

  const Question& q_;
  Layout layout_;
  View view_;
  unsigned each_;
  Call call_;
  std::vector<Rank> order_;
  CostStairs stairs_;
  Tuning tuning_;
  Authorities authorities_;
};

}  // namespace

nlohmann::json answer(const Question& question) { return ExplanationBuilder(question).document(); }

}  // namespace gccl
