// What faults do to real ranks, their machines and the wires between them.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "cli/real/job.hpp"
#include "sim/fault/effects.hpp"

namespace gccl::real {
namespace {

constexpr double kCableBytesPerNs = 0.1;  // what a cable carries of which a fault leaves a part

}  // namespace

// By from * machines + to: whether the way leads over what the fault names, as it would then be cut if that were down.
std::vector<bool> Job::ways_over(const sim::Fault& f) const {
  sim::ClusterWires probe(*workload_.cluster);
  sim::Fault down = f;
  down.kind = f.link.find("->") == std::string::npos ? sim::FaultKind::nic_down : sim::FaultKind::link_down;
  probe.apply(down, true);
  std::vector<bool> over(passages_.size());
  for (Rank a = 0; a < machines(); ++a)
    for (Rank b = 0; b < machines(); ++b)
      if (a != b) over[a * machines() + b] = probe.down(cards_[a], cards_[b]);
  return over;
}

void Job::crash(Rank r, Nanos when) {
  RankState& s = state_[r];
  if (waits_as_spare(r)) {
    if (spares_.lose(r)) replace(r, when);
    return;
  }
  if (!s.alive) return;
  if (s.pid > 0) kill(s.pid, SIGKILL);
  s.alive = false;
  hurts_.crashed(r, when);
  replace(r, when);
}

// As the launcher of the simulation does, that notices at once.
void Job::replace(Rank r, Nanos when) {
  const Nanos due = when + real(plan_.recovery.replace_after);
  if (plan_.recovery.policy == sim::FailurePolicy::rejoin) {
    later(due, [this, r] { start_anew(r); });
  } else if (plan_.recovery.policy == sim::FailurePolicy::spare) {
    if (const auto spare = spares_.take())
      later(due, [this, spare = *spare] {
        if (spares_.lost(spare)) return;
        state_[spare].joins = true;
        start(spare);
      });
  }
}

void Job::start_anew(Rank r) {
  RankState& s = state_[r];
  if (s.alive || ended_ != 0) return;
  if (s.pid > 0)
    while (waitpid(s.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  heed_all();  // what the one before had to say
  shared_->heeded[r] = 0;
  s.pid = -1;
  buried_.emplace_back(r, std::move(s));
  s = {};
  s.done_in.assign(workload_.operations.size(), 0);
  s.joins = true;
  if (lost_with_node_.erase(r) > 0) wires_changed();
  hurts_.started(r, now_ns());
  start(r);
}

void Job::begin_fault(std::size_t i, Nanos when) {
  using sim::FaultKind;
  const sim::Fault& f = plan_.faults[i];
  if (over_[i] || active_[i]) return;
  active_[i] = true;
  const auto alive = [&](Rank r) { return state_[r].alive || (ends_processes(f) && waits_as_spare(r)); };
  const std::vector<Rank> hit = hit_as_simulated(i, plan_, cards_, *workload_.cluster, simulated_);
  const bool needs_somebody = ends_processes(f) || f.kind == FaultKind::pause;
  if (!needs_somebody || std::ranges::any_of(hit, alive))
    events_.push_back({.at = when, .what = sim::FaultEvent::What::begins, .fault = i});
  const bool for_long = may_look_like_failure(f, plan_.recovery.detection);
  const Nanos lasts = lasting(i), until = f.lasts > 0 ? when + lasts : sim::Hurts::kForGood;
  switch (f.kind) {
    case FaultKind::node_loss:
      if (network_) {  // its machine falls silent before anybody could say that its processes have ended
        for (const Rank r : hit) lost_with_node_.insert(r);
        wires_changed();
      }
      [[fallthrough]];
    case FaultKind::rank_crash:
    case FaultKind::card_loss:
      for (const Rank r : hit) crash(r, when);
      hurt_unreachable(when, until);
      return;
    case FaultKind::pause:
      for (const Rank r : hit) {
        if (!state_[r].alive || state_[r].pid <= 0) continue;
        if (for_long) hurts_.hurt(r, when, until);
        kill(state_[r].pid, SIGSTOP);
        if (state_[r].stopped_by.empty()) state_[r].stopped_at = when;
        state_[r].stopped_by.insert(i);
      }
      break;
    case FaultKind::straggler:
      for (const Rank r : f.ranks) shared_->slowdown[r] = sim::slowdown_by(plan_.faults, active_, r);
      break;
    case FaultKind::late_start: return;
    case FaultKind::partition:
      if (for_long) hurts_.parted(f.ranks, machines(), when, until);
      wires_changed();
      break;
    default:
      wires_.apply(f, true);
      if (for_long && cuts_links(f))
        for (const Rank r : wires_.cut_off(cards_)) hurts_.hurt(r, when, until);
      if (for_long && f.kind == FaultKind::link_down) cuts_until_ = std::max(cuts_until_, until);
      wires_changed();
  }
  if (for_long) hurt_unreachable(when, until);
  for (const Strike& s : strikes_)
    if (s.stop == i) later(when + s.delay, [this, fault = s.fault] { begin_fault(fault, now_ns()); });
  if (lasts > 0) later(when + lasts, [this, i] { end_fault(i); });
}

// Ranks come to a fault's moment later than simulated ones where a recovery took them longer. What the healing ends has
// lasted for a while on the simulated ranks, and lasts as long on these.
Nanos Job::lasting(std::size_t fault) const {
  const Nanos stated = plan_.faults[fault].lasts, heal = plan_.recovery.heal;
  const sim::FaultEvent* const began = heal > 0 ? sim::begin_of(simulated_.faults->events, fault) : nullptr;
  if (!began || ends_processes(plan_.faults[fault])) return real(stated);
  const Nanos left = std::max<Nanos>(1, heal - began->at);
  return real(stated > 0 ? std::min(stated, left) : left);
}

// What struck nobody in the simulation ends. The others end when they have lasted as long as there, and what has not
// begun by now in the simulation has no strike.
void Job::heal() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (!sim::begin_of(simulated_.faults->events, i)) end_fault(i);
}

// By links that are down, where other ranks help no more.
void Job::hurt_unreachable(Nanos when, Nanos until) {
  if (cuts_until_ <= when) return;
  std::vector<Rank> run;
  for (Rank r = 0; r < machines(); ++r)
    if (state_[r].alive && state_[r].stopped_by.empty()) run.push_back(r);
  const auto cut = [this](Rank from, Rank to) { return passages_[from * machines() + to].cut; };
  hurts_.cut(run, cut, plan_.recovery.helpers, when, std::min(until, cuts_until_));
}

void Job::end_fault(std::size_t i) {
  using sim::FaultKind;
  const sim::Fault& f = plan_.faults[i];
  if (!active_[i] || over_[i]) return;
  over_[i] = true;
  active_[i] = false;
  if (!ends_processes(f) && sim::begin_of(events_, i))
    events_.push_back({.at = now_ns(), .what = sim::FaultEvent::What::ends, .fault = i});
  switch (f.kind) {
    case FaultKind::pause:
      for (const Rank r : f.ranks) resume(r, i);
      return;
    case FaultKind::straggler:
      for (const Rank r : f.ranks) shared_->slowdown[r] = sim::slowdown_by(plan_.faults, active_, r);
      return;
    case FaultKind::rank_crash:
    case FaultKind::node_loss:
    case FaultKind::card_loss:
    case FaultKind::late_start: return;
    default: wires_.apply(f, false); wires_changed();
  }
}

// When the last of the faults ends that have stopped it.
void Job::resume(Rank r, std::size_t fault) {
  RankState& s = state_[r];
  if (!s.stopped_by.contains(fault) || s.pid <= 0) return;
  if (s.stopped_by.size() > 1) return void(s.stopped_by.erase(fault));
  s.stopped_by.clear();
  shared_->stood[r] += now_ns() - s.stopped_at;
  kill(s.pid, SIGCONT);
}

void Job::wires_changed() {
  for (Rank a = 0; a < machines(); ++a)
    for (Rank b = 0; b < machines(); ++b)
      if (a != b) passages_[a * machines() + b] = passage(a, b);
}

Passage Job::passage(Rank from, Rank to) const {
  using sim::FaultKind;
  Passage p;
  double left = 1;  // of the bandwidth
  const bool connections = plan_.recovery.connections;
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const sim::Fault& f = plan_.faults[i];
    if (!active_[i]) continue;
    if (f.kind == FaultKind::link_degraded) {
      if (!slowed_.at(i)[from * machines() + to]) continue;
      p.latency += real(f.latency);
      left = std::max(sim::kBandwidthLeast, left * f.amount);
      continue;
    }
    if (!f.link.empty() || !concerns(f, from, to)) continue;
    switch (f.kind) {
      case FaultKind::loss: sim::add_chance(&p.loss, f.amount); break;
      case FaultKind::duplication: sim::add_chance(&p.duplication, connections ? 0 : f.amount); break;
      case FaultKind::reordering: sim::add_chance(&p.reordering, connections ? 0 : f.amount); break;
      case FaultKind::corruption: sim::add_chance(&p.corruption, f.amount); break;
      case FaultKind::agreement_loss: sim::add_chance(&p.agreement_loss, f.amount); break;
      case FaultKind::link_down:
      case FaultKind::partition: p.cut = true; break;
      default: break;
    }
  }
  if (left < 1) p.bytes_per_ns = kCableBytesPerNs * left;
  p.resets = p.past_checksums = connections;
  auto& wires = const_cast<sim::ClusterWires&>(wires_);  // finds routes when they are first asked for
  p.cut =
      p.cut || wires.down(cards_[from], cards_[to]) || lost_with_node_.contains(from) || lost_with_node_.contains(to);
  return p;
}

}  // namespace gccl::real
