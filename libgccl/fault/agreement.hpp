// One agreement among the members of an epoch, without I/O: all that survive come to the same decision, also when
// members, coordinators included, fail in the middle of it.
//
// The coordinator is the first member that has not failed. Ballots are Paxos's (Lamport, "The Part-Time Parliament",
// 1998), with two differences. A ballot needs the promises, and then the acceptances, of all members that have not
// failed, since the decision combines what each of them contributes. And a member hears nothing any more of those that
// count as failed. When the coordinator learns of another failure it begins anew, so the members of a ballot are fixed.
//
//   coordinator                       every other member that has not failed
//   prepare(ballot, failed)     ->
//                               <-    promise(ballot, contribution, what it accepted last)   once its caller is there
//   propose(ballot, decision)   ->
//                               <-    accepted(ballot)
//   decide(decision)            ->
//
// Why two ballots b < b' never decide differently, as far as survivors can know. Let L and L' be their members, each
// with a quorum (failures.hpp).
//   - L and L' have a member in common: it accepted b's decision before it promised b', and said so in that promise, so
//     b' proposes the same. Here b' is the first ballot after b that could do otherwise.
//   - They have none, and all outside L' are gone: those of L' that had heard b's decision before they promised said
//     so. None heard it later: all that could send it count as failed to those that have promised b'.
//   - They have none, and all outside L are gone, the coordinator of b' among them: those in L count it as failed since
//     they promised b, so none of them takes its proposal, unless it promised b' first; then it refused b.
// Two disjoint sets that both have a quorum by their numbers do not exist.
#pragma once

#include <compare>
#include <map>
#include <optional>

#include "libgccl/fault/failures.hpp"
#include "libgccl/fault/lives.hpp"

namespace gccl::fault {

// The processes that want to be members of the next epoch. A process that takes the place of another of its rank has a
// greater life.
struct Joiner {
  Rank rank = 0;
  std::uint64_t life = 0;
  friend auto operator<=>(const Joiner&, const Joiner&) = default;
};

// What the callers want of the decision.
enum class Call : std::uint8_t { agree = 1, shrink, grow };

struct Contribution {
  Call call = Call::agree;
  std::uint64_t flags = 0;
  RankSet acknowledged;  // failures that the caller knows of
  Lives joiners;
};

struct Decision {
  Call call = Call::agree;
  bool mixed = false;         // callers did not call the same
  std::uint64_t flags = 0;    // AND over all members that are not in `failed`
  RankSet failed;             // at least those that a member knew of when it called
  bool acknowledged = false;  // each caller knew of all of them
  Lives joiners;
  friend bool operator==(const Decision&, const Decision&) = default;
};

struct Ballot {
  std::uint32_t round = 0;  // 0: none
  Rank rank = 0;
  friend auto operator<=>(const Ballot&, const Ballot&) = default;
};

struct AgreementMessage {
  enum class Kind : std::uint8_t { prepare = 1, promise, propose, accepted, decide, refuse, ask, last = ask };
  Kind kind = Kind::ask;
  Ballot ballot;                             // refuse: the one that was promised
  std::optional<Contribution> contribution;  // promise
  Ballot accepted;                           // promise: that of `decision`
  std::optional<Decision> decision;          // promise: if one was accepted; propose, decide
};

void write(BytesOut& out, const AgreementMessage& m);
bool read(BytesIn& in, AgreementMessage* m);

// What the guarantees of agreement and membership rest on. Tests break one at a time to see that they would notice.
struct MembershipRules {
  virtual ~MembershipRules() = default;
  // Messages of another epoch never enter this one.
  virtual bool is_current(Epoch of_message, Epoch epoch) const { return of_message == epoch; }
  // A proposal is no decision before all have accepted it.
  virtual bool trusts_proposals() const { return false; }
  static const MembershipRules& standard();
};

class Agreement {
 public:
  // `members`, `failures` and `rules` are the owner's and outlive it. `retry`: after so long without an answer a
  // message is sent again; after some times the interval grows, up to 16 times as long.
  Agreement(Rank self, const RankSet& members, const Failures& failures, Nanos retry, const MembershipRules& rules);

  // ---- Events ----

  // The caller is there. Once.
  void begin(Nanos now, Contribution mine);
  // The owner has taken over the sender's failures before, and passes nothing of a rank that has failed.
  void received(Nanos now, Rank from, AgreementMessage m);
  void failures_changed(Nanos now);
  void time_passed(Nanos now);

  // ---- Actions ----

  struct Outgoing {
    Rank to;
    AgreementMessage message;
  };
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  Nanos deadline() const { return decision_ || !mine_ ? kNever : retry_at_; }

  // ---- State ----

  bool begun() const { return mine_.has_value(); }
  const std::optional<Decision>& decision() const { return decision_; }
  // Not failed, and has not answered the ballot of this rank: what a report names. Empty on others than the
  // coordinator.
  RankSet awaited() const;

 private:
  using Kind = AgreementMessage::Kind;
  enum class Phase : std::uint8_t { idle, preparing, proposing };

  bool coordinates() const;
  void new_ballot(Nanos now);
  void promised(Rank from, const AgreementMessage& m);
  void check_complete(Nanos now);
  void propose(Nanos now);
  void decide(Decision d);
  void send(Rank to, AgreementMessage m) { outgoing_.push_back({to, std::move(m)}); }
  void send_phase(Rank to);
  AgreementMessage promise(Ballot ballot) const;
  void retry_from(Nanos now);

  const Rank self_;
  const RankSet* const members_;
  const Failures* const failures_;
  const Nanos retry_;
  const MembershipRules* const rules_;

  // As any member.
  std::optional<Contribution> mine_;
  Ballot promised_, accepted_;
  std::optional<Decision> value_;     // accepted in ballot accepted_
  std::optional<Decision> decision_;  // for good
  Ballot waiting_;                    // to be promised once the caller is there

  // As the coordinator of ballot_.
  Phase phase_ = Phase::idle;
  Ballot ballot_;
  RankSet failed_;  // when it began
  RankSet answered_;
  std::map<Rank, Contribution> contributions_;
  Ballot best_;
  std::optional<Decision> proposal_;  // the best of the promises; then what is proposed

  Nanos retry_at_ = kNever;
  int retries_ = 0;  // since the last answer
  std::vector<Outgoing> outgoing_;
};

}  // namespace gccl::fault
