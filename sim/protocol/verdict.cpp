// What came of a run: who is left, who was called dead and when, whether every operation has one result.
#include <fmt/format.h>

#include <algorithm>

#include "sim/protocol/ranks.hpp"

namespace gccl::sim {
namespace {

double median(std::vector<Nanos> of) {
  std::nth_element(of.begin(), of.begin() + std::ptrdiff_t(of.size() / 2), of.end());
  return double(of[of.size() / 2]);
}

// Operations a second, in parts of those before: by medians, since what a fault has delayed may end after it.
double relative_rate(const std::vector<Nanos>& before, const std::vector<Nanos>& after) {
  if (before.empty() || after.empty()) return -1;
  const double then = median(after);
  return then > 0 ? median(before) / then : -1;
}

}  // namespace

// Of those that hang, first one that carries out an operation: the others wait for it.
std::string ProtocolRanks::waits() const {
  static constexpr const char* kDoing[] = {"waits to join",
                                           "meets the others in the new epoch",
                                           "works",
                                           "agrees with the others",
                                           "changes the members",
                                           "",
                                           ""};
  std::vector<const Process*> hang;
  for (Rank r = 0; r < machines(); ++r) {
    const Process* p = process_[r].get();
    if (!p || !p->alive || p->doing == Doing::finished || p->doing == Doing::failed) continue;
    if (p->id.life == 0 || p->doing != Doing::joining) hang.push_back(p);
  }
  std::stable_partition(hang.begin(), hang.end(), [](const Process* p) { return p->doing != Doing::agreeing; });
  for (const Process* p : hang) {
    const Rank r = p->id.rank;
    std::string text = fmt::format("rank {} {} (epoch {})", r, kDoing[std::size_t(p->doing)], p->epoch);
    if (p->operation) text += fmt::format(" on operation {}, and waits for {}", p->next, p->operation->waits());
    if (const fault::RankSet awaited = p->member->membership().awaited(); !awaited.empty())
      text += fmt::format(", and waits for rank {}", awaited.first());
    return text;
  }
  return "";
}

void ProtocolRanks::judge(Outcome* out) {
  FaultOutcome& f = out->faults.emplace();
  const std::size_t all = workload_.operations.size();
  std::vector<const Process*> left;
  bool hang = false, failed = false;
  for (Rank r = 0; r < machines(); ++r) {
    const Process* p = process_[r].get();
    if (!p || !p->alive) continue;
    if (p->doing == Doing::finished) {
      left.push_back(p);
    } else if (p->doing == Doing::failed) {
      failed = failed || !p->out;
      if (p->out)
        ++f.out;
      else
        left.push_back(p);
    } else if (p->id.life == 0 || p->doing != Doing::joining) {
      hang = true;
    }
  }
  if (hang) f.waits = waits();
  f.survivors = Rank(left.size());
  f.completed = !hang && !failed && !left.empty();

  // Who is dead, and since when that is known.
  std::set<Rank> dead;
  for (const Process* p : left)
    for (const auto& [rank, when] : p->knew) dead.insert(rank);
  f.dead.assign(dead.begin(), dead.end());
  for (const Process* p : left)
    for (const Rank d : dead)
      if (!p->knew.contains(d) && p->id.life == 0 && p->epoch == left.front()->epoch && !hang)
        f.violations.push_back(fmt::format("rank {} was never told that rank {} has failed", p->id.rank, d));
  for (const auto* group : {&process_, &buried_})
    for (const auto& p : *group) {
      if (!p) continue;
      for (const auto& [rank, when] : p->knew)
        if (!failed_at_.contains(rank) &&
            std::find(f.false_alarms.begin(), f.false_alarms.end(), rank) == f.false_alarms.end())
          f.false_alarms.push_back(rank);
    }
  for (const Rank d : dead) {
    const auto since = failed_at_.find(d);
    if (since == failed_at_.end()) continue;
    Nanos first = -1, last = -1;
    for (const Process* p : left) {
      const auto knew = p->knew.find(d);
      if (knew == p->knew.end() || knew->second < since->second) continue;
      const Nanos after = knew->second - since->second;
      first = first < 0 ? after : std::min(first, after);
      last = std::max(last, after);
    }
    f.detection_first = std::max(f.detection_first, first);
    f.detection = std::max(f.detection, last);
    const auto told = [&](FaultEvent::What what, Nanos after) {
      if (after >= 0) events_.push_back({.at = since->second + after, .what = what, .rank = d, .ranks = f.survivors});
    };
    told(FaultEvent::What::first_told, first);
    told(FaultEvent::What::all_told, last);
  }
  Nanos begun = -1, resumed = -1;
  for (const Rank d : dead)
    if (failed_at_.contains(d)) begun = begun < 0 ? failed_at_[d] : std::min(begun, failed_at_[d]);
  for (const Process* p : left)
    if (p->epoch > 1) resumed = std::max(resumed, p->resumed);
  if (begun >= 0 && resumed >= 0 && f.completed) f.recovery = resumed - begun;

  // Each operation once, on all that are left in the same epoch.
  for (std::size_t o = 0; o < all; ++o) {
    std::set<fault::Epoch> epochs;
    for (const Process* p : left) {
      if (p->doing != Doing::finished) continue;
      if (p->done_in[o] > 0)
        epochs.insert(p->done_in[o]);
      else if (p->id.life == 0)
        ++f.lost;
    }
    if (epochs.size() > 1) ++f.doubled;
  }
  if (f.lost + f.doubled > 0 && !hang)
    f.violations.push_back(
        fmt::format("{} operations are lost, {} have different results on different ranks", f.lost, f.doubled));
  f.violations.insert(f.violations.end(), violations_.begin(), violations_.end());

  // Times.
  std::vector<Nanos> before, after;
  for (const Process* p : left)
    for (std::size_t o = 0; o < all; ++o)
      if (p->done_in[o] > 0) operations_[o] = executions_[{p->done_in[o], o}];
  for (const auto& [key, t] : executions_) {
    if (t.end < 0) continue;
    if (first_fault_ < 0 || t.end <= first_fault_) before.push_back(t.end - t.begin);
    if (first_fault_ >= 0 && t.begin >= std::max(last_fault_, resumed)) after.push_back(t.end - t.begin);
  }
  f.throughput_after = relative_rate(before, after);
  for (const Times& t : operations_) {
    out->begin_ns.push_back(std::max<Nanos>(0, t.begin));
    out->end_ns.push_back(std::max<Nanos>(0, t.end));
  }
  out->time_ns = out->end_ns.empty() ? 0 : *std::max_element(out->end_ns.begin(), out->end_ns.end());
  if (!f.completed) out->time_ns = now();
  out->messages = messages_;
  out->bytes = bytes_;
  for (const auto& [epoch, world] : worlds_) {
    if (!world->payload->wrong()) continue;
    if (out->wrong == 0) out->first_wrong = fmt::format("epoch {}: {}", epoch, world->payload->first_wrong());
    out->wrong += world->payload->wrong();
  }
  f.epochs = worlds_.empty() ? 0 : worlds_.rbegin()->first;
  const auto counters = links_.counters();
  f.frames = counters.sent;
  f.repeated = counters.repeated;
  f.duplicates = counters.duplicates;
  f.damaged = counters.damaged;
  f.reconnects = counters.reconnects;
  f.trace = splitmix::mix(trace_ ^ links_.trace());
  for (const auto& [epoch, event] : at_work_)
    if (epoch > 1) events_.push_back(event);
  std::stable_sort(events_.begin(), events_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  f.events = std::move(events_);
}

}  // namespace gccl::sim
