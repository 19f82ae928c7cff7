#include "libgccl/select/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "libgccl/select/prediction.hpp"

namespace gccl {
namespace {

// Chunks of fewer bytes are not looked for: latencies and overheads are all they are.
constexpr double kChunkBytesMin = 4 << 10;
// Of two ways to cut a call up whose predictions differ by less the simpler one is taken.
constexpr double kNearly = 1.01;
// What is above the lowest prediction by no more than rounding may still be it.
constexpr double kSurely = 1 + 1e-6;
// Bounds are off by less than this, of one algorithm: chunks may be short of an element, and short messages take other
// ways than long ones.
constexpr double kRoughly = 1.05;
// By powers of two, of as many chunks in as many channels at most, and once more from another number of channels on.
constexpr std::size_t kDoublings = std::bit_width(kChunksMax), kRowsMax = 2 * kDoublings;
// As many candidates' predictions are known when they are looked at more closely: four protocols of all all-reduces.
constexpr std::size_t kKnownMax = 128;

// Rows may be of the table, or of a copy of some of its rows.
bool same(const Algorithm* a, const Algorithm& b) { return a == &b || (a->kind == b.kind && a->name == b.name); }

using Rule = AlgorithmLists::Rule;  // null: anything goes

bool may(const Rule* rule, const Algorithm& a) { return !rule || !rule->forbids(a); }

const Algorithm* preferred(const Call& call, const View& view, double bytes, const Tuning& tuning, const Rule* rule) {
  for (const Tuning::Preference& p : tuning.preferences)
    if (p.holds(call, view.all.size, bytes) && may(rule, *p.algorithm) && p.algorithm->can(call, view))
      return p.algorithm;
  return nullptr;
}

// What one rank gets of all others. A pairwise all-reduce sends it its part of the vectors, all others whole blocks.
double incast_bytes(const Call& call, Rank ranks, double element_bytes) {
  if (call.kind == Collective::allreduce) return element_bytes * double(call.count);
  const Count block = call.kind == Collective::reduce_scatterv ? largest_block(call, ranks) : call.count;
  return element_bytes * double(block) * (ranks - 1);
}

const Algorithm* without_incast(const Algorithm* best, const Call& call, const View& view, double element_bytes,
                                const Tuning& tuning, const Rule* rule) {
  for (const Tuning::Incast& i : tuning.incast)
    if (i.fallback && same(i.algorithm, *best) && incast_bytes(call, view.all.size, element_bytes) > i.bytes_max &&
        may(rule, *i.fallback) && i.fallback->can(call, view))
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
  s.lanes = std::min(tuning.channels_most(), s.shares);
  return s;
}

// As scenarios and nccl-tests count: a rank's bigger buffer.
double vector_bytes(const Call& call, const View& view, const CostModel& model) {
  return model.bytes(double(call.count)) * (counts_blocks(call.kind) ? view.all.size : 1);
}

// No search goes beyond.
Slicing finest(const CostModel& model, const Tuning& tuning) {
  return {kChunksMax, std::min({tuning.channels_most(), model.protocol.channels_max, kChunksMax}), tuning.window};
}

struct Sliced {
  Slicing slicing;
  Cost predicted_ns = NAN;
};

// Fewer chunks are simulated sooner, and their prediction depends less on how well they overlap. But where those of
// several channels pass at once, some channels are better than one, in which each message that is late holds up those
// behind it; of late messages closed forms know nothing. Of short messages they know nothing of what each costs,
// either.
class Simpler {
 public:
  Simpler(const Algorithm& algorithm, double bytes, Rank ranks)
      : channels_(algorithm.at_once && !algorithm.rounds && !has_root(algorithm.kind) && ranks <= kRanksMost
                      ? std::min(kEnough, Count(bytes / ranks / kMessageBytesMin))
                      : 0) {}
  bool operator()(const Slicing& a, const Slicing& b) const {
    if (at_once(a) && at_once(b)) return a.lanes > b.lanes;
    return at_once(a) || (!at_once(b) && a.shares < b.shares);
  }

 private:
  static constexpr Count kEnough = 4;
  static constexpr Rank kRanksMost = 64;  // of more ranks there are many messages, and nothing was looked at
  static constexpr double kMessageBytesMin = 16 << 10;
  bool at_once(const Slicing& s) const { return s.shares == s.lanes && s.lanes <= channels_; }

