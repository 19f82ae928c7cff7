#include "libgccl/fault/agreement.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace gccl::fault {
namespace {

// That many are sent at the same interval, since most of what has no answer was lost; then it doubles, up to 16 times,
// since those that are silent so long have not called yet. Among 14 members with 30 % loss a phase needs 5 tries.
constexpr int kQuickRetries = 4;

AgreementMessage message(AgreementMessage::Kind kind, Ballot ballot, std::optional<Decision> decision = {}) {
  AgreementMessage m;
  m.kind = kind;
  m.ballot = ballot;
  m.decision = std::move(decision);
  return m;
}

}  // namespace

const MembershipRules& MembershipRules::standard() {
  static const MembershipRules rules;
  return rules;
}

Agreement::Agreement(Rank self, const RankSet& members, const Failures& failures, Nanos retry,
                     const MembershipRules& rules)
    : self_(self), members_(&members), failures_(&failures), retry_(retry), rules_(&rules) {}

void Agreement::retry_from(Nanos now) {
  retries_ = 0;
  retry_at_ = now + retry_;
}

bool Agreement::coordinates() const {
  const RankSet left = *members_ - failures_->failed;
  return !left.empty() && left.first() == self_;
}

RankSet Agreement::awaited() const {
  if (phase_ == Phase::idle || decision_) return {};
  return *members_ - failures_->failed - answered_;
}

void Agreement::begin(Nanos now, Contribution mine) {
  assert(!mine_);
  mine_ = std::move(mine);
  retry_from(now);
  if (decision_) return;
  if (coordinates()) return new_ballot(now);
  if (waiting_ > promised_ && !failures_->failed.contains(waiting_.rank)) {
    promised_ = waiting_;
    send(waiting_.rank, promise(waiting_));
  }
}

// ---- The coordinator ----

// Without a quorum there is none: those that promise it could not take over which ranks have failed.
void Agreement::new_ballot(Nanos now) {
  phase_ = Phase::idle;
  if (!has_quorum(*members_, *failures_)) return;
  ballot_ = {promised_.round + 1, self_};
  phase_ = Phase::preparing;
  failed_ = failures_->failed;
  answered_ = {};
  contributions_.clear();
  best_ = {};
  proposal_.reset();
  retry_from(now);
  promised_ = ballot_;
  for (const Rank r : *members_ - failed_)
    if (r != self_) send_phase(r);
  promised(self_, promise(ballot_));
  check_complete(now);
}

void Agreement::send_phase(Rank to) {
  if (phase_ == Phase::preparing) send(to, message(Kind::prepare, ballot_));
  if (phase_ == Phase::proposing) send(to, message(Kind::propose, ballot_, proposal_));
}

void Agreement::promised(Rank from, const AgreementMessage& m) {
  answered_.insert(from);
  contributions_[from] = *m.contribution;
  if (m.decision && m.accepted > best_) {
    best_ = m.accepted;
    proposal_ = m.decision;
  }
}

void Agreement::check_complete(Nanos now) {
  if (phase_ == Phase::idle || decision_ || !answered_.includes(*members_ - failed_)) return;
  if (phase_ == Phase::preparing) return propose(now);
  decide(*proposal_);
}

void Agreement::propose(Nanos now) {
  if (!proposal_) {
    const Contribution& first = contributions_.begin()->second;
    Decision d;
    d.call = first.call;
    d.flags = ~std::uint64_t(0);
    d.failed = failed_;
    d.acknowledged = true;
    for (const auto& [rank, c] : contributions_) {
      d.mixed |= c.call != d.call;
      d.flags &= c.flags;
      d.acknowledged &= c.acknowledged.includes(failed_);
      for (const auto& [joiner, life] : c.joiners) d.joiners[joiner] = std::max(d.joiners[joiner], life);
    }
    proposal_ = std::move(d);
  }
  phase_ = Phase::proposing;
  answered_ = {self_};
  accepted_ = ballot_;
  value_ = proposal_;
  retry_from(now);
  for (const Rank r : *members_ - failed_)
    if (r != self_) send_phase(r);
  check_complete(now);
}

// Those that miss it ask.
void Agreement::decide(Decision d) {
  decision_ = std::move(d);
  if (!coordinates()) return;
  for (const Rank r : *members_ - failures_->failed)
    if (r != self_) send(r, message(Kind::decide, {}, decision_));
}

void Agreement::failures_changed(Nanos now) {
  if (decision_ || !mine_ || !coordinates()) return;
  if (phase_ == Phase::idle || failed_ != failures_->failed) new_ballot(now);
}

void Agreement::time_passed(Nanos now) {
  if (now < deadline()) return;
  ++retries_;
  retry_at_ = now + (retry_ << std::clamp(retries_ - kQuickRetries, 0, 4));
  if (phase_ != Phase::idle && coordinates()) {
    for (const Rank r : awaited()) send_phase(r);
    return;
  }
  const RankSet left = *members_ - failures_->failed;
  if (!left.empty() && left.first() != self_) send(left.first(), message(Kind::ask, {}));
}

// ---- Every member ----

AgreementMessage Agreement::promise(Ballot ballot) const {
  AgreementMessage m = message(Kind::promise, ballot, value_);
  m.contribution = mine_;
  m.accepted = accepted_;
  return m;
}

void Agreement::received(Nanos now, Rank from, AgreementMessage m) {
  if (m.kind == Kind::decide) {
    if (!decision_) decide(std::move(*m.decision));
    return;
  }
  if (decision_) return send(from, message(Kind::decide, {}, decision_));
  const bool answers = phase_ != Phase::idle && m.ballot == ballot_ && coordinates();
  switch (m.kind) {
    case Kind::prepare:
    case Kind::propose:
      if (m.ballot.rank != from) return;
      if (m.ballot < promised_) return send(from, message(Kind::refuse, promised_));
      if (!mine_) {
        waiting_ = std::max(waiting_, m.ballot);
        return;
      }
      promised_ = m.ballot;
      retry_from(now);
      if (m.kind == Kind::prepare) return send(from, promise(m.ballot));
      accepted_ = m.ballot;
      value_ = std::move(m.decision);
      send(from, message(Kind::accepted, m.ballot));
      if (rules_->trusts_proposals()) decide(*value_);
      return;
    case Kind::promise:
      if (!answers || phase_ != Phase::preparing) return;
      promised(from, m);
      return check_complete(now);
    case Kind::accepted:
      if (!answers || phase_ != Phase::proposing) return;
      answered_.insert(from);
      return check_complete(now);
    case Kind::refuse:
      if (!mine_ || !coordinates() || m.ballot <= ballot_) return;
      promised_.round = std::max(promised_.round, m.ballot.round);
      return new_ballot(now);
    case Kind::ask:
      if (coordinates() && awaited().contains(from)) send_phase(from);
      return;
    case Kind::decide: return;
  }
}

}  // namespace gccl::fault
