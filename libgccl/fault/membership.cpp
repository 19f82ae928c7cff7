#include "libgccl/fault/membership.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gccl::fault {
namespace {

Lives first_lives(const RankSet& members) {
  Lives lives;
  for (const Rank r : members) lives[r] = 0;
  return lives;
}

}  // namespace

Membership::Membership(Nanos now, const MembershipSettings& settings, Rank self, const RankSet& members,
                       const MembershipRules& rules)
    : settings_(settings), rules_(&rules), self_(self) {
  assert(members.contains(self));
  enter(now, 1, first_lives(members));
}

Membership::Membership(Nanos now, const MembershipSettings& settings, Rank self, std::uint64_t life,
                       const RankSet& contacts, const MembershipRules& rules)
    : settings_(settings), rules_(&rules), self_(self), life_(life), contacts_(contacts - RankSet{self}) {
  assert(life > 0);
  retry_at_ = now;
}

void Membership::enter(Nanos now, Epoch epoch, const Lives& lives) {
  epoch_ = epoch;
  lives_ = lives;
  members_ = {};
  for (const auto& [rank, life] : lives) {
    members_.insert(rank);
    if (const auto j = joiners_.find(rank); j != joiners_.end() && j->second <= life) joiners_.erase(j);
  }
  revoked_ = false;
  know_revoked_ = acknowledged_ = {};
  retry_at_ = give_up_at_ = kNever;
  instance_ = 0;
  agreement_ = std::make_unique<Agreement>(self_, members_, failures_, settings_.retry, *rules_);
  watch_quorum(now);
}

void Membership::watch_quorum(Nanos now) {
  if (has_quorum(members_, failures_))
    give_up_at_ = kNever;
  else if (give_up_at_ == kNever)
    give_up_at_ = now + settings_.quorum_timeout;
}

void Membership::leave(Out why) {
  if (out_ != Out::no) return;
  out_ = why;
  packets_.clear();
}

MembershipMessage Membership::message(Kind kind) const {
  MembershipMessage m;
  m.kind = kind;
  m.epoch = epoch_;
  m.instance = instance_;
  m.revoked = revoked_;
  m.failures = failures_;
  return m;
}

std::vector<Packet> Membership::take_packets() { return std::exchange(packets_, {}); }

void Membership::collect() {
  for (auto& outgoing : agreement_->take_outgoing()) {
    MembershipMessage m = message(Kind::agreement);
    m.agreement = std::move(outgoing.message);
    send(outgoing.to, m);
  }
}

// ---- Agreement ----

void Membership::begin(Nanos now, Call call, std::uint64_t flags) {
  assert(member() && !agreement_->begun());
  agreement_->begin(now, {.call = call, .flags = flags, .acknowledged = acknowledged_, .joiners = joiners_});
  advance(now);
}

// What follows from an event that may have been the last that the agreement needed.
void Membership::advance(Nanos now) {
  collect();
  if (out_ != Out::no || !agreement_->decision()) return;
  const Decision d = *agreement_->decision();
  last_ = {epoch_, instance_, d};
  ++instance_;
  if (d.failed.contains(self_)) return leave(Out::expelled);
  decisions_.push_back(d);
  if (d.call == Call::agree || d.mixed) {
    agreement_ = std::make_unique<Agreement>(self_, members_, failures_, settings_.retry, *rules_);
    return;
  }
  Lives lives = lives_;
  for (const Rank r : d.failed) lives.erase(r);
  for (const auto& [rank, life] : d.joiners) lives[rank] = life;
  RankSet stay;
  for (const auto& [rank, life] : lives)
    if (!d.joiners.contains(rank)) stay.insert(rank);
  failures_ = {.failed = failures_.failed & stay, .gone = failures_.gone & stay};
  enter(now, epoch_ + 1, lives);
}

void Membership::learn(Nanos now, const Failures& failures) {
  if (!member() || !failures_.insert(failures)) return;
  if (failures_.failed.contains(self_)) return leave(Out::expelled);
  watch_quorum(now);
  agreement_->failures_changed(now);
  advance(now);
}

// ---- Revoking ----

void Membership::revoke(Nanos now) {
  if (member()) set_revoked(now);
}

// Every member reports it to all others, so that it spreads also where the first dies while it does.
void Membership::set_revoked(Nanos now) {
  if (std::exchange(revoked_, true)) return;
  retry_at_ = now + settings_.retry;
  for (const Rank r : members_ - failures_.failed - know_revoked_)
    if (r != self_) send(r, message(Kind::revoke));
}

// ---- Joining ----

