#include "libgccl/select/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "libgccl/select/changes.hpp"

namespace gccl {
namespace {

using What = CostKind::What;

// A kind of cost is worth a word where it is at least so much of the difference.
constexpr double kMentioned = 0.25;

std::string duration(Cost ns) {
  if (ns >= 1e9) return fmt::format("{:.4g} s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:.4g} ms", ns / 1e6);
  if (ns >= 1e3) return fmt::format("{:.4g} us", ns / 1e3);
  return fmt::format("{:.4g} ns", ns);
}

CriticalPath critical_path(const Algorithm& a, const Call& call, const View& view, double element_bytes) {
  return {a.cost(call, view, CostModel::bare(1, 0, element_bytes)),
          a.cost(call, view, CostModel::bare(0, 1, element_bytes))};
}

// "tree", and where the machine has several protocols "tree with LL".
std::string named(const Plan& p, CostModels models) {
  const std::string& protocol = models[p.protocol].protocol.name;
  return fmt::format("{}{}{}", p.algorithm->name, protocol.empty() ? "" : " with ", protocol);
}

std::string protocol_name(const CostModel& m) { return m.protocol.name.empty() ? "this transport" : m.protocol.name; }

double bytes_sent(const Candidate& c, double call_bytes) { return call_bytes > 0 ? c.path.bytes / call_bytes : 0; }

// Why more of the loser's time goes to one kind of cost than of the winner's.
std::string because(const CostKind& kind, std::size_t i, const Candidate& loser, const Candidate& winner,
                    CostModels models, double call_bytes) {
  const std::string text =
      fmt::format("{} takes {} against {}", kind.text(), duration(loser.parts_ns[i]), duration(winner.parts_ns[i]));
  const bool same_row = loser.plan.algorithm == winner.plan.algorithm;
  const auto cut = [](const Candidate& c) {
    return c.plan.slicing.shares > 1 ? fmt::format(" for each of {} chunks", c.plan.slicing.shares) : "";
  };
  if (kind.what == What::latency && !same_row && loser.path.messages > winner.path.messages * 1.001)
    return fmt::format("{} ({:.4g} messages one after the other{}, {:.4g}{})", text, loser.path.messages, cut(loser),
                       winner.path.messages, cut(winner));
  if (kind.what == What::latency && same_row && loser.plan.protocol == winner.plan.protocol) return text;
  if (kind.what == What::latency && same_row)
    return fmt::format("{} (a message of {} takes longer than one of {})", text,
                       protocol_name(models[loser.plan.protocol]), protocol_name(models[winner.plan.protocol]));
  if (kind.what == What::bandwidth && !same_row && loser.path.bytes > winner.path.bytes * 1.001)
    return fmt::format("{} (it sends {:.3g} times the call's bytes one after the other, {} {:.3g} times)", text,
                       bytes_sent(loser, call_bytes), winner.plan.algorithm->name, bytes_sent(winner, call_bytes));
  if (kind.what == What::bandwidth && same_row && loser.plan.protocol != winner.plan.protocol)
    return fmt::format("{} ({} sends more bytes for those of the call)", text,
                       protocol_name(models[loser.plan.protocol]));
  return text;
}

std::string why_lost(const Candidate& loser, const Candidate& winner, const CostStairs& stairs, double call_bytes,
                     bool by_prediction) {
  const CostModels models = stairs.machine();
  const Cost behind = loser.predicted_ns - winner.predicted_ns;
  if (std::abs(behind) <= kTie * winner.predicted_ns)
    return by_prediction ? "predicted to be equally fast; of equals the one that is listed first is taken"
                         : "predicted to be equally fast";
  if (behind < 0) return fmt::format("predicted to be faster by {}, but prediction did not decide", duration(-behind));
  std::vector<std::size_t> order(stairs.kinds.size());
  std::iota(order.begin(), order.end(), 0);
  const auto more = [&](std::size_t i) { return loser.parts_ns[i] - winner.parts_ns[i]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return more(a) > more(b); });
  std::string text = fmt::format("{} slower: ", duration(behind));
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k > 0 && more(order[k]) < kMentioned * behind) break;
    text += fmt::format("{}{}", k ? "; " : "",
                        because(stairs.kinds[order[k]], order[k], loser, winner, models, call_bytes));
  }
  if (const std::size_t least = order.back(); more(least) < -kMentioned * behind)
    text += fmt::format("; its {} is {} less, which is not enough", stairs.kinds[least].text(), duration(-more(least)));
  return text;
}

