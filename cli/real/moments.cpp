#include "cli/real/moments.hpp"

#include <signal.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "libgccl/schedule/schedule.hpp"
#include "sim/fault/effects.hpp"

namespace gccl::real {
namespace {

using sim::Fault;
using sim::FaultKind;

constexpr Nanos kDetectionLeast = 2'000'000'000;
constexpr Nanos kBySelf = 1'000'000;  // a rank does by itself what strikes it so soon after a moment

// What a rank's schedule has of an operation.
struct Amounts {
  std::uint64_t steps = 0, bytes = 0;
};
Amounts amounts_of(const sim::SimulatedOperation& o, Rank rank) {
  Amounts a;
  for (Count lane = 0; lane < o.lanes; ++lane) {
    Schedule s = sliced(o.algorithm, o.call, o.layout->view(rank), o.shares, lane, o.lanes);
    while (const Step* step = s.next()) {
      ++a.steps;
      if (step->op == Op::send) a.bytes += step->from.count * o.element_bytes;
    }
  }
  return a;
}

// Nothing: the rank never comes so far.
std::optional<Moment> by_amount(const sim::Workload& w, const sim::FaultMoment& m, bool bytes) {
  std::uint64_t before = 0;
  for (std::size_t o = 0; o < w.operations.size(); ++o) {
    const Amounts a = amounts_of(w.operations[o], m.rank);
    const std::uint64_t here = bytes ? a.bytes : a.steps;
    if (before + here >= m.count && here > 0)
      return Moment{.at = Moment::At::operation, .number = o, .part = double(m.count - before) / double(here)};
    before += here;
  }
  return std::nullopt;
}

// An operation that never ended, as after a failure that is an error on all ranks, has no end; those behind it neither.
std::optional<Moment> by_time(const sim::Workload& w, const sim::Outcome& simulated, Nanos t, double stretch) {
  const auto& end = simulated.end_ns;
  std::vector<Nanos> took;
  for (std::size_t i = 0; i < end.size(); ++i)
    if (end[i] > 0) took.push_back(end[i] - simulated.begin_ns[i]);
  std::nth_element(took.begin(), took.begin() + std::ptrdiff_t(took.size() / 2), took.end());
  Nanos begins = 0;  // when all that start late are there: as of then real ranks go together
  for (Rank r = 0; r < w.cards.size(); ++r) begins = std::max(begins, late_by(w.faults->faults, r));
  for (std::size_t o = 0; o < end.size(); ++o) {
    if (end[o] > t || end[o] == 0) {
      const Nanos into = std::max<Nanos>(0, t - begins), compute = w.faults->compute;
      if (into <= compute)
        return Moment{.at = Moment::At::compute, .number = o, .after = Nanos(double(into) * stretch)};
      // In the middle of one of which nobody knows how long it takes.
      const double usual = took.empty() ? 2 * double(into - compute) : std::max(1.0, double(took[took.size() / 2]));
      return Moment{.at = Moment::At::operation, .number = o, .part = std::min(1.0, double(into - compute) / usual)};
    }
    begins = end[o];
  }
  return std::nullopt;
}

// Whose moment it is: of those ranks that it hits and that live then, or of one that nothing ends.
Rank reference(const sim::Workload& w, const sim::Outcome& simulated, std::size_t fault) {
  const auto& faults = w.faults->faults;
  const auto add_hit = [&](std::size_t f, std::set<Rank>* to) {
    if (!ends_processes(faults[f])) return;
    for (const Rank r : hit_as_simulated(f, *w.faults, w.cards, *w.cluster, simulated)) to->insert(r);
  };
  std::set<Rank> dead, end;
  for (const sim::FaultEvent& e : simulated.faults->events) {
    if (e.what != sim::FaultEvent::What::begins) continue;
    if (e.fault == fault) break;
    add_hit(e.fault, &dead);
  }
  for (const Rank r : hit_as_simulated(fault, *w.faults, w.cards, *w.cluster, simulated))
    if (r < w.cards.size() && !dead.contains(r)) return r;
  for (std::size_t f = 0; f < faults.size(); ++f) add_hit(f, &end);
  Rank r = 0;
  while (end.contains(r) && r + 1 < w.cards.size()) ++r;
  return r;
}

// The fault that has stopped the rank at `t` in the simulation, and when it began; of several the latest.
std::optional<std::pair<std::size_t, Nanos>> stop_of(const sim::Workload& w, const sim::Outcome& simulated, Rank rank,
                                                     std::size_t fault, Nanos t) {
  std::optional<std::pair<std::size_t, Nanos>> stop;
  for (const sim::FaultEvent& e : simulated.faults->events) {
    if (e.what != sim::FaultEvent::What::begins) continue;
    if (e.fault == fault || e.at > t) break;
    const Fault& f = w.faults->faults[e.fault];
    if (f.kind == FaultKind::pause && std::ranges::count(f.ranks, rank) > 0 && t < e.at + f.lasts)
      stop = {e.fault, e.at};
  }
  return stop;
}

}  // namespace

double stretch_of(const sim::FaultPlan& plan) {
  return std::max(1.0, double(kDetectionLeast) / double(plan.recovery.detection));
}

std::vector<Rank> hit_as_simulated(std::size_t fault, const sim::FaultPlan& plan, std::span<const Card> cards,
                                   const Cluster& cluster, const sim::Outcome& simulated) {
  std::vector<Rank> hit = hit_by(plan.faults[fault], cards, cluster);
  if (const sim::FaultEvent* const strikes = begin_of(simulated.faults->events, fault))
    std::erase_if(hit, [&](Rank r) { return late_by(plan.faults, r) > strikes->at; });
  return hit;
}

std::vector<Strike> strikes_of(const sim::Workload& w, const sim::Outcome& simulated, double stretch) {
  std::vector<Strike> all;
  for (std::size_t i = 0; i < w.faults->faults.size(); ++i) {
    const Fault& f = w.faults->faults[i];
    if (f.kind == FaultKind::late_start || begins_before_start(f)) continue;
    if (!begin_of(simulated.faults->events, i)) continue;
    Strike s{.fault = i, .rank = f.after ? f.after->rank : reference(w, simulated, i), .moment = {}};
    std::optional<Moment> moment;
    if (f.after) {
      using What = sim::FaultMoment::What;
      switch (f.after->what) {
        case What::operations: moment = Moment{.at = Moment::At::done, .number = f.after->count - 1}; break;
        case What::steps: moment = by_amount(w, *f.after, false); break;
        case What::bytes: moment = by_amount(w, *f.after, true); break;
        case What::agreements: moment = Moment{.at = Moment::At::agreement, .number = f.after->count}; break;
        case What::epochs: moment = Moment{.at = Moment::At::epoch, .number = f.after->count}; break;
      }
    } else {
      moment = by_time(w, simulated, f.at, stretch);
    }
    if (!moment) continue;
    s.moment = *moment;
    if (const auto stop = f.after ? std::nullopt : stop_of(w, simulated, s.rank, i, f.at)) {
      s.stop = stop->first;
      s.delay = Nanos(double(f.at - stop->second) * stretch);
      all.push_back(s);
      continue;
    }
    const auto hit = hit_as_simulated(i, *w.faults, w.cards, *w.cluster, simulated);
    const Nanos delay = f.after ? Nanos(double(f.at) * stretch) : 0;
    if (hit.size() == 1 && hit[0] == s.rank && delay <= kBySelf) {
      if (ends_processes(f)) s.signal = SIGKILL;
      if (f.kind == FaultKind::pause) s.signal = SIGSTOP;
      if (s.signal && s.moment.at != Moment::At::operation) s.moment.after += delay;
    }
    all.push_back(s);
  }
  return all;
}

}  // namespace gccl::real
