#include "sim/fault/members.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "sim/fault/faulty_wire.hpp"

namespace gccl::sim {
namespace {

using fault::Decision;
using fault::Epoch;
using fault::Member;
using fault::Membership;
using fault::RankSet;

constexpr Nanos kAppRetry = 5 * kMillisecond;
constexpr std::uint8_t kToken = 0x80;  // of the program; the protocol's packets begin otherwise
constexpr std::uint64_t kMachineDone = 1;

class Machines;

// A program, and the member that it is.
struct Machine {
  enum class Doing : std::uint8_t { nothing, working, agreeing, reshaping, finished };
  std::unique_ptr<Member> member;
  bool alive = false, paused = false, hurt = false;
  Nanos crashed_at = -1;
  std::uint64_t life = 0, sent = 0;
  std::deque<std::pair<Rank, std::vector<std::byte>>> inbox, outbox;  // while paused
  Nanos timer = -1;                                                   // that is set

  Doing doing = Doing::nothing;
  Epoch epoch = 0;                   // that the program is in
  unsigned round = 0;                // 1 ..; 0: not begun
  std::map<Rank, unsigned> reached;  // the round that each was heard to be in
  std::uint32_t agreement = 0;       // of the epoch
  Nanos resend = 0;                  // its token
  std::map<Rank, Nanos> knew;        // of failures, first
  bool told_out = false;
};

class Machines {
 public:
  Machines(const FaultTimeline& timeline, std::uint64_t seed, const fault::MemberRules& rules);
  MembersOutcome run();

 private:
  struct End : WireEnd {
    Machines* owner;
    Rank from, to;
    void arrived(std::span<const std::byte> bytes) override { owner->arrived(from, to, bytes); }
  };
  // What is known of an agreement from outside.
  struct Agreed {
    std::map<Rank, std::uint64_t> said;
    std::optional<Decision> decision;
    RankSet by;       // heard so far
    RankSet without;  // all of these count as failed
  };

  Rank machines() const { return timeline_.ranks + timeline_.spares; }
  Nanos now() const { return time_.now(); }
  Machine& at(Rank r) { return machine_[r]; }
  DatagramWire& wire(Rank x, Rank y);
  WireFaults& way(Rank from, Rank to) { return wire(from, to).faults[from < to ? 0 : 1]; }
  void begin(Rank r, std::uint64_t life);
  void apply(const Injury& injury);
  void crash(Rank r);
  void arrived(Rank from, Rank to, std::span<const std::byte> bytes);
  void handle(Rank from, Rank to, std::span<const std::byte> bytes);
  void wake(Rank r);
  void after_event(Rank r);
  void set_timer(Rank r);
  void transmit(Rank from, Rank to, std::span<const std::byte> bytes);
  // The program.
  void step(Rank r);
  void send_token(Rank r, Rank to, bool asks);
  void send_tokens(Rank r);
  bool interrupted(const Machine& m) const;
  void contribute(Rank r, std::uint64_t flags);
  bool forgotten(const Agreed& agreed, Rank r) const;
  void heed(Rank r, const Decision& d);
  void note_failures(Rank r);
  void check_end();
  bool everybody_settled() const;

  void violation(std::string what);
  void mix(std::uint64_t x) { outcome_.trace = splitmix::mix(outcome_.trace ^ (x + splitmix::kGolden)); }