  Count channels_;
};

// How many chunks a search looks at.
Count chunks_most(const Algorithm& algorithm, const Call& call, const View& view, const CostModel& model,
                  const ChunksMax& most_of) {
  if (!algorithm.cost || algorithm.runs || view.all.size <= 1 || has_counts(call.kind)) return 1;
  // A block is cut up no finer than a vector of all blocks.
  const Count most = std::min(kChunksMax, Count(std::max(1.0, vector_bytes(call, view, model) / kChunkBytesMin)));
  return most > 1 && most_of ? std::min(most, most_of(algorithm)) : most;
}

// Most of what there is to gain is in many channels, so those are looked at first, and soon the others take too long.
Sliced searched(Prediction& prediction, const Algorithm& algorithm, const Call& call, const View& view,
                const CostModel& model, const Tuning& tuning, Count most, Cost most_ns) {
  const Slicing whole{.shares = 1, .lanes = 1, .window = tuning.window};
  const Cost at_once = prediction.of(whole);
  if (most <= 1) return {whole, at_once};
  const Count channels_max = std::min({most, tuning.channels_most(), model.protocol.channels_max});
  std::array<Count, kRowsMax> channels;
  std::size_t number = 0;
  const auto add_doubled = [&](Count first) {
    for (Count lanes = first; lanes <= channels_max; lanes *= 2) channels[number++] = lanes;
  };
  add_doubled(1);
  // As many as have different orders load all links of a node alike.
  if (algorithm.channels && model.rings && !std::has_single_bit(model.rings->back().channels))
    add_doubled(model.rings->back().channels);
  std::array<std::array<Cost, kDoublings>, kRowsMax> all;  // with each number of channels, and as many chunks << [k]
  std::array<std::size_t, kRowsMax> lengths{};
  Cost best = at_once;
  for (std::size_t c = number; c-- > 0;)
    for (Slicing s{channels[c], channels[c], tuning.window}; s.shares <= most; s.shares *= 2) {
      const Cost limit = std::min(best, most_ns) * kNearly;
      if (prediction.too_fine(limit, s)) break;
      const Cost ns = prediction.beyond(limit, s) ? INFINITY : prediction.of(s, limit);
      all[c][lengths[c]++] = ns;
      best = std::min(best, ns);
    }
  const Simpler simpler(algorithm, vector_bytes(call, view, model), view.all.size);
  Sliced chosen{whole, at_once};
  for (std::size_t c = 0; c < number; ++c)
    for (std::size_t k = 0; k < lengths[c]; ++k) {
      const Slicing s{channels[c] << k, channels[c], tuning.window};
      if (all[c][k] <= best * kNearly && (chosen.predicted_ns > best * kNearly || simpler(s, chosen.slicing)))
        chosen = {s, all[c][k]};
    }
  return chosen;
}

Sliced sliced_by(Prediction& prediction, const Algorithm& algorithm, const Call& call, const View& view,
                 const CostModel& model, const Tuning& tuning, Count most, const std::optional<Slicing>& stated,
                 Cost most_ns) {
  if (!stated && tuning.search) return searched(prediction, algorithm, call, view, model, tuning, most, most_ns);
  const Slicing s =
      stated ? *stated : measured_slicing(algorithm, view.all.size, model.bytes(double(call.count)), tuning);
  return {s, prediction.of(s)};
}

}  // namespace

bool protocol_serves(const CostModel& model, const Algorithm& algorithm, const Call& call, const View& view) {
  const bool by_switch = algorithm.in_switch && model.node_switch;
  return vector_bytes(call, view, model) <= double(model.protocol.bytes_max) &&
         (model.protocol.in_switch || !by_switch) && (model.protocol.between_nodes || view.nodes <= 1);
}

bool by_switches(CostModels models) {
  return std::ranges::any_of(models, [](const CostModel& m) { return m.node_switch && m.protocol.in_switch; });
}

namespace {

// Protocols by which no slicing takes less than `most_ns` are left out. `known`: what closed forms say of the call in
// one chunk, by protocol, where that has been asked for.
Plan fastest_plan(const Algorithm& algorithm, const Call& call, const View& view, CostModels models,
                  const Tuning& tuning, const ChunksMax& most_of, const std::optional<Slicing>& stated, Cost most_ns,
                  std::span<const Cost> known = {}) {
  Plan best;
  Cost bound_ns = most_ns;
  // The fastest in one chunk first: it mostly is in more chunks, too, and rules the others out.
  const std::size_t first = known.empty() ? 0 : std::size_t(std::ranges::min_element(known) - known.begin());
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::size_t p = i == 0 ? first : i - (i <= first);
    const CostModel& model = models[p];
    if (models.size() > 1 && !protocol_serves(model, algorithm, call, view)) continue;
    Prediction prediction(algorithm, call, view, model, tuning, known.empty() ? std::nullopt : std::optional(known[p]));
    const Count most = chunks_most(algorithm, call, view, model, most_of);
    if (tuning.search && !stated && bound_ns < INFINITY &&
        (most <= 1 ? prediction.of({.window = tuning.window}) > most_ns
                   : prediction.always_beyond(bound_ns, finest(model, tuning))))
      continue;
    const auto [slicing, cost] = sliced_by(prediction, algorithm, call, view, model, tuning, most, stated, most_ns);
    if (best.algorithm && !(cost < best.predicted_ns * (p < best.protocol ? 1 + kTie : 1 - kTie))) continue;
    best = {.algorithm = &algorithm, .slicing = slicing, .protocol = p, .predicted_ns = cost};
    most_ns = std::min(most_ns, cost * kSurely);
    bound_ns = std::min(bound_ns, cost * kRoughly);
  }
  return best;
}

}  // namespace

