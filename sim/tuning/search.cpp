#include "sim/tuning/search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "libgccl/cluster/read/nccl_settings.hpp"
#include "libgccl/select/plan.hpp"
#include "sim/scenario/plan/estimate.hpp"
#include "sim/scenario/read/sizes.hpp"
#include "sim/tuning/bound.hpp"
#include "sim/tuning/counterparts.hpp"

namespace gccl::sim {
namespace {

using Json = nlohmann::json;

// Shorter chunks are latencies and overheads alone.
constexpr double kRefinedChunkBytesMin = 4 << 10;
// How many channels a plan that is cut up far more finely has at least.
constexpr Count kFinerChannels = 8;
// Refining goes on while it gains more than this.
constexpr double kWorthwhile = 0.999;

// Of estimates: that of what was simulated at one of the neighbours alone is so many times longer, and that of the
// planner's own choice so many times shorter, since what gains less is in doubt.
constexpr double kSeenOnce = 1.05, kInDoubtOwn = 1.015;

// Of all candidates, and of those that each library has too.
constexpr std::size_t kFamilies = 1 + kLibraries;
using Families = std::array<bool, kFamilies>;

bool same(const Plan& a, const Plan& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.slicing == b.slicing;
}

struct Tried {
  Plan plan;
  double predicted_us = NAN, time_us = NAN;
};

class Search {
 public:
  Search(const TunedRanks& ranks, Collective kind, Count bytes, const SearchOptions& options)
      : r_(ranks),
        o_(options),
        view_(ranks.layout->view(0)),
        each_(size_of(options.dtype)),
        call_{.kind = kind, .count = elements(kind, bytes, ranks.ranks(), each_)},
        by_(ranks.of(call_)),
        bytes_(total_bytes(kind, call_.count, ranks.ranks(), each_)) {
    best_us_.fill(std::numeric_limits<double>::infinity());
    predicted_us_.fill(std::numeric_limits<double>::infinity());
  }

  Json cell() {
    const Plan own = planned();
    std::vector<Plan> all = candidates();
    for (const Plan& p : all)
      for (std::size_t f = 0; f < kFamilies; ++f)
        if (families(p)[f]) predicted_us_[f] = std::min(predicted_us_[f], predicted_us(p));
    std::stable_sort(all.begin(), all.end(),
                     [&](const Plan& a, const Plan& b) { return predicted_us(a) < predicted_us(b); });
    if (own.algorithm) try_plan(own, false);
    OtherChoice nccl, openmpi = openmpi_choice(call_, view_, each_);
    if (r_.nccl) nccl = nccl_choice(call_, view_, each_, *r_.nccl);
    const Plan as_nccl = other_plan(nccl, false), as_openmpi = other_plan(openmpi, true), as_table = table_plan();
    for (const Plan& p : {as_nccl, as_openmpi, as_table})
      if (p.algorithm) try_plan(p, false);
    for (const Plan& p : all) try_plan(p, true);
    refine(o_.refined);
    Json out = place_json();
    out["tried"] = sorted();
    out["left_out"] = left_out();
    out["planner"] = place(own);
    out["nccl"] = r_.nccl ? other_json(nccl, place(as_nccl)) : Json();
    out["openmpi"] = other_json(openmpi, place(as_openmpi));
    if (o_.table) out["table"] = {{"entry", as_table.by == Authority::table}, {"tried", place(as_table)}};
    return out;
  }

