#include "sim/fault/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gccl::sim {
namespace {

using End = RankWitness::End;
using Witnesses = std::vector<const RankWitness*>;

// Returns since when the first of those was hurt who are called failed; -1: nobody.
Nanos judge_knowledge(const Witnesses& left, bool hangs, const Hurts& hurts, FaultOutcome* f) {
  Nanos begun = -1;
  for (const Rank d : f->dead) {
    std::map<Nanos, std::pair<Nanos, Nanos>> known;  // by cause: first and last
    for (const RankWitness* w : left) {
      const auto knew = w->knew.find(d);
      if (knew == w->knew.end()) {
        if (w->must_know && !hangs)
          f->violations.push_back(fmt::format("rank {} never heard that rank {} has failed", w->rank, d));
        continue;
      }
      const Nanos since = hurts.cause(d, w->rank, knew->second);
      if (since < 0) continue;
      auto& [first, last] = known.try_emplace(since, knew->second, knew->second).first->second;
      first = std::min(first, knew->second);
      last = std::max(last, knew->second);
    }
    std::vector<std::pair<Nanos, Nanos>> reported;  // of each failure of the rank: first and last
    for (const auto& [since, when] : known) {
      begun = begun < 0 ? since : std::min(begun, since);
      f->detection_first = std::max(f->detection_first, when.first - since);
      f->detection = std::max(f->detection, when.second - since);
      if (reported.empty() || since > reported.back().second) {
        reported.push_back(when);
      } else {  // one failure, for which ranks have different causes
        reported.back().first = std::min(reported.back().first, when.first);
        reported.back().second = std::max(reported.back().second, when.second);
      }
    }
    for (const auto& [first, last] : reported) {
      f->events.push_back({.at = first, .what = FaultEvent::What::first_notified, .rank = d});
      f->events.push_back({.at = last, .what = FaultEvent::What::all_notified, .rank = d});
    }
  }
  return begun;
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

void Hurts::hurt(Rank rank, Nanos from, Nanos until, std::vector<Rank> by) {
  const bool missed = gone_.contains(rank);
  all_.push_back({.rank = rank, .from = from, .until = until, .by = std::move(by), .missed = missed});
}

void Hurts::crashed(Rank rank, Nanos when) {
  all_.push_back({.rank = rank, .from = when, .until = kForGood, .by = {}, .crash = true});
  gone_.insert(rank);
}

void Hurts::started(Rank rank, Nanos when) {
  if (gone_.erase(rank) == 0) return;
  std::vector<Hurt> lasting;
  for (const Hurt& h : all_)
    if (h.rank == rank && h.missed && h.until > when) lasting.push_back(h);
  for (Hurt& h : lasting) hurt(rank, when, h.until, std::move(h.by));
}

void Hurts::cut(std::span<const Rank> ranks, const IsCut& cut, std::size_t helpers, Nanos from, Nanos until) {
  for (auto& [r, by] : unreachable(ranks, cut, helpers)) {
    hurt(r, from, until, std::move(by));
    all_.back().likely = false;
  }
  for (auto& [r, by] : unreachable(ranks, cut, ranks.size())) hurt(r, from, until, std::move(by));
}

void Hurts::parted(const std::vector<Rank>& side, Rank ranks, Nanos from, Nanos until) {
  std::vector<Rank> others;
  for (Rank r = 0; r < ranks; ++r)
    if (std::ranges::find(side, r) == side.end()) others.push_back(r);
  for (const Rank r : side)
    if (!others.empty()) hurt(r, from, until, others);
  for (const Rank r : others) hurt(r, from, until, side);
}

bool Hurts::any(Rank rank) const { return std::ranges::find(all_, rank, &Hurt::rank) != all_.end(); }

// The latest one before that was done to the process; and those before it that had not ended when it began.
Nanos Hurts::cause(Rank rank, Rank by, Nanos when) const {
  Nanos since = -1;
  bool likely = false;
  for (auto h = all_.rbegin(); h != all_.rend(); ++h) {
    if (h->rank != rank || h->from > when || h->missed) continue;
    if (!h->by.empty() && std::ranges::find(h->by, by) == h->by.end()) continue;
    if (h->crash && since >= 0) return since;  // of the process before
    if (since >= 0 && (h->until < since || (likely && !h->likely))) continue;
    since = h->from;
    likely = likely || h->likely;
  }
  return since;
}

Nanos judge(std::span<const RankWitness> witnesses, bool hangs, const Hurts& hurts, FaultOutcome* f) {
  Witnesses left;
  std::set<Rank> dead;
  bool failed = false;
  Nanos resumed = -1;
  for (const RankWitness& w : witnesses) {
    failed = failed || w.end == End::failed || w.end == End::broken;
    if (w.end == End::out) ++f->out;
    for (const auto& [rank, when] : w.knew)
      if (!hurts.any(rank) && std::ranges::find(f->false_alarms, rank) == f->false_alarms.end())
        f->false_alarms.push_back(rank);
    if (!w.left()) continue;
    left.push_back(&w);
    for (const auto& [rank, when] : w.knew) dead.insert(rank);
    if (w.epoch > 1) resumed = std::max(resumed, w.resumed);
  }
  f->survivors = Rank(left.size());
  f->completed = !hangs && !failed && !left.empty();
  f->dead.assign(dead.begin(), dead.end());
  const Nanos begun = judge_knowledge(left, hangs, hurts, f);
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
