#include "libgccl/select/plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace gccl {
namespace {

// Chunks of fewer bytes are not looked for: latencies and overheads are all they are.
constexpr double kChunkBytesMin = 32 << 10;
// Of two ways to cut a call up whose predictions differ by less the one with fewer chunks is taken: it is simulated
// sooner, and its prediction depends less on how well chunks overlap.
constexpr double kNearly = 1.03;

// Of the table, or of a copy of some of its rows.
bool same(const Algorithm* a, const Algorithm& b) { return a == &b || (a->kind == b.kind && a->name == b.name); }

using Rule = AlgorithmLists::Rule;  // null: anything goes

bool may(const Rule* rule, const Algorithm& a) { return !rule || !rule->forbids(a); }

const Algorithm* preferred(const Call& call, const View& view, double bytes, const Tuning& tuning, const Rule* rule) {
  for (const Tuning::Preference& p : tuning.preferences)
    if (p.holds(call, view.all.size, bytes) && may(rule, *p.algorithm) && p.algorithm->can(call, view))
      return p.algorithm;
  return nullptr;
}

// A pairwise all-reduce sends each rank its part of the vectors, all others whole blocks.
double incast_bytes(const Call& call, Rank ranks, double bytes) {
  return call.kind == Collective::allreduce ? bytes : bytes * (ranks - 1);
}

const Algorithm* without_incast(const Algorithm* best, const Call& call, const View& view, double bytes,
                                const Tuning& tuning, const Rule* rule) {
  for (const Tuning::Incast& i : tuning.incast)
    if (same(i.algorithm, *best) && incast_bytes(call, view.all.size, bytes) > i.bytes_max && may(rule, *i.fallback) &&
        i.fallback->can(call, view))
      return i.fallback;
  return best;
}

Slicing measured_slicing(const Algorithm& algorithm, Rank ranks, double bytes, const Tuning& tuning) {
  Slicing s{.shares = 1, .lanes = 1, .window = tuning.window};
  if (ranks <= 1) return s;
  for (const Tuning::Chunks& c : tuning.chunks) {
    if (c.kind != algorithm.kind || (c.algorithm && !same(c.algorithm, algorithm)) || ranks < c.ranks_min) continue;
    if (c.bytes > 0) s.shares = Count(std::clamp(bytes / c.bytes, 1.0, double(kChunksMax)));
    break;
  }
  s.lanes = std::min(tuning.channels_max, s.shares);
  return s;
}

// How much of the rest of a chunk's time is not hidden behind the busiest thing. Channels begin in step, all in one
// phase of an algorithm at a time, and drift apart chunk by chunk; two of them do not. Staggered ones are apart from
// the start. Both fitted to the model engine's times of the hierarchical all-reduce (the first without stagger) on 64
// ranks of dgx-h100-superpod-2048 (1 GiB, 2 to 64 channels of 1 to 64 chunks). Channels of one chunk are apart, too, as
// their messages pass ports one after the other: rabenseifner, hierarchical and swing (4 and 64 MiB, LL128; 32 ranks of
// that cluster and of alps-gh200-2048, 16 of polaris) take on the flow engine with 4, 8 and 16 of them 0.88, 0.84 and
// 0.83 of the time of one in the mean, and by this 0.90, 0.86 and 0.85; apart by 9 % in the median, 31 % at worst.
double in_step(Count chunks_each, Count channels, bool staggered) {
  if (channels > 1 && staggered) return 0.05 + 0.4 / double(channels);
  if (chunks_each == 1 && channels > 2) return std::max(0.35, 2 / double(channels));
  return 1 / (1 + double(chunks_each - 1) * (double(channels) - std::min(2.0, double(channels))) / 24);
}

// From the end of one chunk to the end of the next where several channels are on their way. `serial`: what a chunk's
// bytes take alone.
Cost interval_between(const Algorithm& algorithm, const Call& chunk, const View& view, const CostModel& model,
                      const Slicing& s, Cost serial) {
  if (model.parts.empty()) return serial;
  Cost busiest = 0;
  for (std::size_t i = 1; i < model.parts.size(); ++i)
    busiest = std::max(busiest, algorithm.cost(chunk, view, model.parts[i]));
  return busiest + std::max(0.0, serial - busiest) *
                       in_step((s.shares + s.lanes - 1) / s.lanes, s.lanes, algorithm.staggers(s.shares, s.lanes));
}

// A machine where a channel's own rate is all that takes time.
CostModel channel_alone(const CostModel& model) {
  return CostModel::bare(0, 1 / model.protocol.channel_GBps, model.element_bytes);
}

// A call without bytes: its latencies.
Cost latency_of(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model) {
  Call empty = call;
  empty.count = 1;
  return algorithm.cost(empty, view, model);
}

// Without what the protocol takes for each operation.
//
// Chunks follow each other at an algorithm's interval, once the first is through. Where it gives none, the next chunk
// of a channel waits for the one before; channels wait for their latencies at the same time, and share what bytes cost,
// unless they have orders, and so links, of their own. No channel is faster than its protocol lets it be.
// That long chunks of several channels pass a port in turns, and so all of them late, no form follows.
Cost predicted_work(const Algorithm& algorithm, const Call& call, const View& given, const CostModel& model,
                    const Slicing& slicing, const Tuning& tuning) {
  View view = given;
  const bool by_switch = algorithm.in_switch && model.node_switch;  // it takes what its links carry
  const bool limited = model.protocol.channel_GBps > 0 && view.all.size > 1 && call.count > 1 && !by_switch;
  const CostModel channel = limited ? channel_alone(model) : CostModel{};
  const bool whole =
      slicing.shares == 1 || call.count <= 1 || view.all.size == 1 || !tuning.chunks_overlap || has_counts(call.kind);
  if (whole) {
    const Cost one = algorithm.cost(call, view, model);
    if (!limited) return one;
    return std::max(one, latency_of(algorithm, call, view, model) + algorithm.cost(call, view, channel));
  }
  Call chunk = call;
  chunk.count = std::max<Count>(1, call.count / slicing.shares);
  const Count shares = std::min(slicing.shares, call.count), lanes = std::min(slicing.lanes, shares);
  const Count each = (shares + lanes - 1) / lanes;
  if (algorithm.channels) view.channels = Rank(lanes);
  const bool passed_on = algorithm.interval && (!algorithm.in_switch || by_switch);
  const bool takes_turns = !passed_on && !algorithm.channels;
  const Cost latency = limited || takes_turns ? latency_of(algorithm, call, view, model) : 0;
  Cost one = algorithm.cost(chunk, view, model);
  const Cost serial = std::max(0.0, one - latency);
  if (limited) one = std::max(one, latency + algorithm.cost(chunk, given, channel));
  if (algorithm.channels && !passed_on) return double(each) * one;
  Cost turns = one, interval = 0, handling = 0;
  if (passed_on) {
    interval = algorithm.interval(chunk, view, model, slicing);
    if (limited)
      interval =
          std::max(interval, algorithm.interval(chunk, given, channel, {shares, 1, slicing.window}) / double(lanes));
  } else {
    interval = interval_between(algorithm, chunk, view, model, {shares, lanes}, serial);
    turns = double(each) * one + double(lanes - 1) * model.exchange_gap_ns();
    double messages = double(shares);                      // times those of a share
    if (lanes > 1 && algorithm.staggers(shares, lanes)) {  // a share more in all lanes but one
      turns += latency;
      messages += double(lanes - 1);
    }
    // All ranks do alike, and none is done before it has handled all its messages.
    if (!model.parts.empty()) handling = messages * algorithm.cost(chunk, view, model.parts[0]);
  }
  for (const Tuning::Rate& r : tuning.rates)
    if (same(r.algorithm, algorithm)) interval /= r.share;
  return std::max({turns, handling, one + double(shares - 1) * std::min(interval, one)});
}

}  // namespace