  Json between(const Json& below, const Json& above) {
    const OtherChoice openmpi = openmpi_choice(call_, view_, each_);
    const Plan as_openmpi = other_plan(openmpi, true);
    const std::vector<Tried> all = estimates(below, above, as_openmpi);
    std::array<unsigned, kFamilies> simulated{};
    Families has{};
    Json estimated = Json::array(), theirs;  // theirs: an index in it
    if (o_.confirmed > 0)
      for (const Json* beside : {&below, &above})
        if (const Plan p = plan_from(beside->at("tried")[0]); serves(p)) try_plan(p, false);
    for (const Tried& t : all) {
      const Families f = families(t.plan);
      bool first = false, promising = false;
      for (std::size_t i = 0; i < kFamilies; ++i) {
        first = first || (f[i] && !has[i]);
        has[i] = has[i] || f[i];
        promising = promising || (f[i] && simulated[i] < (i == 0 ? o_.confirmed : std::min(o_.confirmed, 1u)));
      }
      const bool is_theirs = same(t.plan, as_openmpi);
      if (is_theirs) theirs = estimated.size();
      if (first || is_theirs) estimated.push_back(tried_json(t));
      if (promising) try_plan(t.plan, true);
      if (found(t.plan))
        for (std::size_t i = 0; i < kFamilies; ++i) simulated[i] += f[i];
    }
    if (as_openmpi.algorithm && !tried_.empty()) try_plan(as_openmpi, false);
    refine(o_.refined);
    Json out = place_json();
    if (tried_.empty()) {
      out["estimated"] = std::move(estimated);
    } else {
      out["tried"] = sorted();
      out["left_out"] = left_out();
      theirs = place(as_openmpi);
    }
    out["openmpi"] = other_json(openmpi, std::move(theirs));
    return out;
  }

 private:
  double predicted_us(const Plan& p) const {
    return predicted(*p.algorithm, call_, view_, by_.models[p.protocol], p.slicing, by_.tuning) / 1e3;
  }
  Families families(const Plan& p) const {
    Families f{true};
    const PlannedCall call{view_.all.size, view_.nodes, protocol(p).name, p.slicing.shares};
    for (std::size_t l = 0; l < kLibraries; ++l) f[1 + l] = counterpart(Library(l), *p.algorithm, call).has_value();
    return f;
  }
  double steps(const Algorithm& a, const Slicing& s) const {
    return estimated_work(a, call_, *r_.layout, s.shares, s.lanes).steps;
  }
  ChunksMax affordable() const {
    return [this](const Algorithm& a) {
      const double each = steps(a, {}) * (a.staggered ? 1.5 : 1);  // two shares in a channel become three
      return Count(std::clamp(o_.steps_max / std::max(each, 1.0), 1.0, double(kChunksMax)));
    };
  }

  // What was simulated at neighbouring sizes, and how far predictions are taken to be off here.
  struct Off {
    Plan plan;
    double factor = 0;  // time by prediction
    unsigned at = 0;    // so many of the two
    double near = 0;    // how near the size is to that one: 1, and 0 at the other
  };
  std::vector<Off> seen_at(const Json& below, const Json& above) const {
    const double low = std::log(below.at("bytes").get<double>()), high = std::log(above.at("bytes").get<double>());
    const double way = (std::log(double(bytes_)) - low) / (high - low);
    std::vector<Off> all;
    for (const auto& [cell, near] : {std::pair(&below, 1 - way), {&above, way}})
      for (const Json& t : cell->at("tried")) {
        const Json& predicted = t.at("predicted_us");
        if (!predicted.is_number() || !(predicted.get<double>() > 0)) continue;
        const Plan p = plan_from(t);
        auto known = std::ranges::find_if(all, [&](const Off& o) { return same(o.plan, p); });
        if (known == all.end()) known = all.insert(known, {.plan = p, .near = near});
        known->factor = std::max(known->factor, t.at("time_us").get<double>() / predicted.get<double>());
        ++known->at;
      }
    // That a form is too slow at one size is worth less and less towards another at which nobody has looked.
    for (Off& o : all)
      if (o.at == 1) o.factor = kSeenOnce * (o.factor < 1 ? std::pow(o.factor, o.near) : o.factor);
    return all;
  }

