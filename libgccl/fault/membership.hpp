// Which ranks take part, in epochs, without I/O: the semantics of ULFM's revoke, agree, shrink and get_failed, and
// growing.
//
// An epoch has a fixed set of members, and agreements one after the other, which all members call in the same order.
// One called by shrink or grow ends the epoch: the next has the members that the decision does not call failed, and,
// for either call, those that wanted to join. Nothing of an epoch enters a later one; a rank that missed the end of an
// epoch asks, and gets an answer.
//
//            +-------- agree --------+
//            v                       |        shrink, grow
//   joining ---> member of epoch e --+-----------------------------> member of epoch e+1
//                       |  revoke: every member's other calls end
//                       v
//                      out: expelled (a side with a quorum calls this rank failed), or without quorum for too long
//
// A rank that is out takes part in nothing more, and answers the members' messages by that, so that they do not wait
// for it: something else may still answer for its process.
#pragma once

#include <memory>
#include <span>

#include "libgccl/fault/agreement.hpp"

namespace gccl::fault {

struct MembershipSettings {
  Nanos retry = 20'000'000;  // a message without an answer is sent again
  // So long a rank waits, without a quorum, for word that the others are gone for certain.
  Nanos quorum_timeout = 5'000'000'000;
};

struct MembershipMessage {
  enum class Kind : std::uint8_t {
    agreement = 16,  // apart from DetectorMessage's
    revoke,          // to be acknowledged
    revoke_ack,
    join,     // a process wants to become a member
    welcome,  // and is one
    expelled,
    out,  // the sender is
    last = out,
  };
  Kind kind = Kind::agreement;
  Epoch epoch = 0;
  std::uint32_t instance = 0;  // of the epoch's agreements
  bool revoked = false;
  Failures failures;
  AgreementMessage agreement;  // agreement
  std::uint64_t life = 0;      // join
  Lives members;               // welcome: with their lives

  std::vector<std::byte> encoded() const;
  // Any bytes will do; nothing where they are no such message.
  static std::optional<MembershipMessage> decoded(std::span<const std::byte> bytes);
};

class Membership {
 public:
  // One of the first members, in epoch 1. `rules` outlive it.
  Membership(Nanos now, const MembershipSettings& settings, Rank self, const RankSet& members,
             const MembershipRules& rules = MembershipRules::standard());
  // One that wants to be a member of the next epoch and knows of some that are. `life` is greater than that of any
  // earlier process of its rank; those of the first members are 0.
  Membership(Nanos now, const MembershipSettings& settings, Rank self, std::uint64_t life, const RankSet& contacts,
             const MembershipRules& rules = MembershipRules::standard());
  Membership(const Membership&) = delete;

  // ---- Calls. agree, shrink and grow: when the one before is decided, and this rank is a member ----

  void agree(Nanos now, std::uint64_t flags) { begin(now, Call::agree, flags); }
  void shrink(Nanos now) { begin(now, Call::shrink, ~std::uint64_t(0)); }
  void grow(Nanos now) { begin(now, Call::grow, ~std::uint64_t(0)); }
  void revoke(Nanos now);
  // The failures that the caller has heard of; decisions say whether all have heard of all.
  void acknowledge(const RankSet& failed) { acknowledged_.insert(failed); }

  // ---- Events ----

  void learn(Nanos now, const Failures& failures);
  void isolated() { leave(Out::no_quorum); }
  // Some other message shows that its sender is in a later epoch.
  void behind(Nanos now, Rank from, Epoch its);
  void received(Nanos now, Rank from, const MembershipMessage& message);
  void time_passed(Nanos now);

  // ---- Actions ----

  Nanos deadline() const;
  std::vector<Packet> take_packets();
  // Decisions, in order.
  std::vector<Decision> take_decisions() { return std::exchange(decisions_, {}); }

  // ---- State ----

  enum class Out : std::uint8_t { no, expelled, no_quorum };
  Out out() const { return out_; }
  bool member() const { return out_ == Out::no && !members_.empty(); }
  Epoch epoch() const { return epoch_; }
  // Whether what a member sent in that epoch is for this one: for the data that the members exchange, too.
  bool admits(Epoch of_message) const { return rules_->is_current(of_message, epoch_); }
  const RankSet& members() const { return members_; }
  // The life of the process that is the member; nothing where there is none.
  std::optional<std::uint64_t> life_of(Rank rank) const {
    const auto at = lives_.find(rank);
    return at == lives_.end() ? std::nullopt : std::optional(at->second);
  }
  const Failures& failures() const { return failures_; }
  bool revoked() const { return revoked_; }
  bool in_call() const { return agreement_ && agreement_->begun(); }
  RankSet awaited() const { return agreement_ ? agreement_->awaited() : RankSet(); }

 private:
  using Kind = MembershipMessage::Kind;

  void begin(Nanos now, Call call, std::uint64_t flags);
  void enter(Nanos now, Epoch epoch, const Lives& lives);
  void leave(Out why);
  void advance(Nanos now);
  void watch_quorum(Nanos now);
  void joins(Nanos now, Rank from, std::uint64_t life);
  void of_other_epoch(Nanos now, Rank from, const MembershipMessage& m);
  void send_last_decision(Rank to, Epoch epoch, std::uint32_t instance);
  void ask(Rank whom);
  void say_out(Rank to, const MembershipMessage& m);
  void set_revoked(Nanos now);
  MembershipMessage message(Kind kind) const;
  void send(Rank to, const MembershipMessage& m) { packets_.push_back({to, m.encoded()}); }
  void collect();

  const MembershipSettings settings_;
  const MembershipRules* const rules_;
  const Rank self_;
  std::uint64_t life_ = 0;  // of this process
  RankSet contacts_;        // of one that joins

  Out out_ = Out::no;
  Epoch epoch_ = 0;
  RankSet members_;
  Lives lives_;  // of the members
  Failures failures_;
  RankSet acknowledged_;
  Lives joiners_;
  bool revoked_ = false;
  RankSet know_revoked_;
  std::uint32_t instance_ = 0;
  std::unique_ptr<Agreement> agreement_;  // number instance_
  struct Last {
    Epoch epoch = 0;
    std::uint32_t instance = 0;
    Decision decision;
  };
  std::optional<Last> last_;  // a member that missed it cannot be further behind: the next one needs it

  Nanos retry_at_ = kNever;    // of joining and of revoking
  Nanos give_up_at_ = kNever;  // without a quorum
  std::vector<Packet> packets_;
  std::vector<Decision> decisions_;
};

}  // namespace gccl::fault