std::string why_not(const Algorithm& a) {
  return fmt::format("cannot serve this call{}{}", a.limit.empty() ? "" : ": ", a.limit);
}

std::string why_not(const CostModel& m, double bytes, Rank nodes) {
  if (!m.protocol.between_nodes && nodes > 1)
    return fmt::format("{} is for calls inside one node here", m.protocol.name);
  if (bytes > double(m.protocol.bytes_max))
    return fmt::format("{} is for calls of at most {:.12g} bytes", m.protocol.name, double(m.protocol.bytes_max));
  return fmt::format("switches cannot combine what {} sends: flags stand beside the data", m.protocol.name);
}

double call_bytes(const Call& call, const View& view, double element_bytes) {
  return double(call.count) * element_bytes * (counts_blocks(call.kind) ? view.all.size : 1);
}

// What was asked for and cannot be had; empty where nothing was.
std::string refused_text(const Plan& p) {
  if (!p.refused) return {};
  if (p.refused_by == Authority::lists) return fmt::format("what {} allows cannot serve this call", name(p.refused_by));
  return fmt::format("{} asks for {}, which cannot serve this call{}", name(p.refused_by), p.refused->name,
                     p.refused->limit.empty() ? "" : fmt::format(" ({})", p.refused->limit));
}

// What the choice rests on where it is not the prediction; empty where it is.
std::string decided_otherwise(const Explanation& e, const Call& call, const View& view, const Tuning& tuning,
                              const Authorities& authorities, double element_bytes) {
  const std::string_view by = name(e.plan.by), chosen = e.plan.algorithm->name;
  if (e.plan.by == Authority::table)
    return fmt::format("{} asks for {} ({})", by, chosen, authorities.table->place(*e.plan.entry));
  if (e.plan.by < Authority::measured) return fmt::format("{} asks for {}", by, chosen);
  for (const Tuning::Preference& p : tuning.preferences)
    if (p.algorithm == e.plan.algorithm && p.holds(call, view.all.size, double(call.count) * element_bytes))
      return fmt::format("measurements of the transport prefer {} for calls of this length on so many ranks", chosen);
  const auto cheapest =
      std::min_element(e.candidates.begin(), e.candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.predicted_ns < b.predicted_ns; });
  if (cheapest == e.candidates.end() || cheapest->plan.algorithm == e.plan.algorithm) return {};
  for (const Tuning::Incast& i : tuning.incast)
    if (i.algorithm == cheapest->plan.algorithm && (!i.fallback || i.fallback == e.plan.algorithm))
      return fmt::format(
          "predicted fastest is {}, but the transport loses messages where more than {:.12g} bytes are sent to one "
          "rank at once: {} takes its place",
          i.algorithm->name, std::max(0.0, i.bytes_max), chosen);
  return {};
}

Candidate candidate_of(const Plan& plan, const Call& call, const View& view, const CostStairs& stairs,
                       const Tuning& tuning) {
  Candidate c;
  c.plan = plan;
  const auto by = [&](std::size_t stair) {
    return predicted(*plan.algorithm, call, view, stairs.models[stair][plan.protocol], plan.slicing, tuning);
  };
  Cost before = c.predicted_ns = by(0);
  for (std::size_t i = 0; i < stairs.kinds.size(); ++i) {
    const Cost after = by(i + 1);
    c.parts_ns.push_back((before - after) / CostStairs::kLighter);
    before = after;
  }
  // Forms of chunks take off the latency that other chunks hide, and where a longer message hides some of it already
  // take off more than they have counted: what is missing then belongs to what hides it, the largest part.
  const auto largest = std::max_element(c.parts_ns.begin(), c.parts_ns.end());
  for (Cost& part : c.parts_ns)
    if (part < 0) *largest += std::exchange(part, 0);
  c.path = critical_path(*plan.algorithm, call, view, stairs.machine()[0].element_bytes);
  return c;
}

}  // namespace

std::string CostKind::text() const {
  switch (what) {
    case What::start_up: return "start-up";
    case What::latency: return "latency";
    case What::bandwidth: return fmt::format("bandwidth ({})", tier);
    case What::channel: return "the channels' own rate";
    case What::reduction: return "reduction and copying";
  }
  return {};
}