  // How long what was simulated there, and what the planner and Open MPI choose, are estimated to take here; the
  // fastest first.
  std::vector<Tried> estimates(const Json& below, const Json& above, const Plan& theirs) const {
    const Plan own = planned();
    std::vector<Tried> all;
    const auto add = [&](const Plan& p, double factor) {
      const double predicted = serves(p) ? predicted_us(p) : NAN;
      if (predicted > 0) all.push_back({p, predicted, predicted * factor / (same(p, own) ? kInDoubtOwn : 1)});
    };
    for (const Off& o : seen_at(below, above)) add(o.plan, o.factor);
    const auto add_unseen = [&](const Plan& p, double factor) {
      if (p.algorithm && std::ranges::none_of(all, [&](const Tried& t) { return same(t.plan, p); })) add(p, factor);
    };
    add_unseen(own, 1);
    add_unseen(theirs, kSeenOnce);
    std::ranges::stable_sort(all, {}, &Tried::time_us);
    return all;
  }

  // Whether the call can be carried out so, too.
  bool serves(const Plan& p) const {
    const CostModels models = by_.models;
    return p.algorithm->can(call_, view_) &&
           (models.size() == 1 || protocol_serves(models[p.protocol], *p.algorithm, call_, view_));
  }

  // Each algorithm with each protocol as the planner would cut it up, and whole, as MPI libraries send it.
  std::vector<Plan> candidates() const {
    std::vector<Plan> all;
    const CostModels models = by_.models;
    const auto add = [&](const Plan& p) {
      if (std::ranges::none_of(all, [&](const Plan& q) { return same(p, q); })) all.push_back(p);
    };
    for (const Algorithm& a : algorithms()) {
      if (a.kind != call_.kind || a.variant || !a.cost || !a.can(call_, view_)) continue;
      if (a.in_switch && !by_switches(models)) continue;
      for (std::size_t p = 0; p < models.size(); ++p) {
        if (models.size() > 1 && !protocol_serves(models[p], a, call_, view_)) continue;
        Plan found = plan_of(a, call_, view_, models.subspan(p, 1), by_.tuning, affordable());
        found.protocol = p;
        add(found);
      }
      add(plan_of(a, call_, view_, models, by_.tuning, nullptr, Slicing{.window = by_.tuning.window}));
    }
    std::erase_if(all, [](const Plan& p) { return !p.algorithm; });
    return all;
  }

  // What another library's choice is here; as scenarios have it.
  Plan other_plan(const OtherChoice& choice, bool whole) const {
    if (!choice.algorithm) return {};
    CostModels models = by_.models;
    std::size_t first = 0;
    for (std::size_t p = 0; p < models.size(); ++p)
      if (!choice.protocol.empty() && models[p].protocol.name == choice.protocol)
        first = p, models = models.subspan(p, 1);
    std::optional<Slicing> stated;
    if (whole) stated = Slicing{};
    Plan p = plan_of(*choice.algorithm, call_, view_, models, by_.tuning, affordable(), stated);
    p.protocol += first;
    return p;
  }

  Plan planned(const Authorities& asked = {}) const {
    return plan(call_, view_, by_.models, by_.tuning, asked, algorithms(), affordable());
  }

  // What a job with the table that is checked runs: where no entry is about the call, what the planner chooses.
  Plan table_plan() const {
    if (!o_.table) return {};
    Authorities asked;
    asked.table = o_.table;
    return planned(asked.on(view_.all.size, view_.nodes));
  }

  const Tried* found(const Plan& p) const {
    const auto at = std::ranges::find_if(tried_, [&](const Tried& t) { return same(t.plan, p); });
    return at == tried_.end() ? nullptr : &*at;
  }

