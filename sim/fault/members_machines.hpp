// The machines of a run in virtual time (members.hpp), and the program that runs on each of them.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "sim/fault/faulty_wire.hpp"
#include "sim/fault/members.hpp"

namespace gccl::sim::members {

using fault::Decision;
using fault::Epoch;
using fault::Member;
using fault::Membership;
using fault::RankSet;

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
  bool knows_out = false;
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

}  // namespace gccl::sim::members
