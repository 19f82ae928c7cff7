#include "sim/protocol/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "sim/engine/time.hpp"
#include "sim/fault/effects.hpp"
#include "sim/fault/timeline.hpp"

namespace gccl::sim {
namespace {

using fault::Epoch;
using fault::Membership;
using fault::RankSet;

constexpr std::uint64_t kAwaitsReplacement = std::uint64_t(1) << 63;  // of an agreement's flags
std::uint64_t done_flags(std::size_t operations) { return (std::uint64_t(1) << operations) - 1; }

}  // namespace

ProtocolRanks::ProtocolRanks(const Workload& w)
    : workload_(w),
      plan_(*w.faults),
      ranks_(Rank(w.cards.size())),
      wires_(*w.cluster),
      cards_(with_spares(w.cards, plan_.recovery.spares, *w.cluster)),
      process_(machines()),
      links_(&time_, &wires_, plan_.recovery, this, w.seed),
      chance_(w.seed ^ 0x6167'7265'656d'656e),
      spares_(ranks_, plan_.recovery.spares),
      operations_(w.operations.size()) {
  const RecoverySettings& s = plan_.recovery;
  settings_.detector = {.detection = s.detection, .helpers = s.helpers};
  settings_.membership = {.retry = std::min<Nanos>(20'000'000, s.detection / 10), .quorum_timeout = s.detection};
  slowdown_.assign(machines(), 1);
  furthest_.resize(machines());
  for (const Straggler& straggler : w.stragglers) slowdown_[straggler.rank] = straggler.slowdown;
  links_.faults = [this](Rank from, Rank to, WireFaults* f) { faults_between(from, to, f); };
  plan_first_faults();
  for (Rank r = 0; r < ranks_; ++r) {
    links_.place({r, 0}, cards_[r]);
    Nanos begins = late_by(plan_.faults, r);
    for (const Straggler& straggler : w.stragglers)
      if (straggler.rank == r) begins = std::max(begins, straggler.start_ns);
    time_.at(begins, [this, r] { start(r, 0); });
  }
  plan_faults();
}

// ---- Machines ----

void ProtocolRanks::start(Rank r, std::uint64_t life) {
  if (process_[r]) buried_.push_back(std::move(process_[r]));
  process_[r] = std::make_unique<Process>();
  Process& p = *process_[r];
  p.id = {r, life};
  p.done_in.assign(workload_.operations.size(), 0);
  links_.place(p.id, cards_[r]);
  hurts_.started(r, now());
  const std::uint64_t seed = splitmix::hash(workload_.seed ^ (std::uint64_t(r) << 32) ^ life);
  const RankSet first = RankSet::below(ranks_);
  p.member = life == 0 ? std::make_unique<fault::Member>(now(), settings_, r, first, seed)
                       : std::make_unique<fault::Member>(now(), settings_, r, life, first, seed);
  for (const auto& other : process_)
    if (other && !other->alive) report_end(*other, p);
  after_event(p);
}

DatagramWire& ProtocolRanks::wire(Rank x, Rank y) {
  const Rank a = std::min(x, y), b = std::max(x, y);
  auto& wire = member_wires_[{a, b}];
  if (wire) return *wire;
  wire = std::make_unique<DatagramWire>(&time_, splitmix::hash(workload_.seed * 131071 + a * 1021 + b));
  wire->passage = [this, a, b](unsigned side, std::size_t bytes) {
    return wires_.passage(cards_[side == 0 ? a : b], cards_[side == 0 ? b : a], bytes, now());
  };
  for (const unsigned side : {0u, 1u}) {
    auto& end = member_ends_.emplace_back(std::make_unique<MemberEnd>());
    end->owner = this;
    end->from = side == 0 ? b : a;
    end->to = side == 0 ? a : b;
    wire->attach(side, end.get());
    faults_of_packets(end->to, end->from, &wire->faults[side]);
  }
  return *wire;
}

void ProtocolRanks::packet(Rank from, Rank to, std::span<const std::byte> bytes) {
  Process* p = at(to);
  if (!p || !p->alive) return;
  if (p->paused()) return void(p->kept.emplace_back(from, std::vector<std::byte>(bytes.begin(), bytes.end())));
  mix(std::uint64_t(now()) ^ std::uint64_t(from) << 48 ^ std::uint64_t(to) << 40 ^ bytes.size());
  p->member->received(now(), from, bytes);
  after_event(*p);
}

void ProtocolRanks::wake(Process& p) {
  p.timer = -1;
  if (!p.alive || p.paused()) return;
  if (now() >= p.member->deadline()) p.member->time_passed(now());
  after_event(p);
}

void ProtocolRanks::set_timer(Process& p) {
  const Nanos due = p.member->deadline();
  if (due == fault::kNever || (p.timer >= 0 && p.timer <= due)) return;
  p.timer = std::max(due, now());
  time_.at(p.timer, [this, id = p.id, when = p.timer] {
    Process* q = at(id.rank);
    if (q && q->id == id && !q->paused() && q->timer == when) wake(*q);
  });
}

void ProtocolRanks::after_event(Process& p) {
  if (!p.alive) return;
  if (!p.out)
    for (const Rank f : p.member->membership().failures().failed)
      if (p.knew.try_emplace(f, now()).second) mix(std::uint64_t(now()) + f);
  step(p);
  for (const fault::Packet& packet : p.member->take_packets())
    if (packet.to < machines() && packet.to != p.id.rank) transmit(p, packet.to, packet.bytes);
  set_timer(p);
}

void ProtocolRanks::message(const ProcessId& self, const ProcessId& from, std::uint32_t channel, DataMessage m) {
  Process* p = at(self.rank);
  if (!p->alive || p->id != self) return;
  mix(m.signature ^ m.bytes.size() << 20 ^ std::uint64_t(now()));
  p->member->heard(now(), from.rank);
  p->inbox[{from, channel}].push_back(std::move(m));
  if (of_reports(channel)) return report_came(*p);
  if (p->operation) p->operation->message(from, channel);
}

void ProtocolRanks::part(const ProcessId& self) {
  Process& p = *at(self.rank);
  if (p.id != self) return;
  ++p.parts;
  advanced(p);
}

void ProtocolRanks::advanced(const Process& p) {
  auto& furthest = furthest_[p.id.rank];
  if (std::pair(p.next, p.parts) <= furthest) return;
  furthest = {p.next, p.parts};
  last_advance_ = std::max(last_advance_, now());
}

void ProtocolRanks::acknowledged(const ProcessId& self, const ProcessId& to, std::uint32_t channel) {
  Process* p = at(self.rank);
  if (p->alive && p->id == self && p->operation) p->operation->acknowledged(to, channel);
}

std::uint32_t ProtocolRanks::epoch_of(const ProcessId& self) const {
  for (const auto* all : {&process_, &buried_})
    for (const auto& p : *all)
      if (p && p->id == self) return p->epoch;
  return 0;
}

// ---- The program ----

EpochWorld& ProtocolRanks::world_of(Epoch epoch, const Membership& membership) {
  auto& w = worlds_[epoch];
  std::vector<ProcessId> members;
  for (const Rank r : membership.members()) members.push_back({r, membership.life_of(r).value_or(0)});
  if (w) {
    if (w->members != members) violation(fmt::format("ranks are in different epochs {}", epoch));
    return *w;
  }
  w = std::make_unique<EpochWorld>();
  w->members = members;
  w->workload.cluster = workload_.cluster;
  w->workload.seed = workload_.seed ^ splitmix::hash(epoch);  // what of another epoch came through would be wrong
  for (const ProcessId& m : members) w->workload.cards.push_back(cards_[m.rank]);
  const bool as_stated = members.size() == ranks_ && epoch == 1;
  w->layout = as_stated ? workload_.operations[0].layout
                        : std::make_shared<const Layout>(layout_of(*workload_.cluster, w->workload.cards));
  for (const SimulatedOperation& stated : workload_.operations) {
    SimulatedOperation o = stated;
    o.layout = w->layout;
    o.members = {};
    // A root that has failed is replaced by the first rank.
    const auto root =
        std::find_if(members.begin(), members.end(), [&](const ProcessId& m) { return m.rank == stated.call.root; });
    o.call.root = root == members.end() ? 0 : Rank(root - members.begin());
    if (!as_stated) workload_.replan(std::uint32_t(w->workload.operations.size()), w->workload.cards, {}, &o);
    w->workload.operations.push_back(o);
  }
  w->payload = std::make_unique<Payload>(w->workload);
  return *w;
}

bool ProtocolRanks::interrupted(const Process& p) const {
  const Membership& s = p.member->membership();
  return s.revoked() || !s.failures().failed.empty();
}

void ProtocolRanks::step(Process& p) {
  for (const fault::Decision& d : p.member->take_decisions()) heed(p, d);
  const Membership& s = p.member->membership();
  if (s.out() != Membership::Out::no) {
    if (std::exchange(p.out, true)) return;
    mix(0x0000'0f00 + std::uint64_t(s.out()));
    finish(p, Doing::failed);
    return;
  }
  if (!s.member()) return;
  if (p.epoch != s.epoch()) enter_epoch(p);
  if (p.doing == Doing::working && interrupted(p)) interrupt(p);
  if (p.doing == Doing::meeting && interrupted(p)) p.member->revoke(now());
}

void ProtocolRanks::enter_epoch(Process& p) {
  const Membership& s = p.member->membership();
  if (s.epoch() < p.epoch)
    violation(fmt::format("rank {} goes from epoch {} back to {}", p.id.rank, p.epoch, s.epoch()));
  // Who is left out has failed, also where that was heard in the very event that made the epoch.
  if (p.epoch > 0)
    for (const ProcessId& m : worlds_.at(p.epoch)->members)
      if (!s.members().contains(m.rank) || s.life_of(m.rank).value_or(0) != m.life) p.knew.try_emplace(m.rank, now());
  p.epoch = s.epoch();
  mix(p.epoch);
  world_of(p.epoch, s);
  p.inbox.clear();
  p.parts = 0;
  look_at_links(p);
  links_.enter_epoch(p.id, p.epoch);
  note(p, FaultMoment::What::epochs, 1);
  if (p.epoch == 1) return work(p);
  p.doing = Doing::meeting;  // where do we go on
  agree(p);
}

void ProtocolRanks::agree(Process& p) {
  note(p, FaultMoment::What::agreements, 1);
  std::uint64_t flags = ~std::uint64_t(0) & ~kAwaitsReplacement & ~done_flags(workload_.operations.size());
  const bool joined = p.id.life > 0 && p.doing == Doing::meeting && p.next == 0;  // knows nothing yet
  flags |= joined ? done_flags(workload_.operations.size()) : done_flags(p.next);
  if (joined || now() < p.replacement_until) flags |= kAwaitsReplacement;
  p.member->agree(now(), flags);
  for (const fault::Decision& d : p.member->take_decisions()) heed(p, d);  // it may have been alone
}

void ProtocolRanks::work(Process& p) {
  p.doing = Doing::working;
  p.resumed = now();
  furthest_[p.id.rank] = {p.next, 0};  // what is done anew counts, and there are only so many epochs
  last_advance_ = std::max(last_advance_, now());
  at_work_[p.epoch] = {.at = now(),
                       .what = FaultEvent::What::work,
                       .ranks = Rank(p.member->membership().members().size()),
                       .epoch = std::uint32_t(p.epoch)};
  if (interrupted(p)) return interrupt(p);
  next_operation(p);
}

void ProtocolRanks::next_operation(Process& p) {
  if (p.operation) given_up_.push_back(std::move(p.operation));
  if (p.next == workload_.operations.size()) {
    p.doing = Doing::agreeing;
    return agree(p);
  }
  if (plan_.compute == 0) return begin_operation(p.id, p.epoch);
  own_work(p, duration(double(plan_.compute) * slowdown_[p.id.rank]),
           [this, id = p.id, e = p.epoch] { begin_operation(id, e); });
}

void ProtocolRanks::begin_operation(const ProcessId& id, Epoch epoch) {
  Process& p = *at(id.rank);
  if (p.id != id || !p.alive || p.epoch != epoch || p.doing != Doing::working || p.operation) return;
  if (report_first(p)) return;
  EpochWorld& world = *worlds_.at(p.epoch);
  Times& times = executions_[{p.epoch, p.next}];
  if (times.begin < 0) times.begin = now();
  RankOperation::Host host{.links = &links_,
                           .inbox = &p.inbox,
                           .slowdown = &slowdown_[p.id.rank],
                           .time = {},
                           .after = {},
                           .sent = {},
                           .stepped = {},
                           .ended = {}};
  host.time = [this, &p] { return p.own_time(now()); };
  host.after = [this, &p](Nanos delay, std::function<void()> what) { own_work(p, delay, std::move(what)); };
  host.sent = [this, &p](std::uint64_t bytes) {
    ++messages_;
    bytes_ += bytes;
    note(p, FaultMoment::What::bytes, bytes);
  };
  host.stepped = [this, &p] { note(p, FaultMoment::What::steps, 1); };
  host.ended = [this, &p] {
    executions_[{p.epoch, p.next}].end = now();
    p.done_in[p.next] = p.epoch;
    ++p.next;
    p.parts = 0;
    advanced(p);
    note(p, FaultMoment::What::operations, 1);
    next_operation(p);
    after_event(p);
  };
  p.operation = std::make_unique<RankOperation>(&world, std::uint32_t(p.next), p.id, std::move(host));
  p.operation->begin();
}

void ProtocolRanks::interrupt(Process& p) {
  if (p.operation) {
    p.operation->give_up();
    given_up_.push_back(std::move(p.operation));
  }
  p.looking.reset();
  p.doing = Doing::agreeing;
  p.member->revoke(now());
  agree(p);
}

void ProtocolRanks::heed(Process& p, const fault::Decision& d) {
  mix(d.flags ^ (std::uint64_t(d.failed.size()) << 32));
  if (d.mixed) violation("all call the same, and one call is said to differ");
  if (p.doing == Doing::reshaping || p.doing == Doing::finished || p.doing == Doing::failed) return;
  if (!p.member->membership().member()) return;
  const std::size_t all = workload_.operations.size();
  const std::size_t agreed = std::min<std::size_t>(all, std::size_t(std::countr_one(d.flags)));
  for (const Rank f : d.failed) p.knew.try_emplace(f, now());
  p.final = std::max(p.final, agreed);
  if (p.doing == Doing::agreeing) {
    if (agreed == all) return finish(p, Doing::finished);
    const RecoverySettings& s = plan_.recovery;
    if (s.policy == FailurePolicy::fail) return finish(p, Doing::failed);
    // Also of one that had nothing left to do: others have, and wait only where all do.
    if (s.replaces()) p.replacement_until = now() + s.replace_after + 2 * s.detection;
    return reshape(p, false);
  }
  if (p.doing != Doing::meeting) return;
  if (!d.failed.empty()) return reshape(p, false);
  const Rank members = p.member->membership().members().size();
  if (members < ranks_ && (d.flags & kAwaitsReplacement)) {
    // Those who wish to join have said so by then.
    p.doing = Doing::reshaping;
    own_work(p, std::max<Nanos>(kMillisecond, plan_.recovery.replace_after / 4), [this, id = p.id, e = p.epoch] {
      Process* q = at(id.rank);
      if (q && q->id == id && q->alive && !q->out && q->epoch == e) {
        reshape(*q, true);
        after_event(*q);
      }
    });
    return;
  }
  if (agreed == all) return finish(p, Doing::finished);
  p.next = agreed;
  work(p);
}

void ProtocolRanks::reshape(Process& p, bool grow) {
  p.doing = Doing::reshaping;
  if (p.member->membership().in_call()) return;
  grow ? p.member->grow(now()) : p.member->shrink(now());
  for (const fault::Decision& d : p.member->take_decisions()) heed(p, d);
  if (p.epoch != p.member->membership().epoch() && p.member->membership().member()) enter_epoch(p);
}

void ProtocolRanks::finish(Process& p, Doing how) {
  p.doing = how;
  mix(std::uint64_t(how) << 32 ^ p.id.rank ^ std::uint64_t(now()));
  if (!p.operation) return;
  p.operation->give_up();
  given_up_.push_back(std::move(p.operation));
}

void ProtocolRanks::violation(std::string what) {
  if (violations_.size() < 8) violations_.push_back(fmt::format("at {:.3f} ms: {}", double(now()) * 1e-6, what));
}

Outcome ProtocolRanks::run() {
  const auto wall = std::chrono::steady_clock::now();
  const RecoverySettings& s = plan_.recovery;
  Nanos last = s.heal;
  for (const Fault& f : plan_.faults) last = std::max(last, f.at + f.lasts);
  // Who has not come further for so long hangs: detection and recovery take less.
  const Nanos idle_max = s.replace_after + 40 * s.detection + 1'000'000'000;
  const auto limit = [&] { return s.limit > 0 ? s.limit : std::max({last, last_fault_, last_advance_}) + idle_max; };
  const auto settled = [&] {
    bool any = false;
    for (Rank r = 0; r < machines(); ++r) {
      const Process* p = at(r);
      if (!p && r < ranks_) return false;
      if (!p || (p->id.life > 0 && p->doing == Doing::joining)) continue;
      any = any || p->alive;
      if (p->alive && p->doing != Doing::finished && p->doing != Doing::failed) return false;
    }
    return any || now() > 0;
  };
  while (violations_.empty() && !settled() && time_.step(limit())) {
  }
  Outcome out;
  judge(&out);
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  return out;
}

Outcome run_protocol(const Workload& workload) { return ProtocolRanks(workload).run(); }

}  // namespace gccl::sim