  // Simulates the plan unless it was, or is left out. `prune`: where it cannot be the best, or hardly.
  void try_plan(const Plan& p, bool prune) {
    if (found(p)) return;
    const Families f = families(p);
    const double predicted = predicted_us(p);
    if (prune) {
      bool near = false, below = false;
      for (std::size_t i = 0; i < kFamilies; ++i) near = near || (f[i] && !(predicted > o_.margin * predicted_us_[i]));
      if (!near) return void(++prediction_);
      const double least = least_us(p);
      for (std::size_t i = 0; i < kFamilies; ++i) below = below || (f[i] && least < best_us_[i]);
      if (!below) return void(++bound_);
    }
    if (steps(*p.algorithm, p.slicing) > o_.steps_max) return void(++work_);
    const double us = simulated_us(p);
    tried_.push_back({p, predicted, us});
    for (std::size_t i = 0; i < kFamilies; ++i)
      if (f[i]) best_us_[i] = std::min(best_us_[i], us);
  }

  double least_us(const Plan& p) const {
    return least_ns(*r_.cluster, r_.cards, *p.algorithm, call_, *r_.layout, each_, protocol(p)) / 1e3;
  }
  const Protocol& protocol(const Plan& p) const { return r_.cluster->protocols()[p.protocol]; }

  double simulated_us(const Plan& p) const {
    Workload w;
    w.cluster = r_.cluster.get();
    w.cards = r_.cards;
    w.operations = {{.algorithm = p.algorithm,
                     .call = call_,
                     .layout = r_.layout,
                     .members = {},
                     .shares = p.slicing.shares,
                     .lanes = p.slicing.lanes,
                     .window = p.slicing.window,
                     .element_bytes = each_,
                     .protocol = &protocol(p)}};
    w.streams = {{{0}}};
    return double(o_.run(w).time_ns) / 1e3;
  }

  Json left_out() const { return {{"bound", bound_}, {"prediction", prediction_}, {"work", work_}}; }
  // "tried".
  Json sorted() {
    std::ranges::stable_sort(tried_, {}, &Tried::time_us);
    Json all = Json::array();
    for (const Tried& t : tried_) all.push_back(tried_json(t));
    return all;
  }

  // From so many of the fastest on, chunks and channels doubled and halved.
  void refine(unsigned most) {
    std::vector<std::size_t> order(tried_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return tried_[a].time_us < tried_[b].time_us; });
    std::vector<Tried> starts;
    for (const std::size_t i : order) {
      const auto alike = [&](const Tried& t) { return t.plan.algorithm == tried_[i].plan.algorithm; };
      if (starts.size() < most && std::ranges::none_of(starts, alike)) starts.push_back(tried_[i]);
    }
    for (Tried now : starts) {
      if (const std::optional<Plan> finer = far_finer(now.plan)) {
        try_plan(*finer, true);
        const Tried* t = found(*finer);
        if (t && t->time_us < now.time_us * kWorthwhile) now = *t;
      }
      for (bool better = true; better;) {
        better = false;
        for (const Slicing& s : neighbours(now.plan)) {
          Plan next = now.plan;
          next.slicing = s;
          try_plan(next, false);
          const Tried* t = found(next);
          if (t && t->time_us < now.time_us * kWorthwhile) now = *t, better = true;
        }
      }
    }
  }
  Count shares_most() const {
    return Count(std::clamp(double(bytes_) / kRefinedChunkBytesMin, 1.0, double(kChunksMax)));
  }
  Count lanes_most(const Plan& p) const {
    return std::min(by_.tuning.channels_most(), by_.models[p.protocol].protocol.channels_max);
  }
  // Half of the way, on a logarithmic scale, to as many chunks as there may be, in several channels: where the few that
  // a form prefers are a hollow, the way out of which goes up first.
  std::optional<Plan> far_finer(Plan p) const {
    const Count most = std::min(shares_most(), affordable()(*p.algorithm)), shares = p.slicing.shares;
    const Count finer = std::bit_floor(Count(std::sqrt(double(shares) * double(most))));
    if (finer < 4 * shares) return std::nullopt;
    p.slicing.shares = finer;
    p.slicing.lanes = std::min({finer, lanes_most(p), std::max<Count>(p.slicing.lanes, kFinerChannels)});
    return p;
  }
  std::vector<Slicing> neighbours(const Plan& p) const {
    const Slicing s = p.slicing;
    const Count most = shares_most(), lanes_max = lanes_most(p);
    std::vector<Slicing> all;
    const auto add = [&](Count shares, Count lanes) {
      if (shares >= 1 && lanes >= 1 && lanes <= shares && shares <= most && lanes <= lanes_max)
        all.push_back({shares, lanes, s.window});
    };
    add(s.shares * 2, s.lanes);
    add(s.shares / 2, s.lanes);
    add(s.shares, s.lanes * 2);
    add(s.shares, s.lanes / 2);
    add(s.shares * 2, s.lanes * 2);
    add(s.shares / 2, s.lanes / 2);
    return all;
  }