Plan plan_of(const Algorithm& algorithm, const Call& call, const View& view, CostModels models, const Tuning& tuning,
             const ChunksMax& most, const std::optional<Slicing>& stated) {
  return fastest_plan(algorithm, call, view, models, tuning, most, stated, INFINITY);
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
  const Detours* detours;  // null: there are no slow pairs
  const std::optional<Slicing>& stated;

  // What these add.
  Cost added(const Plan& p) const {
    return detours ? detours->added_ns(*p.algorithm, call, p.slicing.lanes, models[0].element_bytes) : 0;
  }
  double bytes() const { return models[0].bytes(double(call.count)); }
  bool can(const Algorithm& a) const { return a.can(call, view); }
  Plan of(const Algorithm& a, Authority by) const {
    Plan p = plan_of(a, call, view, models, tuning, most, stated);
    p.by = by;
    return p;
  }
  bool compared(const Algorithm& a, const Rule* rule) const;
  bool floods(const Algorithm& a) const;  // what any other is better than
  bool serves(const Algorithm& a, std::size_t protocol) const {
    return models.size() == 1 || protocol_serves(models[protocol], a, call, view);
  }
  // Without the protocols by which it surely takes longer; no algorithm where it does by all of them.
  Plan plan_below(Cost most_ns, const Algorithm& a, std::span<const Cost> known) const {
    return fastest_plan(a, call, view, models, tuning, most, stated, most_ns, known);
  }
  // Null: no closed form, and so nothing to compare.
  Plan cheapest(const Rule* rule) const;
  Plan by_entry(const TuningTable::Entry& entry) const;
  Plan within(const Rule* rule, const TuningTable::Entry* entry) const;
};

// The two lowest predictions so far, of two algorithms.
struct LowestTwo {
  const Algorithm* first = nullptr;
  const Algorithm* second = nullptr;
  Cost first_ns = INFINITY, second_ns = INFINITY;

  void add(const Algorithm& a, Cost ns) {
    if (ns < first_ns) {
      if (first != &a) second = first, second_ns = first_ns;
      first = &a, first_ns = ns;
    } else if (&a != first && ns < second_ns) {
      second = &a, second_ns = ns;
    }
  }
};

bool Planning::floods(const Algorithm& a) const {
  return std::ranges::any_of(tuning.incast, [&](const Tuning::Incast& i) {
    return !i.fallback && same(i.algorithm, a) &&
           incast_bytes(call, view.all.size, models[0].element_bytes) > i.bytes_max;
  });
}

bool Planning::compared(const Algorithm& a, const Rule* rule) const {
  if (a.kind != call.kind || (rule ? !rule->offers(a) : a.variant) || !a.cost || !can(a)) return false;
  return !a.in_switch || by_switches(models);
}

