// Finds out which ranks have failed, without I/O: events go in, each with the time at which it happens; packets to send
// and verdicts come out.
//
// After SWIM (Das, Gupta, Motivala, DSN 2002). In each period a rank pings two others: its successor among those that
// live, unless that was heard lately, so that every rank is watched by one at any time; and the next of a shuffled
// round over all, as in SWIM, which carries news about and finds neighbours that died together. One that does not
// answer within a third of the period is pinged by `helpers` others too, so that a link that is down, in one direction
// or both, accuses nobody. After a round without a sign of life a rank is suspected, and probed in every period, with
// other helpers each time. After three more it has failed, if at least one helper has said that it heard nothing
// either: a rank that cannot receive must not accuse. Suspicions are not spread, so no rank has to refute any.
//
// Failures are reported in every message, and at once to a few when they are news.
//
//   crash ----- 2 periods at most ----- ping - no answer - suspected - + 3 rounds - failed    : 0.6 of the detection
//   time
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "libgccl/fault/failures.hpp"
#include "libgccl/fault/member_bits.hpp"

namespace gccl::fault {

struct DetectorSettings {
  // A rank that crashes has failed for all others within this, as far as an answer takes less than a thirtieth of it.
  Nanos detection = 5'000'000'000;
  std::uint32_t helpers = 3;
  // A rank has not failed by silence where none has ever heard it of those whose word has come here: a firewall may
  // stand between them. Which ranks have been heard spreads in every message, so that all are known after a few
  // periods.
  bool heard_first = false;

  Nanos period() const { return detection / 10; }
};

// What a guarantee rests on. A test breaks it to see that it would notice.
struct DetectorRules {
  virtual ~DetectorRules() = default;
  // Whether a rank that was silent for all rounds has failed. `witnessed`: a helper heard nothing of it either;
  // `alone`: there is no other rank that could know.
  virtual bool accuses(bool witnessed, bool alone) const { return witnessed || alone; }
  // The system shows that rank's process here, and it has not ended: it is slow, or stopped. It is not accused, and a
  // helper answers for it.
  virtual bool lives(Rank) const { return false; }
  static const DetectorRules& standard();
};

struct DetectorMessage {
  enum class Kind : std::uint8_t {
    ping = 1,
    ack,      // to a ping
    request,  // ping `target` for me
    alive,    // to a request: it answered
    silent,   // it did not
    notice,   // for its failures alone
    last = notice,
  };
  Kind kind = Kind::ping;
  Epoch epoch = 0;
  std::uint32_t sequence = 0;  // of the round of probing that this belongs to
  Rank target = 0;
  Failures failures;
  MemberBits heard;  // of the epoch's members, those that the sender or one that it heard of has heard

  std::vector<std::byte> encoded() const;
  // Any bytes will do; nothing where they are no such message.
  static std::optional<DetectorMessage> decoded(std::span<const std::byte> bytes);
};

class Detector {
 public:
  // Watches the members of an epoch, with `self` among them. The seed shuffles whom it pings. `rules` outlive it.
  Detector(Nanos now, const DetectorSettings& settings, Rank self, Epoch epoch, const RankSet& members,
           std::uint64_t seed, const DetectorRules& rules = DetectorRules::standard());

  // ---- Events ----

  void received(Nanos now, Rank from, const DetectorMessage& message);
  // Any other traffic of a rank is as good as a heartbeat.
  void heard(Nanos now, Rank from);
  // The system says that its process has ended, or is stopped (and then that it continues). A stopped one fails by
  // silence like any other; it is called stopped in what is reported.
  void gone(Rank rank);
  void stopped(Rank rank, bool is);
  // Another part of the protocol knows of these.
  void learn(const Failures& failures);
  // When it comes much later than the deadline, this rank itself was held up, and holds that against nobody.
  void time_passed(Nanos now);

  // ---- Actions ----

  Nanos deadline() const;
  std::vector<Packet> take_packets() { return std::exchange(packets_, {}); }

  // ---- State ----

  const Failures& failures() const { return failures_; }
  // Nobody has been heard for the detection time: which rank is to blame is not known.
  bool isolated() const { return isolated_; }
  // Others that have a quorum count this rank as failed.
  bool expelled() const { return failures_.failed.contains(self_); }
  enum class Standing : std::uint8_t { alive, suspected, stopped, failed };
  Standing standing(Rank rank) const;
  // How often a rank was suspected that had not been before, and how often one of them was heard again.
  std::uint64_t suspicions() const { return suspicions_; }
  std::uint64_t suspicions_withdrawn() const { return withdrawn_; }

 private:
  using Kind = DetectorMessage::Kind;
  static constexpr unsigned kRounds = 4;

  struct Probe {
    Rank target;
    std::uint32_t sequence = 0;
    Nanos begun = 0;  // this round
    unsigned rounds_over = 0;
    bool asked = false;  // helpers, in this round
    bool witnessed = false;
    bool over = false;  // without a verdict
  };
  struct Duty {  // a helper's
    Rank asker, target;
    std::uint32_t sequence;
    Nanos until;
  };

  Nanos reply_timeout() const { return settings_.period() / 3; }
  bool others(Rank r) const { return r != self_ && members_.contains(r) && !failures_.failed.contains(r); }
  Probe* probe_of(Rank target);
  bool suspects(Rank r) const;
  std::size_t place_of(Rank r) const {
    return std::size_t(std::lower_bound(members_.begin(), members_.end(), r) - members_.begin());
  }
  void send(Rank to, Kind kind, std::uint32_t sequence, Rank target);
  void begin_period(Nanos now);
  void ping(Nanos now, Probe& p);
  void begin_probe(Nanos now, Rank target);
  void ask_helpers(Probe& p);
  bool round_over(Nanos now, Probe& p);
  std::optional<Rank> successor() const;
  std::optional<Rank> next_of_round();
  std::vector<Rank> some_others(std::size_t count, std::optional<Rank> but);
  void learn_heard(Nanos now, const MemberBits& heard);
  void fail(const Failures& news);
  void lives(Rank target);
  void excuse(Nanos now, Nanos late);
  std::uint64_t random();

  const DetectorSettings settings_;
  const DetectorRules* const rules_;
  const Rank self_;
  const Epoch epoch_;
  const RankSet members_;
  std::uint64_t random_;

  Failures failures_;
  RankSet stopped_;
  std::vector<Nanos> heard_;  // by place in members_
  MemberBits heard_by_some_;
  Nanos heard_any_;
  bool heard_once_ = false, isolated_ = false;

  std::vector<Probe> probes_;
  std::vector<Duty> duties_;
  std::vector<Rank> round_;  // whom to ping next is at its end
  Nanos next_period_;
  std::uint32_t sequence_ = 0;
  std::vector<Packet> packets_;
  std::uint64_t suspicions_ = 0, withdrawn_ = 0;
};

}  // namespace gccl::fault
