// Faults begin and end.
#include <algorithm>

#include "sim/fault/effects.hpp"
#include "sim/fault/timeline.hpp"
#include "sim/protocol/ranks.hpp"

namespace gccl::sim {
namespace {

constexpr std::uint8_t kAgreementPacket = std::uint8_t(fault::MembershipMessage::Kind::agreement);

}  // namespace

void ProtocolRanks::plan_first_faults() {
  active_.assign(plan_.faults.size(), false);
  over_.assign(plan_.faults.size(), false);
  for (std::size_t i = 0; i < plan_.faults.size(); ++i)
    if (begins_before_start(plan_.faults[i])) time_.at(0, [this, i] { begin_fault(i); });
}

void ProtocolRanks::plan_faults() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& f = plan_.faults[i];
    if (f.kind == FaultKind::late_start) {  // silent until then
      if (may_look_like_failure(f, settings_.detector.detection))
        for (const Rank r : f.ranks) hurts_.hurt(r, now(), f.at);
      time_.at(f.at, [this, i] { happened(FaultEvent::What::begins, i); });
    } else if (!f.after && !begins_before_start(f)) {
      time_.at(f.at, [this, i] { begin_fault(i); });
    }
  }
  if (plan_.recovery.heal > 0) time_.at(plan_.recovery.heal, [this] { heal(); });
}

void ProtocolRanks::begin_fault(std::size_t i) {
  const Fault& f = plan_.faults[i];
  if (over_[i] || active_[i]) return;
  active_[i] = true;
  if (first_fault_ < 0) first_fault_ = now();
  last_fault_ = std::max(last_fault_, now() + f.lasts);
  mix(0xfa00 + i);
  const bool for_long = may_look_like_failure(f, settings_.detector.detection);
  const Nanos until = f.lasts > 0 ? now() + f.lasts : Hurts::kForGood;
  if (ends_processes(f)) {
    bool any = false;
    for (const Rank r : hit_by(f, cards_, *workload_.cluster)) any = crash(r) || any;
    if (any) happened(FaultEvent::What::begins, i);
    hurt_unreachable(until);
    return;
  }
  const auto lives = [&](Rank r) { return at(r) && at(r)->alive; };
  if (f.kind != FaultKind::pause || std::ranges::any_of(f.ranks, lives)) happened(FaultEvent::What::begins, i);
  switch (f.kind) {
    case FaultKind::pause:
      for (const Rank r : f.ranks) {
        if (for_long && lives(r)) hurts_.hurt(r, now(), until);
        stop(r, i);
      }
      break;
    case FaultKind::straggler: set_slowdowns(f); break;
    case FaultKind::partition:
      if (for_long) hurts_.parted(f.ranks, machines(), now(), until);
      wires_changed();
      break;
    default:
      wires_.apply(f, true, plan_.recovery.heal > now() ? std::min(until, plan_.recovery.heal) : until);
      if (for_long && cuts_links(f))
        for (const Rank r : wires_.cut_off(cards_)) hurts_.hurt(r, now(), until);
      if (for_long && f.kind == FaultKind::link_down) cuts_until_ = std::max(cuts_until_, until);
      wires_changed();
  }
  if (for_long) hurt_unreachable(until);
  if (f.lasts > 0) time_.after(f.lasts, [this, i] { end_fault(i); });
}

void ProtocolRanks::end_fault(std::size_t i) {
  const Fault& f = plan_.faults[i];
  if (!active_[i] || over_[i]) return;
  over_[i] = true;
  active_[i] = false;
  mix(0xfe00 + i);
  if (!ends_processes(f) && begin_of(events_, i)) happened(FaultEvent::What::ends, i);
  switch (f.kind) {
    case FaultKind::pause:
      for (const Rank r : f.ranks) go_on(r, i);
      return;
    case FaultKind::straggler: set_slowdowns(f); return;
    case FaultKind::rank_crash:
    case FaultKind::node_loss:
    case FaultKind::card_loss:
    case FaultKind::late_start: return;
    default: wires_.apply(f, false); wires_changed();
  }
}

// What can end ends, and what has not begun does not begin.
void ProtocolRanks::heal() {
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    end_fault(i);
    over_[i] = true;
  }
}

void ProtocolRanks::set_slowdowns(const Fault& changed) {
  for (const Rank r : changed.ranks) {
    slowdown_[r] = slowdown_by(plan_.faults, active_, r);
    for (const Straggler& stated : workload_.stragglers)
      if (stated.rank == r) slowdown_[r] *= stated.slowdown;
  }
}

// By links that are down, where other ranks help no more.
void ProtocolRanks::hurt_unreachable(Nanos until) {
  if (cuts_until_ <= now()) return;
  std::vector<Rank> run;
  for (Rank r = 0; r < machines(); ++r)
    if (at(r) && at(r)->alive && !at(r)->paused()) run.push_back(r);
  const auto cut = [this](Rank from, Rank to) {
    WireFaults faults;
    faults_between(from, to, &faults);
    return faults.cut;
  };
  hurts_.cut(run, cut, settings_.detector.helpers, now(), std::min(until, cuts_until_));
}

bool ProtocolRanks::crash(Rank r) {
  Process* p = r < machines() ? at(r) : nullptr;
  if (!p && r >= ranks_ && r < machines()) return lose_spare(r);
  if (!p || !p->alive) return false;
  mix(0xc0 + r);
  p->alive = false;
  hurts_.crashed(r, now());
  if (p->operation) {
    p->operation->give_up();
    given_up_.push_back(std::move(p->operation));
  }
  links_.end(p->id);
  for (const auto& other : process_)
    if (other && other->alive) report_end(*p, *other);
  replace(r);
  return true;
}

