// Ranks that carry out collectives over the library's fault protocol in virtual time, and are hurt by a plan: each is a
// process with a Member (detector and membership), links to its peers, and the small program of an application.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <set>

#include "libgccl/fault/link_reports.hpp"
#include "libgccl/fault/member.hpp"
#include "sim/engine/workload.hpp"
#include "sim/fault/spares.hpp"
#include "sim/fault/verdict.hpp"
#include "sim/protocol/operation.hpp"

namespace gccl::sim {

constexpr std::size_t kProtocolOperationsMax = 48;  // of a run: which are complete is said in the flags of agreements
constexpr Rank kProtocolRanksMax = 64, kProtocolSparesMax = 16;

// The program. A rank carries out the operations one after the other. Where a failure interrupts it, it revokes; then,
// as at the end, all agree on the operations that every one of them has completed: those are final. By the policy they
// then return the error, or shrink; in the next epoch they agree once more, so that those who join know where the
// others are, grow until everybody is replaced, and go on with the first operation that is not final. Where it looks
// for slow links, all say before an operation, now and then, what they saw of theirs.
class ProtocolRanks : public DataUser {
 public:
  explicit ProtocolRanks(const Workload& workload);
  Outcome run();

  void message(const ProcessId& self, const ProcessId& from, std::uint32_t channel, DataMessage m) override;
  void part(const ProcessId& self) override;
  void acknowledged(const ProcessId& self, const ProcessId& to, std::uint32_t channel) override;
  std::uint32_t epoch_of(const ProcessId& self) const override;

 private:
  enum class Doing : std::uint8_t { joining, meeting, working, agreeing, reshaping, finished, failed };
  // A process's part in finding slow links.
  struct Looking {
    fault::LinkReports reports;
    std::size_t counted = 0, answers = 0;               // operations; times that all have reported
    std::vector<std::optional<fault::LinkReport>> got;  // while it waits for reports: by rank of the epoch
  };
  struct Process {
    ProcessId id;
    std::unique_ptr<fault::Member> member;
    bool alive = true, out = false;
    Nanos timer = -1;                                           // that is set
    std::set<std::size_t> stopped_by;                           // faults
    Nanos stopped_at = 0, stood = 0;                            // since when; and for how long before
    std::deque<std::pair<Rank, std::vector<std::byte>>> kept;   // packets while it is stopped
    std::vector<std::pair<Nanos, std::function<void()>>> left;  // its work that came due then, by its own time
    Doing doing = Doing::joining;
    fault::Epoch epoch = 0;
    std::size_t next = 0;         // the operation that it carries out
    std::size_t parts = 0;        // of messages that have come since the last one was complete, or its epoch began
    std::size_t final = 0;        // operations before are
    Nanos replacement_until = 0;  // waits for replacements
    std::unique_ptr<RankOperation> operation;
    Inbox inbox;
    std::map<Rank, Nanos> knew;            // of failures, first
    std::vector<fault::Epoch> done_in;     // by operation: the epoch in which its result arose; 0: it has none
    std::array<std::uint64_t, 5> count{};  // by FaultMoment::What
    Nanos resumed = -1;                    // it began to work in its epoch
    std::unique_ptr<Looking> looking;      // in its epoch; null: it does not look at its links

    bool paused() const { return !stopped_by.empty(); }
    Nanos own_time(Nanos now) const { return (paused() ? stopped_at : now) - stood; }
  };
  struct MemberEnd : WireEnd {
    ProtocolRanks* owner;
    Rank from, to;
    void arrived(std::span<const std::byte> bytes) override { owner->packet(from, to, bytes); }
  };
  struct Times {
    Nanos begin = -1, end = -1;
  };

  Rank machines() const { return ranks_ + plan_.recovery.spares; }
  Nanos now() const { return time_.now(); }
  Process* at(Rank r) { return process_[r].get(); }

  // Machines and wires.
  void start(Rank r, std::uint64_t life);
  DatagramWire& wire(Rank a, Rank b);
  void transmit(Process& p, Rank to, std::span<const std::byte> bytes);
  void packet(Rank from, Rank to, std::span<const std::byte> bytes);
  void wake(Process& p);
  void set_timer(Process& p);
  void after_event(Process& p);