  Json tried_json(const Tried& t) const {
    const std::string& p = protocol(t.plan).name;
    return {{"algorithm", t.plan.algorithm->name}, {"protocol", p.empty() ? Json() : Json(p)},
            {"chunks", t.plan.slicing.shares},     {"channels", t.plan.slicing.lanes},
            {"predicted_us", t.predicted_us},      {"time_us", t.time_us}};
  }
  Plan plan_from(const Json& tried) const {
    Plan p{.algorithm = find_algorithm(call_.kind, tried.at("algorithm").get<std::string>()),
           .slicing = {tried.at("chunks"), tried.at("channels"), by_.tuning.window}};
    const Json& named = tried.at("protocol");
    for (std::size_t i = 0; i < r_.cluster->protocols().size(); ++i)
      if (named.is_string() && r_.cluster->protocols()[i].name == named.get_ref<const std::string&>()) p.protocol = i;
    return p;
  }
  Json place_json() const {
    return {{"collective", name(call_.kind)}, {"ranks", view_.all.size}, {"nodes", view_.nodes}, {"bytes", bytes_}};
  }
  // The index in `tried`; null where it was too much work.
  Json place(const Plan& p) const {
    const Tried* t = found(p);
    return t ? Json(t - tried_.data()) : Json();
  }
  // `tried`: an index, or null.
  static Json other_json(const OtherChoice& choice, Json tried) {
    return {{"theirs", choice.theirs.empty() ? Json() : Json(choice.theirs)},
            {"note", choice.note},
            {"tried", std::move(tried)}};
  }

  const TunedRanks& r_;
  const SearchOptions& o_;
  View view_;
  unsigned each_;
  Call call_;
  const PlannedBy& by_;
  Count bytes_;  // of whole elements
  std::vector<Tried> tried_;
  std::array<double, kFamilies> best_us_{}, predicted_us_{};
  std::size_t bound_ = 0, prediction_ = 0, work_ = 0;
};

}  // namespace

TunedRanks::TunedRanks(std::shared_ptr<const Cluster> of, Rank ranks, Dtype dtype)
    : cluster(std::move(of)), cards(ranks) {
  std::iota(cards.begin(), cards.end(), 0);
  layout = std::make_shared<const Layout>(layout_of(*cluster, cards));
  by = planned_by(*cluster, cards, size_of(dtype));
  if (const auto order = order_from_root({.kind = Collective::broadcast}, layout->view(0)); !order.empty())
    by_from_root = planned_by(*cluster, cards, size_of(dtype), order);
  nccl = nccl_machine(*cluster, cards);
}

Json search(const TunedRanks& ranks, Collective kind, Count bytes, const SearchOptions& options) {
  return Search(ranks, kind, bytes, options).cell();
}

Json search_between(const TunedRanks& ranks, Collective kind, Count bytes, const SearchOptions& options,
                    const Json& below, const Json& above) {
  return Search(ranks, kind, bytes, options).between(below, above);
}

}  // namespace gccl::sim