void Membership::joins(Nanos now, Rank from, std::uint64_t life) {
  if (!member()) return;
  const auto mine = lives_.find(from);
  if (mine == lives_.end() || life > mine->second) {
    std::uint64_t& known = joiners_[from];
    known = std::max(known, life);
    if (mine == lives_.end()) return;
    Failures ended;  // the process that was a member
    ended.insert_gone(from);
    return learn(now, ended);
  }
  if (life < mine->second || failures_.failed.contains(from)) return;
  MembershipMessage m = message(Kind::welcome);
  m.members = lives_;
  send(from, m);
}

// ---- Messages ----

void Membership::ask(Rank whom) {
  MembershipMessage m = message(Kind::agreement);
  m.agreement.kind = AgreementMessage::Kind::ask;
  send(whom, m);
}

void Membership::behind(Nanos, Rank from, Epoch its) {
  if (member() && its > epoch_ && !failures_.failed.contains(from)) ask(from);
}

void Membership::send_last_decision(Rank to, Epoch epoch, std::uint32_t instance) {
  MembershipMessage m = message(Kind::agreement);
  if (last_ && last_->epoch == epoch && last_->instance == instance) {
    m.epoch = epoch;
    m.instance = instance;
    m.failures = {};  // those of this epoch mean nothing there
    m.revoked = false;
    m.agreement.kind = AgreementMessage::Kind::decide;
    m.agreement.decision = last_->decision;
    return send(to, m);
  }
  if (epoch < epoch_ && !members_.contains(to)) send(to, message(Kind::expelled));
}

void Membership::of_other_epoch(Nanos now, Rank from, const MembershipMessage& m) {
  if (m.epoch > epoch_ && m.kind == Kind::expelled) return leave(Out::expelled);
  if (m.epoch > epoch_) return behind(now, from, m.epoch);
  if (m.kind == Kind::agreement && m.agreement.kind != AgreementMessage::Kind::decide)
    send_last_decision(from, m.epoch, m.instance);
}

// In the other's epoch, and without failures: those that this rank believed mean nothing any more.
void Membership::say_out(Rank to, const MembershipMessage& m) {
  if (m.kind == Kind::out || !members_.contains(to)) return;
  MembershipMessage answer;
  answer.kind = Kind::out;
  answer.epoch = m.epoch;
  send(to, answer);
}

void Membership::received(Nanos now, Rank from, const MembershipMessage& m) {
  if (from == self_) return;
  if (out_ != Out::no) return say_out(from, m);
  if (m.kind == Kind::join) return joins(now, from, m.life);
  if (m.kind == Kind::welcome) {
    const auto mine = m.members.find(self_);
    if (!members_.empty() || mine == m.members.end() || mine->second != life_) return;
    return enter(now, m.epoch, m.members);
  }
  if (members_.empty()) return;
  if (!admits(m.epoch)) return of_other_epoch(now, from, m);
  if (!members_.contains(from) || !members_.includes(m.failures.failed)) return;
  const bool its_quorum = has_quorum(members_, m.failures);
  if (its_quorum && m.failures.failed.contains(self_)) return leave(Out::expelled);
  if (m.kind == Kind::expelled) return;
  if (m.kind == Kind::out) return learn(now, {.failed = {from}, .gone = {}});
  if (failures_.failed.contains(from)) {
    if (has_quorum(members_, failures_)) send(from, message(Kind::expelled));
    return;
  }
  if (its_quorum) learn(now, m.failures);
  if (m.revoked) {
    know_revoked_.insert(from);
    set_revoked(now);
  }
  if (m.kind == Kind::revoke) return send(from, message(Kind::revoke_ack));
  if (m.kind != Kind::agreement || m.epoch != epoch_) return;
  if (m.instance == instance_) {
    agreement_->received(now, from, m.agreement);
    return advance(now);
  }
  if (m.instance > instance_) return ask(from);
  if (m.agreement.kind != AgreementMessage::Kind::decide) send_last_decision(from, m.epoch, m.instance);
}

// ---- Time ----

Nanos Membership::deadline() const {
  if (out_ != Out::no) return kNever;
  return std::min({retry_at_, give_up_at_, agreement_ ? agreement_->deadline() : kNever});
}

void Membership::time_passed(Nanos now) {
  if (out_ != Out::no || now < deadline()) return;
  if (now >= give_up_at_) return leave(Out::no_quorum);
  if (now >= retry_at_) {
    retry_at_ = now + settings_.retry;
    if (members_.empty()) {
      MembershipMessage m = message(Kind::join);
      m.life = life_;
      for (const Rank r : contacts_) send(r, m);
      return;
    }
    RankSet uninformed = members_ - failures_.failed - know_revoked_;
    uninformed = uninformed - RankSet{self_};
    for (const Rank r : uninformed) send(r, message(Kind::revoke));
    if (uninformed.empty()) retry_at_ = kNever;
  }
  agreement_->time_passed(now);
  advance(now);
}

}  // namespace gccl::fault