  // Faults (injuries.cpp).
  void plan_first_faults();  // those that hold from before the start
  void plan_faults();        // all others
  void begin_fault(std::size_t i);
  void end_fault(std::size_t i);
  void heal();
  void set_slowdowns(const Fault& changed);
  bool crash(Rank r);  // false: it is not there
  bool lose_spare(Rank r);
  void happened(FaultEvent::What what, std::size_t fault) { events_.push_back({now(), what, fault, 0, 0, 0}); }
  void report_end(const Process& ended, const Process& to);
  void replace(Rank r);
  void stop(Rank r, std::size_t fault);
  void go_on(Rank r, std::size_t fault);
  void own_work(const Process& p, Nanos delay, std::function<void()> what);
  void hurt_unreachable(Nanos until);
  void note(Process& p, FaultMoment::What what, std::uint64_t amount);
  void faults_between(Rank from, Rank to, WireFaults* faults);
  void faults_of_packets(Rank from, Rank to, WireFaults* faults);
  void wires_changed();

  // The program.
  void step(Process& p);
  void enter_epoch(Process& p);
  void work(Process& p);
  void next_operation(Process& p);
  void begin_operation(const ProcessId& id, fault::Epoch epoch);
  void interrupt(Process& p);
  void agree(Process& p);
  void heed(Process& p, const fault::Decision& d);
  void reshape(Process& p, bool grow);
  void finish(Process& p, Doing how);
  bool interrupted(const Process& p) const;
  EpochWorld& world_of(fault::Epoch epoch, const fault::Membership& membership);

  // Slow links (slow_links.cpp).
  void look_at_links(Process& p);
  bool report_first(Process& p);  // true: it waits for reports before its next operation
  std::vector<fault::Arrivals> arrivals_of(const Process& p);
  static bool of_reports(std::uint32_t channel);
  void report_came(Process& p);
  bool all_reported(Process& p);
  void all_judge(Process& p);
  void plan_around(EpochWorld& world, std::size_t next, const std::vector<SlowPair>& pairs);
  void all_know(const EpochWorld& world, const EpochWorld::Answer& answer, bool plans_change);

  std::vector<RankWitness> witnesses() const;
  void judge(Outcome* out);
  std::string waits() const;
  void advanced(const Process& p);
  void violation(std::string what);
  void mix(std::uint64_t x) { trace_ = splitmix::mix(trace_ ^ (x + splitmix::kGolden)); }

  const Workload& workload_;
  const FaultPlan& plan_;
  const Rank ranks_;
  fault::MemberSettings settings_;
  VirtualTime time_;
  ClusterWires wires_;
  std::vector<Card> cards_;       // by rank, spares included
  std::vector<double> slowdown_;  // by rank, spares included: of its own work
  std::vector<std::unique_ptr<Process>> process_, buried_;
  std::vector<std::unique_ptr<RankOperation>> given_up_;
  std::map<std::pair<Rank, Rank>, std::unique_ptr<DatagramWire>> member_wires_;
  std::vector<std::unique_ptr<MemberEnd>> member_ends_;
  std::map<fault::Epoch, std::unique_ptr<EpochWorld>> worlds_;
  DataLinks links_;
  Chance chance_;

  std::vector<bool> active_, over_;  // by fault
  Hurts hurts_;
  Nanos cuts_until_ = 0;  // links are down
  Spares spares_;
  Nanos last_fault_ = 0, first_fault_ = -1;
  // By rank, spares included, the furthest: operations that it completed, and parts of messages for the next one; and
  // when one last came further, or will have done work of its own.
  std::vector<std::pair<std::size_t, std::size_t>> furthest_;
  Nanos last_advance_ = 0;
  Nanos planned_anew_ = -1;  // around slow links, last
  std::vector<FaultEvent> events_;
  std::map<fault::Epoch, FaultEvent> at_work_;  // since the last of its members is
  std::vector<Times> operations_;
  std::map<std::pair<fault::Epoch, std::size_t>, Times> executions_;
  std::uint64_t trace_ = 0, messages_ = 0, bytes_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace gccl::sim