// One that waits, or is about to take a rank's place: then the next one does.
bool ProtocolRanks::lose_spare(Rank r) {
  if (spares_.lost(r)) return false;
  mix(0xc0 + r);
  if (spares_.lose(r)) replace(r);
  return true;
}

// The system reports to a process of the same node that another one has ended. One that is stopped hears it later.
void ProtocolRanks::report_end(const Process& ended, const Process& to) {
  const auto node_of = [this](const Process& p) { return workload_.cluster->node_of(cards_[p.id.rank]); };
  const RecoverySettings& s = plan_.recovery;
  if (!s.system_reports || (node_of(ended) != node_of(to) && !s.one_system)) return;
  own_work(to, s.report_after, [this, ended = ended.id, to = to.id.rank] {
    Process& p = *at(to);
    if (p.out) return;
    p.member->gone(now(), ended.rank, ended.life);
    after_event(p);
  });
}

// The launcher notices, and starts another process.
void ProtocolRanks::replace(Rank r) {
  const RecoverySettings& s = plan_.recovery;
  if (s.policy == FailurePolicy::rejoin) {
    const std::uint64_t life = at(r)->id.life + 1;
    time_.after(s.replace_after, [this, r, life] {
      if (!at(r)->alive && at(r)->id.life + 1 == life) start(r, life);
    });
  } else if (s.policy == FailurePolicy::spare) {
    if (const auto spare = spares_.take())
      time_.after(s.replace_after, [this, spare = *spare] {
        if (!spares_.lost(spare)) start(spare, 1);
      });
  }
}

void ProtocolRanks::stop(Rank r, std::size_t fault) {
  Process* p = at(r);
  if (!p || !p->alive) return;
  const bool runs = !p->paused();
  p->stopped_by.insert(fault);
  if (!runs) return;
  p->stopped_at = now();
  links_.hold(p->id, true);
}

// It goes on when the last of the faults that have stopped it ends.
void ProtocolRanks::go_on(Rank r, std::size_t fault) {
  Process* p = at(r);
  if (!p || !p->alive || p->stopped_by.erase(fault) == 0 || p->paused()) return;
  p->stood += now() - p->stopped_at;
  links_.hold(p->id, false);
  if (p->timer >= 0 && p->timer <= now()) wake(*p);  // late, and before it has read anything
  for (const auto& [from, bytes] : std::exchange(p->kept, {}))
    if (p->alive) packet(from, r, bytes);
  for (auto& [due, what] : std::exchange(p->left, {}))
    if (p->alive) own_work(*p, due - p->own_time(now()), std::move(what));
}

// After so much time of the process's own, which stands still while it is stopped.
void ProtocolRanks::own_work(const Process& p, Nanos delay, std::function<void()> what) {
  last_advance_ = std::max(last_advance_, now() + delay);
  time_.after(delay, [this, id = p.id, due = p.own_time(now()) + delay, what = std::move(what)]() mutable {
    Process& q = *at(id.rank);
    if (q.id != id || !q.alive) return;
    if (q.paused()) return void(q.left.emplace_back(due, std::move(what)));
    if (const Nanos left = due - q.own_time(now()); left > 0) return own_work(q, left, std::move(what));
    what();
  });
}

// Moments that some fault waits for.
void ProtocolRanks::note(Process& p, FaultMoment::What what, std::uint64_t amount) {
  std::uint64_t& count = p.count[std::size_t(what)];
  const std::uint64_t before = std::exchange(count, count + amount);
  if (p.id.life > 0 && p.id.rank < ranks_) return;  // of the first process of a rank
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& f = plan_.faults[i];
    if (!f.after || f.after->rank != p.id.rank || f.after->what != what) continue;
    if (before >= f.after->count || count < f.after->count) continue;
    time_.after(f.at, [this, i] { begin_fault(i); });
  }
}

void ProtocolRanks::faults_between(Rank from, Rank to, WireFaults* w) {
  *w = {};
  for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
    const Fault& f = plan_.faults[i];
    if (!active_[i] || !f.link.empty() || !concerns(f, from, to)) continue;
    switch (f.kind) {
      case FaultKind::loss: add_chance(&w->loss, f.amount); break;
      case FaultKind::duplication: add_chance(&w->duplication, f.amount); break;
      case FaultKind::reordering: add_chance(&w->reordering, f.amount); break;
      case FaultKind::corruption: add_chance(&w->corruption, f.amount); break;
      case FaultKind::link_down:
      case FaultKind::partition: w->cut = true; break;
      default: break;
    }
  }
  w->cut = w->cut || wires_.down(cards_[from], cards_[to]);
}

// Datagrams of the detector and of agreements end in an HMAC: a damaged one is lost.
void ProtocolRanks::faults_of_packets(Rank from, Rank to, WireFaults* w) {
  faults_between(from, to, w);
  add_chance(&w->loss, std::exchange(w->corruption, 0));
}

void ProtocolRanks::wires_changed() {
  for (auto& [pair, wire] : member_wires_) {
    faults_of_packets(pair.first, pair.second, &wire->faults[0]);
    faults_of_packets(pair.second, pair.first, &wire->faults[1]);
  }
  links_.faults_changed();
}

void ProtocolRanks::transmit(Process& p, Rank to, std::span<const std::byte> bytes) {
  if (!p.alive || p.out) return;
  if (std::uint8_t(bytes[0]) == kAgreementPacket)
    for (std::size_t i = 0; i < plan_.faults.size(); ++i)
      if (const Fault& f = plan_.faults[i];
          active_[i] && f.kind == FaultKind::agreement_loss && concerns(f, p.id.rank, to) && chance_.with(f.amount))
        return;
  wire(p.id.rank, to).write(p.id.rank < to ? 0 : 1, bytes, {});
}

}  // namespace gccl::sim
