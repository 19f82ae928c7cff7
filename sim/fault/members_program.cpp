// The program on each machine: rounds of tokens with all members of its epoch, then an agreement, then the next epoch;
// and what is watched of it from outside.
#include <fmt/core.h>

#include <algorithm>

#include "sim/fault/members_machines.hpp"

namespace gccl::sim::members {
namespace {

constexpr Nanos kAppRetry = 5 * kMillisecond;
constexpr std::uint8_t kToken = 0x80;  // of the program; the protocol's packets begin otherwise
constexpr std::uint64_t kMachineDone = 1;

}  // namespace

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
    // A machine that asks again has missed a token.
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
    if (std::exchange(m.knows_out, true)) return;
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
    if (f >= machines() || (at(f).crashed_at < 0 && !at(f).hurt && !at(f).knows_out))
      violation(fmt::format("rank {} calls rank {} failed, to which nothing was done", r, f));
  }
}

}  // namespace gccl::sim::members