Explanation explain(const Call& given, const View& view, const CostStairs& stairs, const Tuning& tuning,
                    const Authorities& authorities, const ChunksMax& most) {
  Call call = given;
  call.in_place = false;  // as plan() has it
  const CostModels models = stairs.machine();
  const double each = models[0].element_bytes, bytes = call_bytes(call, view, each);
  Explanation e;
  e.plan = plan(call, view, models, tuning, authorities, algorithms(), most);
  const auto add = [&](const Plan& p) { e.candidates.push_back(candidate_of(p, call, view, stairs, tuning)); };
  const AlgorithmLists::Rule* const rule = e.plan.limited ? authorities.lists.of(call.kind, Count(bytes)) : nullptr;
  for (const Algorithm& a : algorithms()) {
    const bool chosen = e.plan.algorithm == &a;
    if (a.kind != call.kind || !a.cost) continue;
    if (!chosen && !(rule ? rule->offers(a) : !a.variant)) {
      if (!a.variant) e.excluded.push_back({&a, {}, fmt::format("{} leaves it out", name(Authority::lists))});
      continue;
    }
    if (!a.can(call, view)) {
      e.excluded.push_back({&a, {}, why_not(a)});
      continue;
    }
    if (a.in_switch && !by_switches(models) && !chosen) {
      e.excluded.push_back(
          {&a, {}, "needs switches that multicast and reduce between the cards of a node; there are none"});
      continue;
    }
    for (std::size_t p = 0; p < models.size(); ++p) {
      const bool only = models.size() == 1;
      if (chosen && e.plan.protocol == p) {
        add(e.plan);
      } else if (!only && !protocol_serves(models[p], a, call, view)) {
        e.excluded.push_back({&a, p, why_not(models[p], bytes, view.nodes)});
      } else {
        Plan other = plan_of(a, call, view, models.subspan(p, 1), tuning, most);
        other.protocol = p;
        add(other);
      }
    }
  }
  if (!e.plan.algorithm) return e;
  const std::string other = decided_otherwise(e, call, view, tuning, authorities, each);
  std::stable_sort(e.candidates.begin(), e.candidates.end(), [&](const Candidate& a, const Candidate& b) {
    const auto chosen = [&](const Candidate& c) {
      return c.plan.algorithm == e.plan.algorithm && c.plan.protocol == e.plan.protocol;
    };
    return chosen(a) != chosen(b) ? chosen(a) : a.predicted_ns < b.predicted_ns;
  });
  const Candidate& winner = e.candidates[0];
  e.decided = !other.empty() ? other
              : e.candidates.size() == 1
                  ? "nothing else can serve this call"
                  : fmt::format("the lowest predicted time of {} candidates", e.candidates.size());
  if (e.plan.limited && e.plan.by != Authority::lists)
    e.decided += fmt::format(", among what {} allows", name(Authority::lists));
  if (const std::string refused = refused_text(e.plan); !refused.empty())
    e.decided = fmt::format("{}; {}", refused, e.decided);
  for (std::size_t i = 1; i < e.candidates.size(); ++i)
    e.candidates[i].why = why_lost(e.candidates[i], winner, stairs, bytes, other.empty());
  e.candidates[0].why = e.decided;
  if (other.empty() && e.candidates.size() > 1)
    e.candidates[0].why += fmt::format("; next is {}, {} behind", named(e.candidates[1].plan, models),
                                       duration(e.candidates[1].predicted_ns - winner.predicted_ns));
  return e;
}

std::vector<Crossover> crossovers(Call call, const View& view, CostModels models, const Tuning& tuning, Count most,
                                  const Authorities& authorities, const ChunksMax& chunks) {
  const Count asked = call.count;
  call.in_place = false;
  const auto at = [&](Count count) {
    call.count = count;
    Crossover c{.count = count, .plan = plan(call, view, models, tuning, authorities, algorithms(), chunks)};
    if (c.plan.algorithm)
      c.predicted_ns = predicted(*c.plan.algorithm, call, view, models[c.plan.protocol], c.plan.slicing, tuning);
    return c;
  };
  std::vector<Crossover> all{at(1)};
  if (call.kind == Collective::barrier) return all;
  std::vector<Count> besides{asked};
  const auto unit = Count(call_bytes({.kind = call.kind, .count = 1}, view, models[0].element_bytes));
  for (const Count bytes : authorities.borders(call.kind)) besides.push_back(bytes / unit + (bytes % unit > 0));
  each_change(
      all[0], most, std::move(besides), at,
      [](const Crossover& a, const Crossover& b) {
        return a.plan.algorithm == b.plan.algorithm && a.plan.protocol == b.plan.protocol;
      },
      [&](Count, const Crossover& c) { all.push_back(c); });
  return all;
}

}  // namespace gccl