Cost predicted(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
               const Slicing& slicing, const Tuning& tuning) {
  if (!algorithm.cost) return NAN;
  return model.protocol.operation_ns + predicted_work(algorithm, call, view, model, slicing, tuning);
}

namespace {

// As scenarios and nccl-tests count: a rank's bigger buffer.
double vector_bytes(const Call& call, const View& view, const CostModel& model) {
  return model.bytes(double(call.count)) * (counts_blocks(call.kind) ? view.all.size : 1);
}

Slicing searched_slicing(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
                         const Tuning& tuning, const ChunksMax& most_of) {
  const Slicing whole{.shares = 1, .lanes = 1, .window = tuning.window};
  if (!algorithm.cost || view.all.size <= 1 || has_counts(call.kind)) return whole;
  // A block is cut up no finer than a vector of all blocks.
  const double bytes = vector_bytes(call, view, model);
  Count most = std::min(kChunksMax, Count(std::max(1.0, bytes / kChunkBytesMin)));
  if (most > 1 && most_of) most = std::min(most, most_of(algorithm));
  if (most == 1) return whole;
  struct Candidate {
    Slicing slicing;
    Cost cost;
  };
  std::vector<Candidate> all;
  Cost best = 0;
  const Count channels_max = std::min({most, tuning.channels_max, model.protocol.channels_max});
  const auto add_doubled = [&](Count first) {
    for (Count lanes = first; lanes <= channels_max; lanes *= 2)
      for (Count shares = lanes; shares <= most; shares *= 2) {
        const Slicing s{.shares = shares, .lanes = lanes, .window = tuning.window};
        all.push_back({s, predicted(algorithm, call, view, model, s, tuning)});
        best = all.size() == 1 ? all[0].cost : std::min(best, all.back().cost);
      }
  };
  add_doubled(1);
  // As many as have different orders load all links of a node alike.
  if (algorithm.channels && !model.rings.empty() && !std::has_single_bit(model.rings.back().channels))
    add_doubled(model.rings.back().channels);
  const Candidate* chosen = &all[0];
  for (const Candidate& c : all)
    if (c.cost <= best * kNearly && (chosen->cost > best * kNearly || c.slicing.shares < chosen->slicing.shares))
      chosen = &c;
  return chosen->slicing;
}

Slicing slicing_of(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
                   const Tuning& tuning, const ChunksMax& most) {
  if (tuning.search) return searched_slicing(algorithm, call, view, model, tuning, most);
  return measured_slicing(algorithm, view.all.size, model.bytes(double(call.count)), tuning);
}

}  // namespace

