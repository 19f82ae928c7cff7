// What came of real ranks, in the words of the simulated ones (sim/protocol/verdict.cpp), and what differs from them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/real/job.hpp"

namespace gccl::real {
namespace {

std::vector<std::string> differences(const sim::Outcome& there, const sim::Outcome& here) {
  std::vector<std::string> all;
  const sim::FaultOutcome &a = *there.faults, &b = *here.faults;
  const auto compare = [&](const char* what, const auto& simulated, const auto& found) {
    if (simulated != found) all.push_back(fmt::format("{}: simulated {}, here {}", what, simulated, found));
  };
  compare("dead", a.dead, b.dead);
  compare("completed", a.completed, b.completed);
  compare("survivors", a.survivors, b.survivors);
  compare("out", a.out, b.out);
  compare("wrong elements", there.wrong, here.wrong);
  compare("lost operations", a.lost, b.lost);
  compare("doubled operations", a.doubled, b.doubled);
  return all;
}

}  // namespace

std::string Job::waits() const {
  for (Rank r = 0; r < ranks(); ++r) {
    const RankState& s = state_[r];
    if (s.alive && !s.ended)
      return fmt::format("rank {} hangs in epoch {}, operation {}{}{}", r, std::max(1u, s.epoch), s.operation,
                         s.text.empty() ? "" : ", after: ", s.text);
  }
  return "";
}

sim::Outcome Job::verdict() const {
  sim::Outcome out;
  sim::FaultOutcome& f = out.faults.emplace();
  const auto virtual_time = [&](Nanos t) { return Nanos(double(t) / stretch_); };
  std::vector<const RankState*> left;
  bool failed = false;
  for (const RankState& s : state_) {
    if (!s.ended) continue;
    const bool is_out = *s.ended == Report::How::out;
    failed = failed || *s.ended == Report::How::failed || *s.ended == Report::How::broken;
    if (is_out)
      ++f.out;
    else if (*s.ended != Report::How::broken)
      left.push_back(&s);
  }
  if (hangs_) f.waits = waits();
  f.survivors = Rank(left.size());
  f.completed = !hangs_ && !failed && !left.empty();

  std::set<Rank> dead;
  for (const RankState* s : left)
    for (const auto& [rank, when] : s->knew) dead.insert(rank);
  f.dead.assign(dead.begin(), dead.end());
  f.violations = violations_;
  for (const RankState* s : left)
    for (const Rank d : dead)
      if (!s->knew.contains(d) && !hangs_)
        f.violations.push_back(fmt::format("rank {} was never told that rank {} has failed", s - state_.data(), d));
  for (const RankState& s : state_)
    for (const auto& [rank, when] : s.knew)
      if (!failed_at_.contains(rank) &&
          std::find(f.false_alarms.begin(), f.false_alarms.end(), rank) == f.false_alarms.end())
        f.false_alarms.push_back(rank);
  const auto happened = [&](Nanos at, sim::FaultEvent e) {
    e.at = std::max<Nanos>(0, virtual_time(at - began_));
    f.events.push_back(e);
  };
  for (const sim::FaultEvent& e : events_) happened(e.at, e);
  Nanos begun = -1, resumed = -1;
  for (const Rank d : dead) {
    const auto since = failed_at_.find(d);
    if (since == failed_at_.end()) continue;
    begun = begun < 0 ? since->second : std::min(begun, since->second);
    Nanos first = -1, last = -1;
    for (const RankState* s : left) {
      const auto knew = s->knew.find(d);
      if (knew == s->knew.end() || knew->second < since->second) continue;
      first = first < 0 ? knew->second : std::min(first, knew->second);
      last = std::max(last, knew->second);
    }
    if (first < 0) continue;
    happened(first, {.what = sim::FaultEvent::What::first_told, .rank = d});
    happened(last, {.what = sim::FaultEvent::What::all_told, .rank = d});
    f.detection_first = std::max(f.detection_first, virtual_time(first - since->second));
    f.detection = std::max(f.detection, virtual_time(last - since->second));
  }
  for (const RankState* s : left) {
    f.epochs = std::max(f.epochs, s->epoch);
    if (s->epoch > 1) resumed = std::max(resumed, s->resumed);
  }
  if (begun >= 0 && resumed >= 0 && f.completed) f.recovery = virtual_time(resumed - begun);
  if (resumed >= 0) happened(resumed, {.what = sim::FaultEvent::What::work, .ranks = f.survivors, .epoch = f.epochs});
  std::ranges::stable_sort(f.events, {}, &sim::FaultEvent::at);

  const std::size_t all = workload_.operations.size();
  for (std::size_t o = 0; o < all; ++o) {
    std::set<std::uint32_t> epochs;
    for (const RankState* s : left) {
      if (s->ended != Report::How::finished) continue;
      if (s->done_in[o] > 0)
        epochs.insert(s->done_in[o]);
      else
        ++f.lost;
    }
    if (epochs.size() > 1) ++f.doubled;
    Times t;
    if (!epochs.empty())
      if (const auto found = executions_.find({*epochs.rbegin(), o}); found != executions_.end()) t = found->second;
    out.begin_ns.push_back(std::max<Nanos>(0, virtual_time(t.begin - began_)));
    out.end_ns.push_back(std::max<Nanos>(0, virtual_time(t.end - began_)));
  }
  if (f.lost + f.doubled > 0 && !hangs_)
    f.violations.push_back(
        fmt::format("{} operations are lost, {} have different results on different ranks", f.lost, f.doubled));
  out.time_ns = f.completed && !out.end_ns.empty() ? *std::max_element(out.end_ns.begin(), out.end_ns.end())
                                                   : virtual_time(ended_ - began_);
  out.wrong = wrong_;
  out.first_wrong = first_wrong_;
  f.stretch = stretch_;
  f.differs = differences(simulated_, out);
  return out;
}

}  // namespace gccl::real
