#include "sim/fault/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gccl::sim {
namespace {

using End = RankWitness::End;
using Witnesses = std::vector<const RankWitness*>;

void judge_knowledge(const Witnesses& left, bool hangs, const std::map<Rank, Nanos>& failed_at, FaultOutcome* f) {
  for (const RankWitness* w : left)
    for (const Rank d : f->dead)
      if (w->must_know && !w->knew.contains(d) && !hangs)
        f->violations.push_back(fmt::format("rank {} never heard that rank {} has failed", w->rank, d));
  for (const Rank d : f->dead) {
    const auto since = failed_at.find(d);
    if (since == failed_at.end()) continue;
    Nanos first = -1, last = -1;
    for (const RankWitness* w : left) {
      const auto knew = w->knew.find(d);
      if (knew == w->knew.end() || knew->second < since->second) continue;
      first = first < 0 ? knew->second : std::min(first, knew->second);
      last = std::max(last, knew->second);
    }
    if (first < 0) continue;
    f->detection_first = std::max(f->detection_first, first - since->second);
    f->detection = std::max(f->detection, last - since->second);
    f->events.push_back({.at = first, .what = FaultEvent::What::first_notified, .rank = d});
    f->events.push_back({.at = last, .what = FaultEvent::What::all_notified, .rank = d});
  }
}

// Each operation once, on all that are left in the same epoch.
void judge_operations(const Witnesses& left, bool hangs, FaultOutcome* f) {
  const std::size_t all = left.empty() ? 0 : left.front()->done_in.size();
  for (std::size_t o = 0; o < all; ++o) {
    std::set<std::uint32_t> epochs;
    for (const RankWitness* w : left) {
      if (w->end != End::finished) continue;
      if (w->done_in[o] > 0)
        epochs.insert(w->done_in[o]);
      else if (w->first)
        ++f->lost;
    }
    if (epochs.size() > 1) ++f->doubled;
  }
  if (f->lost + f->doubled > 0 && !hangs)
    f->violations.push_back(
        fmt::format("{} operations are lost, {} have different results on different ranks", f->lost, f->doubled));
}

}  // namespace

Nanos judge(std::span<const RankWitness> witnesses, bool hangs, const std::map<Rank, Nanos>& failed_at,
            FaultOutcome* f) {
  Witnesses left;
  std::set<Rank> dead;
  bool failed = false;
  Nanos resumed = -1;
  for (const RankWitness& w : witnesses) {
    failed = failed || w.end == End::failed || w.end == End::broken;
    if (w.end == End::out) ++f->out;
    for (const auto& [rank, when] : w.knew)
      if (!failed_at.contains(rank) && std::ranges::find(f->false_alarms, rank) == f->false_alarms.end())
        f->false_alarms.push_back(rank);
    if (!w.left()) continue;
    left.push_back(&w);
    for (const auto& [rank, when] : w.knew) dead.insert(rank);
    if (w.epoch > 1) resumed = std::max(resumed, w.resumed);
  }
  f->survivors = Rank(left.size());
  f->completed = !hangs && !failed && !left.empty();
  f->dead.assign(dead.begin(), dead.end());
  judge_knowledge(left, hangs, failed_at, f);
  Nanos begun = -1;
  for (const Rank d : dead)
    if (const auto since = failed_at.find(d); since != failed_at.end())
      begun = begun < 0 ? since->second : std::min(begun, since->second);
  if (begun >= 0 && resumed >= 0 && f->completed) f->recovery = resumed - begun;
  judge_operations(left, hangs, f);
  return resumed;
}

void judge_links(FaultOutcome* f) {
  using What = FaultEvent::What;
  Nanos fault = -1;
  for (const FaultEvent& e : f->events) {
    if (e.what == What::begins) fault = e.at;
    if (e.what == What::planned_around) ++f->plans_changed;
    if (e.what != What::link_slow) continue;
    f->slow_links.emplace_back(e.rank, e.peer);
    if (fault >= 0) f->link_detection = std::max(f->link_detection, e.at - fault);
  }
  std::ranges::sort(f->slow_links);
  f->slow_links.erase(std::unique(f->slow_links.begin(), f->slow_links.end()), f->slow_links.end());
}

}  // namespace gccl::sim