  const FaultTimeline timeline_;
  const std::uint64_t seed_;
  const fault::MemberRules rules_;
  fault::MemberSettings settings_;
  VirtualTime time_;
  std::vector<std::unique_ptr<DatagramWire>> wires_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<Machine> machine_;
  std::map<std::pair<Epoch, std::uint32_t>, Agreed> agreements_;
  std::map<Epoch, RankSet> members_of_;
  std::map<std::pair<Epoch, Rank>, unsigned> in_round_;  // the truth
  MembersOutcome outcome_;
};

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
  if (!timeline_.system_tells) return;
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

// ---- The program ----

void Machines::send_token(Rank r, Rank to, bool asks) {
  BytesOut out;
  out.u8(kToken).u8(asks).u32(at(r).epoch).u32(at(r).round);
  transmit(r, to, out.bytes());
}

void Machines::send_tokens(Rank r) {
  Machine& m = at(r);
  m.resend = now() + kAppRetry;
  for (const Rank other : m.member->membership().members())
    if (other != r && m.alive) send_token(r, other, true);
}

void Machines::handle(Rank from, Rank to, std::span<const std::byte> bytes) {
  Machine& m = at(to);
  mix(std::uint64_t(now()) ^ std::uint64_t(from) << 48 ^ std::uint64_t(to) << 40);
  for (const std::byte b : bytes) outcome_.trace = (outcome_.trace ^ std::uint64_t(b)) * 0x100000001b3;
  if (std::uint8_t(bytes[0]) != kToken) {
    if (!m.member->received(now(), from, bytes))
      violation(fmt::format("rank {} cannot read rank {}'s packet", to, from));
    return after_event(to);
  }
  BytesIn in(bytes);
  in.u8();
  const bool asks = in.u8();
  const Epoch epoch = in.u32();
  const unsigned round = in.u32();
  const Membership& membership = m.member->membership();
  m.member->heard(now(), from);
  if (membership.member() && membership.admits(epoch) && m.epoch == membership.epoch()) {
    m.reached[from] = std::max(m.reached[from], round);
    // Who asks again has missed a token.
    if (asks && (m.round > round || (m.round == round && m.doing != Machine::Doing::working)))
      send_token(to, from, false);
  }
  after_event(to);
}

bool Machines::interrupted(const Machine& m) const {
  const Membership& s = m.member->membership();
  return s.revoked() || !s.failures().failed.empty();
}

void Machines::contribute(Rank r, std::uint64_t flags) {
  Machine& m = at(r);
  agreements_[{m.epoch, m.agreement}].said[r] = flags;
}

void Machines::step(Rank r) {
  using Doing = Machine::Doing;
  Machine& m = at(r);
  const Membership& s = m.member->membership();
  for (const Decision& d : m.member->take_decisions()) heed(r, d);
  if (s.out() != Membership::Out::no) {
    if (std::exchange(m.told_out, true)) return;
    m.doing = Doing::nothing;  // like the member it is silent from now on
    mix(0x0 + std::uint64_t(s.out()));
    if (!m.hurt && s.out() == Membership::Out::expelled) violation(fmt::format("rank {} is expelled for nothing", r));
    return;
  }
  if (!s.member()) return;
  if (m.epoch != s.epoch()) {
    if (s.epoch() < m.epoch) violation(fmt::format("rank {} goes from epoch {} back to {}", r, m.epoch, s.epoch()));
    m.epoch = s.epoch();
    const auto [known, first] = members_of_.try_emplace(m.epoch, s.members());
    const bool peopled = std::any_of(machine_.begin(), machine_.end(),
                                     [&](const Machine& o) { return &o != &m && o.alive && o.epoch == m.epoch; });
    if (!first && !peopled && known->second != s.members()) {  // all that were in it have crashed: see forgotten()
      known->second = s.members();
      std::erase_if(agreements_, [&](const auto& a) { return a.first.first == m.epoch; });
    }
    if (known->second != s.members()) violation(fmt::format("rank {} is in another epoch {} than others", r, m.epoch));
    m.doing = Doing::working;
    m.round = 1;
    m.agreement = 0;
    m.reached.clear();
    in_round_[{m.epoch, r}] = 1;
    send_tokens(r);
    if (!m.alive) return;
  }
  if (m.doing != Doing::working) return;
  bool complete = false;
  while (!interrupted(m) && !complete) {
    for (const Rank other : s.members()) {
      if (other == r) continue;
      if (m.reached[other] < m.round) return;
      if (in_round_[{m.epoch, other}] < m.round)
        violation(fmt::format("rank {} has done round {} of epoch {} with rank {}, which was not there", r, m.round,
                              m.epoch, other));
    }
    complete = m.round == timeline_.rounds;
    if (complete) break;
    in_round_[{m.epoch, r}] = ++m.round;
    send_tokens(r);
    if (!m.alive) return;
  }
  m.doing = Doing::agreeing;
  if (!complete) m.member->revoke(now());
  const std::uint64_t flags = (complete ? kMachineDone : 0) | std::uint64_t(r) << 8 | ~std::uint64_t(0xffff);
  contribute(r, flags);
  m.member->agree(now(), flags);
  step(r);
}

// What all that heard it took along when they crashed, and what one decides now that they had called failed: the case
// in which survivors may decide otherwise.
bool Machines::forgotten(const Agreed& agreed, Rank r) const {
  return agreed.decision && agreed.without.contains(r) &&
         std::none_of(agreed.by.begin(), agreed.by.end(),
                      [this](Rank q) { return machine_[q].alive && machine_[q].life == 0; });
}

void Machines::heed(Rank r, const Decision& d) {
  Machine& m = at(r);
  Agreed& agreed = agreements_[{m.epoch, m.agreement}];
  if (forgotten(agreed, r)) agreed.decision.reset(), agreed.by = {};
  RankSet failed = d.failed;
  for (const auto& [f, when] : m.knew) failed.insert(f);
  agreed.without = agreed.by.empty() ? failed : agreed.without & failed;
  agreed.by.insert(r);
  mix(d.flags);
  mix(d.failed.size());
  if (!agreed.decision) {
    agreed.decision = d;
    std::uint64_t flags = ~std::uint64_t(0);
    for (const Rank member : members_of_[m.epoch] - d.failed) {
      if (!agreed.said.contains(member))
        violation(fmt::format("epoch {}: decided without rank {}", m.epoch, member));
      else
        flags &= agreed.said[member];
    }
    if (flags != d.flags) violation(fmt::format("epoch {}: decided {:x}, not {:x}", m.epoch, d.flags, flags));
  } else if (*agreed.decision != d) {
    violation(fmt::format("epoch {}, agreement {}: rank {} decides otherwise", m.epoch, m.agreement, r));
  }
  if (d.mixed) violation("all call the same, and one call is said to differ");
  ++m.agreement;
  if (m.doing == Machine::Doing::reshaping) return;  // the next epoch has begun
  const bool whole = (d.flags & kMachineDone) && d.failed.empty();
  if (whole && m.epoch > 1) {
    m.doing = Machine::Doing::finished;
    return;
  }
  if (!m.member->membership().member()) return;
  m.doing = Machine::Doing::reshaping;
  contribute(r, ~std::uint64_t(0));
  if (whole)
    m.member->grow(now());
  else
    m.member->shrink(now());
  for (const Decision& next : m.member->take_decisions()) heed(r, next);
}

void Machines::note_failures(Rank r) {
  Machine& m = at(r);
  for (const Rank f : m.member->membership().failures().failed) {
    if (!m.knew.try_emplace(f, now()).second) continue;
    mix(std::uint64_t(now()) + f);
    if (f >= machines() || (at(f).crashed_at < 0 && !at(f).hurt && !at(f).told_out))
      violation(fmt::format("rank {} calls rank {} failed, to which nothing was done", r, f));
  }
}

// ---- The end ----

bool Machines::everybody_settled() const {
  return std::all_of(machine_.begin(), machine_.end(), [](const Machine& m) {
    const bool spare = m.life > 0;
    return !m.alive ? m.crashed_at >= 0 : m.doing == Machine::Doing::finished || m.told_out || (spare && m.epoch == 0);
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
    if (m.told_out) {
      ++(s.out() == Membership::Out::expelled ? outcome_.expelled : outcome_.without_quorum);
      if (s.out() != Membership::Out::no_quorum || m.hurt) continue;
      // Those of its epoch that never failed: did they have no quorum?
      RankSet lost;
      for (const Rank other : s.members())
        if (other != r && (!at(other).alive || at(other).life > 0 || at(other).told_out)) lost.insert(other);
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

}  // namespace

MembersOutcome play(const FaultTimeline& timeline, std::uint64_t seed, const fault::MemberRules& rules) {
  return Machines(timeline, seed, rules).run();
}

}  // namespace gccl::sim
