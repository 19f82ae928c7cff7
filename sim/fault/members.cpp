#include "sim/fault/members.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/fault/members_machines.hpp"

namespace gccl::sim {
namespace members {

Machines::Machines(const FaultTimeline& timeline, std::uint64_t seed, const fault::MemberRules& rules)
    : timeline_(timeline), seed_(seed), rules_(rules), machine_(timeline.ranks + timeline.spares) {
  settings_.detector = {.detection = timeline.detection, .helpers = timeline.helpers};
  settings_.membership = {.retry = 5 * kMillisecond, .quorum_timeout = timeline.detection / 2};
  for (Rank a = 0; a < machines(); ++a)
    for (Rank b = a + 1; b < machines(); ++b) {
      auto& wire = wires_.emplace_back(std::make_unique<DatagramWire>(&time_, seed_ * 131071 + a * 1021 + b));
      for (const unsigned side : {0u, 1u}) {
        auto& end = ends_.emplace_back(std::make_unique<End>());
        end->owner = this;
        end->from = side == 0 ? b : a;
        end->to = side == 0 ? a : b;
        wire->attach(side, end.get());
        wire->faults[side].loss = timeline.loss;
        wire->faults[side].duplication = timeline.duplication;
        wire->faults[side].delay_min = timeline.delay_min;
        wire->faults[side].delay_max = timeline.delay_max;
      }
    }
  for (Rank r = 0; r < machines(); ++r) {
    if (timeline.loss > 0 || timeline.partitions) at(r).hurt = true;
    const Nanos begins = r < timeline.begins.size() ? timeline.begins[r] : 0;
    time_.at(begins, [this, r] { begin(r, r < timeline_.ranks ? 0 : 1); });
  }
  for (const Injury& i : timeline.injuries) time_.at(i.at, [this, i] { apply(i); });
  time_.at(timeline.heal, [this] {
    for (auto& wire : wires_)
      for (WireFaults& f : wire->faults) f.loss = f.duplication = 0, f.cut = false;
    for (Rank r = 0; r < machines(); ++r) apply({.at = 0, .kind = Injury::Kind::resume, .a = r, .b = 0});
  });
}

DatagramWire& Machines::wire(Rank x, Rank y) {
  const std::size_t a = std::min(x, y), b = std::max(x, y);
  return *wires_[a * machines() - a * (a + 1) / 2 + (b - a - 1)];
}

void Machines::violation(std::string what) {
  if (outcome_.violations.size() < 8)
    outcome_.violations.push_back(fmt::format("at {:.3f} ms: {}", double(now()) * 1e-6, what));
}

// ---- Machines ----

void Machines::begin(Rank r, std::uint64_t life) {
  Machine& m = at(r);
  const std::uint64_t sent = m.sent;
  const bool hurt = m.hurt;
  const Nanos crashed_at = m.crashed_at;
  m = {};
  m.sent = sent;
  m.hurt = hurt;
  m.crashed_at = crashed_at;
  m.alive = true;
  m.life = life;
  const std::uint64_t seed = splitmix::hash(seed_ ^ (std::uint64_t(r) << 32) ^ life);
  const RankSet first = RankSet::below(timeline_.ranks);
  m.member = life == 0 ? std::make_unique<Member>(now(), settings_, r, first, seed, rules_)
                       : std::make_unique<Member>(now(), settings_, r, life, first, seed, rules_);
  after_event(r);
}

void Machines::crash(Rank r) {
  Machine& m = at(r);
  if (!m.alive) return;
  mix(0xc0 + r);
  m.alive = false;
  m.crashed_at = now();
  if (!timeline_.system_reports) return;
  for (Rank other = 0; other < machines(); ++other)
    if (other != r)
      time_.after(kMillisecond + Nanos(other) * 10'000, [this, r, other, life = m.life] {
        Machine& o = at(other);
        if (!o.alive || o.paused || at(r).life != life) return;
        o.member->gone(now(), r, life);
        after_event(other);
      });
}

void Machines::apply(const Injury& i) {
  Machine& m = at(i.a);
  switch (i.kind) {
    case Injury::Kind::crash: return crash(i.a);
    case Injury::Kind::restart:
      if (!m.alive && m.crashed_at >= 0) begin(i.a, m.life + 1);
      return;
    case Injury::Kind::pause: m.paused = m.alive; return;
    case Injury::Kind::resume: {
      if (!std::exchange(m.paused, false) || !m.alive) return;
      for (const auto& [to, bytes] : std::exchange(m.outbox, {})) transmit(i.a, to, bytes);
      if (m.timer >= 0 && m.timer <= now()) wake(i.a);  // late, and before it has read anything
      while (!m.inbox.empty() && m.alive) {
        const auto [from, bytes] = std::move(m.inbox.front());
        m.inbox.pop_front();
        handle(from, i.a, bytes);
      }
      return;
    }
    case Injury::Kind::cut: way(i.a, i.b).cut = true; return;
    case Injury::Kind::mend: way(i.a, i.b).cut = false; return;
  }
}

void Machines::arrived(Rank from, Rank to, std::span<const std::byte> bytes) {
  Machine& m = at(to);
  if (!m.alive) return;
  if (m.paused)
    m.inbox.emplace_back(from, std::vector<std::byte>(bytes.begin(), bytes.end()));
  else
    handle(from, to, bytes);
}

void Machines::transmit(Rank from, Rank to, std::span<const std::byte> bytes) {
  Machine& m = at(from);
  if (!m.alive) return;
  if (m.paused) return void(m.outbox.emplace_back(to, std::vector<std::byte>(bytes.begin(), bytes.end())));
  ++outcome_.packets;
  ++m.sent;
  wire(from, to).write(from < to ? 0 : 1, bytes, {});
  for (const FaultTimeline::AfterPackets& a : timeline_.after_packets) {
    if (a.rank != from || a.packets != m.sent || m.life > 0) continue;
    if (a.along) time_.after(a.along_after, [this, other = *a.along] { crash(other); });
    if (a.pause == 0) return crash(from);
    m.paused = true;
    time_.after(a.pause, [this, from] { apply({.at = 0, .kind = Injury::Kind::resume, .a = from, .b = 0}); });
  }
}

void Machines::wake(Rank r) {
  Machine& m = at(r);
  m.timer = -1;
  if (!m.alive) return;
  if (now() >= m.member->deadline()) m.member->time_passed(now());
  after_event(r);
  if (m.alive && m.doing == Machine::Doing::working && now() >= m.resend) {
    send_tokens(r);
    if (m.alive) set_timer(r);
  }
}

void Machines::set_timer(Rank r) {
  Machine& m = at(r);
  Nanos due = m.member->deadline();
  if (m.doing == Machine::Doing::working) due = std::min(due, m.resend);
  if (due == fault::kNever || (m.timer >= 0 && m.timer <= due)) return;
  m.timer = std::max(due, now());
  time_.at(m.timer, [this, r, when = m.timer, life = m.life] {
    Machine& machine = at(r);
    if (machine.alive && machine.life == life && !machine.paused && machine.timer == when) wake(r);
  });
}

void Machines::after_event(Rank r) {
  Machine& m = at(r);
  if (!m.alive) return;
  ++outcome_.events;
  note_failures(r);
  step(r);
  for (const fault::Packet& p : m.member->take_packets())
    if (p.to < machines() && p.to != r) transmit(r, p.to, p.bytes);
  if (m.alive) set_timer(r);
}

// ---- The end ----

bool Machines::everybody_settled() const {
  return std::all_of(machine_.begin(), machine_.end(), [](const Machine& m) {
    const bool spare = m.life > 0;
    return !m.alive ? m.crashed_at >= 0 : m.doing == Machine::Doing::finished || m.knows_out || (spare && m.epoch == 0);
  });
}

void Machines::check_end() {
  std::optional<Rank> first;
  for (Rank r = 0; r < machines(); ++r) {
    Machine& m = at(r);
    outcome_.sent.push_back(m.sent);
    if (!m.alive) {
      if (m.crashed_at < 0) continue;
      MembersOutcome::Detection d{.rank = r};
      for (const Machine& other : machine_) {
        const auto knew = other.knew.find(r);
        if (!other.alive || knew == other.knew.end()) continue;
        const Nanos after = knew->second - m.crashed_at;
        d.first = d.first < 0 ? after : std::min(d.first, after);
        d.last = std::max(d.last, after);
      }
      outcome_.detections.push_back(d);
      continue;
    }
    const Membership& s = m.member->membership();
    if (m.knows_out) {
      ++(s.out() == Membership::Out::expelled ? outcome_.expelled : outcome_.without_quorum);
      if (s.out() != Membership::Out::no_quorum || m.hurt) continue;
      // Those of its epoch that never failed: did they have no quorum?
      RankSet lost;
      for (const Rank other : s.members())
        if (other != r && (!at(other).alive || at(other).life > 0 || at(other).knows_out)) lost.insert(other);
      if (has_quorum(s.members(), {.failed = lost, .gone = {}}))
        violation(fmt::format("rank {} gives up for want of a quorum that it had", r));
      continue;
    }
    if (m.life > 0 && m.epoch == 0) continue;  // wished to join when all was over
    if (m.doing != Machine::Doing::finished) {
      violation(fmt::format("rank {} hangs in epoch {}, round {}, doing {}, agreement {}", r, m.epoch, m.round,
                            int(m.doing), m.agreement));
      continue;
    }
    ++outcome_.done;
    if (!first) first = r;
    if (at(*first).epoch != m.epoch)
      violation(fmt::format("rank {} ends in epoch {}, rank {} in {}", *first, at(*first).epoch, r, m.epoch));
  }
}

MembersOutcome Machines::run() {
  // Whatever happens is over by the healing; then a few detections, agreements and epochs have to do.
  const Nanos limit = timeline_.heal + 30 * timeline_.detection;
  while (!(now() >= timeline_.heal && everybody_settled()) && outcome_.violations.empty() && time_.step(limit)) {
  }
  if (outcome_.violations.empty()) check_end();
  outcome_.end = now();
  return std::move(outcome_);
}

}  // namespace members

MembersOutcome play_members(const FaultTimeline& timeline, std::uint64_t seed, const fault::MemberRules& rules) {
  return members::Machines(timeline, seed, rules).run();
}

}  // namespace gccl::sim