bool protocol_serves(const CostModel& model, const Algorithm& algorithm, const Call& call, const View& view) {
  const bool by_switch = algorithm.in_switch && model.node_switch;
  return vector_bytes(call, view, model) <= double(model.protocol.bytes_max) &&
         (model.protocol.in_switch || !by_switch);
}

Plan plan_of(const Algorithm& algorithm, const Call& call, const View& view, CostModels models, const Tuning& tuning,
             const ChunksMax& most, const std::optional<Slicing>& stated) {
  Plan best;
  for (std::size_t p = 0; p < models.size(); ++p) {
    if (models.size() > 1 && !protocol_serves(models[p], algorithm, call, view)) continue;
    const Slicing slicing = stated ? *stated : slicing_of(algorithm, call, view, models[p], tuning, most);
    const Cost cost = predicted(algorithm, call, view, models[p], slicing, tuning);
    if (best.algorithm && !(cost < best.predicted_ns * (1 - kTie))) continue;
    best = {.algorithm = &algorithm, .slicing = slicing, .protocol = p, .predicted_ns = cost};
  }
  return best;
}

namespace {

// What goes into every plan of one call.
struct Planning {
  const Call& call;
  const View& view;
  CostModels models;
  const Tuning& tuning;
  std::span<const Algorithm> table;
  const ChunksMax& most;