Plan Planning::cheapest(const Rule* rule) const {
  // Nothing that takes longer than the two lowest of these, whatever the slicing, is looked at more closely: a chosen
  // slicing takes no longer than any that was looked at, and what is not chosen for few chunks no 1 % longer.
  const bool others = std::ranges::any_of(table, [&](const Algorithm& a) { return compared(a, rule) && !floods(a); });
  const auto enters = [&](const Algorithm& a) { return compared(a, rule) && !(others && floods(a)); };
  LowestTwo reached;
  std::array<Cost, kKnownMax> known;
  std::size_t number = 0;  // of those, a protocol after the other of each candidate
  if (tuning.search && !stated && !detours)
    for (const Algorithm& a : table)
      if (enters(a)) {
        for (std::size_t p = 0; p < models.size(); ++p) {
          Cost one = INFINITY;
          if (serves(a, p)) {
            Prediction prediction(a, call, view, models[p], tuning);
            one = prediction.as_one_chunk();
            if (one < reached.second_ns) reached.add(a, prediction.of({}));
          }
          if (number + p < known.size()) known[number + p] = one;
        }
        number += models.size();
      }
  Plan best;
  const Algorithm* second = nullptr;
  Cost second_ns = NAN;
  const std::span<const Cost> all_known(known.data(), std::min(number, known.size()));
  std::size_t next = 0;
  for (const Algorithm& a : table) {
    if (!enters(a)) continue;
    const bool is_known = next + models.size() <= all_known.size();
    Plan found = plan_below(reached.second_ns * kSurely, a,
                            is_known ? all_known.subspan(next, models.size()) : std::span<const Cost>());
    next += models.size();
    if (!found.algorithm) continue;
    found.predicted_ns += added(found);
    if (!detours) reached.add(a, found.predicted_ns);
    const bool better = !best.algorithm || found.predicted_ns < best.predicted_ns * (1 - kTie);
    if (better || !second || found.predicted_ns < second_ns * (1 - kTie)) {
      const Plan& beaten = better ? best : found;
      second = beaten.algorithm;
      second_ns = beaten.predicted_ns;
    }
    if (better) best = found;
  }
  if (!best.algorithm) return {};
  const Algorithm* const chosen = without_incast(best.algorithm, call, view, models[0].element_bytes, tuning, rule);
  if (chosen != best.algorithm) return of(*chosen, Authority::measured);
  best.second = second;
  best.second_ns = second_ns;
  return best;
}

// No algorithm: the entry's cannot serve the call, its protocol is none of those asked for, or it is for another
// slicing than the stated one. What it states in full needs no prediction.
Plan Planning::by_entry(const TuningTable::Entry& e) const {
  if (!can(*e.algorithm)) return {};
  const Count channels = std::clamp<Count>(e.channels, 1, tuning.channels_limit);
  if (stated && e.chunks > 0 && (e.chunks != stated->shares || channels != stated->lanes)) return {};
  std::size_t first = 0, number = models.size();
  if (!e.protocol.empty()) {
    while (first < models.size() && models[first].protocol.name != e.protocol) ++first;
    if (first == models.size()) return {};
    number = 1;
  }
  const std::optional<Slicing> sliced =
      stated          ? stated
      : e.chunks == 0 ? std::nullopt
                      : std::optional(Slicing{e.chunks, channels, e.window > 0 ? e.window : tuning.window});
  Plan p;
  if (sliced && number == 1) {
    p = {.algorithm = e.algorithm, .slicing = *sliced};
  } else {
    p = plan_of(*e.algorithm, call, view, models.subspan(first, number), tuning, most, sliced);
    if (e.window > 0 && !stated) p.slicing.window = e.window;
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
  if (!p.algorithm && !stated)  // preferences were measured with the tuning's own slicing
    if (const Algorithm* const a = preferred(call, view, bytes(), tuning, rule)) {
      p = of(*a, Authority::measured);
      if (added(p) > 0)
        if (const Plan other = cheapest(rule); other.algorithm) p = other;
    }
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
          std::span<const Algorithm> table, const ChunksMax& most, const Detours* detours,
          const std::optional<Slicing>& stated) {
  Call call = given;
  call.in_place = false;
  if (detours && !detours->empty()) {
    // What would be chosen anyway may well send nothing there.
    const Plan usual = plan(call, view, models, tuning, authorities, table, most, nullptr, stated);
    if (!usual.algorithm ||
        detours->added_ns(*usual.algorithm, call, usual.slicing.lanes, models[0].element_bytes) == 0)
      return usual;
  }
  const Planning planning{call,  view, models, tuning, table, most, detours && !detours->empty() ? detours : nullptr,
                          stated};
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