  double bytes() const { return models[0].bytes(double(call.count)); }
  bool can(const Algorithm& a) const { return a.can(call, view); }
  Plan of(const Algorithm& a, Authority by) const {
    Plan p = plan_of(a, call, view, models, tuning, most);
    p.by = by;
    return p;
  }
  // Null: no closed form, and so nothing to compare.
  Plan cheapest(const Rule* rule) const;
  Plan by_entry(const TuningTable::Entry& entry) const;
  Plan within(const Rule* rule, const TuningTable::Entry* entry) const;
};

Plan Planning::cheapest(const Rule* rule) const {
  Plan best;
  const Algorithm* second = nullptr;
  Cost second_ns = NAN;
  for (const Algorithm& a : table) {
    if (a.kind != call.kind || (rule ? !rule->offers(a) : a.variant) || !a.cost || !can(a)) continue;
    const auto switches = [](const CostModel& m) { return m.node_switch && m.protocol.in_switch; };
    if (a.in_switch && std::none_of(models.begin(), models.end(), switches)) continue;
    const Plan found = of(a, Authority::model);
    const bool better = !best.algorithm || found.predicted_ns < best.predicted_ns * (1 - kTie);
    if (better || !second || found.predicted_ns < second_ns * (1 - kTie)) {
      const Plan& beaten = better ? best : found;
      second = beaten.algorithm;
      second_ns = beaten.predicted_ns;
    }
    if (better) best = found;
  }
  if (!best.algorithm) return {};
  const Algorithm* const chosen = without_incast(best.algorithm, call, view, bytes(), tuning, rule);
  if (chosen != best.algorithm) return of(*chosen, Authority::measured);
  best.second = second;
  best.second_ns = second_ns;
  return best;
}

// No algorithm: the entry's cannot serve the call, or its protocol is none of those asked for. What it states in full
// needs no prediction.
Plan Planning::by_entry(const TuningTable::Entry& e) const {
  if (!can(*e.algorithm)) return {};
  std::size_t first = 0, number = models.size();
  if (!e.protocol.empty()) {
    while (first < models.size() && models[first].protocol.name != e.protocol) ++first;
    if (first == models.size()) return {};
    number = 1;
  }
  const std::optional<Slicing> stated =
      e.chunks == 0 ? std::nullopt
                    : std::optional(Slicing{e.chunks, e.channels, e.window > 0 ? e.window : tuning.window});
  Plan p;
  if (stated && number == 1) {
    p = {.algorithm = e.algorithm, .slicing = *stated};
  } else {
    p = plan_of(*e.algorithm, call, view, models.subspan(first, number), tuning, most, stated);
    if (e.window > 0) p.slicing.window = e.window;
  }
  p.protocol += first;
  p.by = Authority::table;
  p.entry = &e;
  return p;
}

Plan Planning::within(const Rule* rule, const TuningTable::Entry* entry) const {
  const Algorithm* refused = nullptr;
  Plan p;
  if (entry && may(rule, *entry->algorithm)) {
    p = by_entry(*entry);
    if (!p.algorithm && !can(*entry->algorithm)) refused = entry->algorithm;
  }
  if (!p.algorithm)
    if (const Algorithm* const a = preferred(call, view, bytes(), tuning, rule)) p = of(*a, Authority::measured);
  if (!p.algorithm) p = cheapest(rule);
  if (!p.algorithm && rule && !rule->excludes)  // named, and without a closed form or for switches that are not there
    for (const Algorithm* const row : rule->rows)
      if (!p.algorithm && can(*row)) p = of(*row, Authority::lists);
  if (!p.algorithm) return p;
  p.limited = rule != nullptr;
  if (rule && !rule->excludes && rule->rows.size() == 1) p.by = Authority::lists;
  if (refused) p.refused = refused, p.refused_by = Authority::table;
  return p;
}

}  // namespace

Plan plan(const Call& given, const View& view, CostModels models, const Tuning& tuning, const Authorities& authorities,
          std::span<const Algorithm> table, const ChunksMax& most) {
  Call call = given;
  call.in_place = false;
  const Planning planning{call, view, models, tuning, table, most};
  const auto size = Count(vector_bytes(call, view, models[0]));
  const Algorithm* refused = authorities.named.of(call.kind);
  if (refused && planning.can(*refused)) return planning.of(*refused, Authority::named);
  Authority refused_by = Authority::named;
  const Rule* const rule = authorities.lists.of(call.kind, size);
  const TuningTable::Entry* const entry = authorities.entries.find(call.kind, size);
  Plan p = planning.within(rule, entry);
  if (!p.algorithm && rule) {
    p = planning.within(nullptr, entry);
    if (!refused) refused = rule->rows[0], refused_by = Authority::lists;
  }
  if (refused) p.refused = refused, p.refused_by = refused_by;
  return p;
}

}  // namespace gccl
