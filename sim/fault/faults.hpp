// What is done to a run, as a scenario states it: faults in time, what ranks do about failures, and what came of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libgccl/schedule/types.hpp"

namespace gccl::sim {

enum class FaultKind : std::uint8_t {
  rank_crash,      // its process ends
  pause,           // its process stops, as by SIGSTOP, and goes on after `lasts`
  node_loss,       // all ranks of a node crash
  card_loss,       // the rank on a card crashes
  nic_down,        // both directions of a NIC's cable, up again after `lasts`
  link_down,       // a link of the cluster, or all that two ranks send each other
  link_degraded,   // a link or a NIC's cable: its bandwidth is `amount` of what it was, its latency longer by `latency`
  loss,            // of frames and packets, with probability `amount`
  duplication,     // likewise
  reordering,      // likewise: they take up to ten times as long
  corruption,      // likewise: some bits change
  partition,       // nothing passes from ranks to all others, or back, unless one_way; heals after `lasts`
  switch_loss,     // all links of a switch
  straggler,       // its own work takes `amount` times as long
  late_start,      // a rank begins at `lasts`
  agreement_loss,  // of messages of the agreement protocol, with probability `amount`
};
std::span<const std::string_view> fault_names();
std::string_view name(FaultKind kind);

// What several faults leave of a link's bandwidth is no less, unless it is down. One alone may leave ten times as much.
constexpr double kBandwidthLeast = 1e-6;

// When `count` of something have happened to a rank.
struct FaultMoment {
  enum class What : std::uint8_t { operations, steps, bytes, agreements, epochs };
  Rank rank = 0;
  What what = What::operations;
  std::uint64_t count = 1;
  friend bool operator==(const FaultMoment&, const FaultMoment&) = default;
};
std::span<const std::string_view> moment_names();

inline constexpr Nanos kDrawnMax = 1000;  // of one rule, in the mean

struct Fault {
  FaultKind kind = FaultKind::rank_crash;
  Nanos at = 0;                        // since the start, or since the moment
  std::optional<FaultMoment> after;    // instead of the start
  Nanos every = 0;                     // drawn: mean time between two of them; 0: it is stated
  Nanos until = 0;                     // drawn: the last one may come then
  Nanos lasts = 0;                     // 0: for good
  std::vector<Rank> ranks;             // whom it concerns; drawn where it is empty and the kind needs one
  std::optional<std::uint32_t> place;  // node or card
  std::string link;                    // name of a NIC, link or switch
  bool one_way = false;                // link_down and others between two ranks, partition
  double amount = 0;
  Nanos latency = 0;
  std::size_t stated = 0;  // its place in the scenario's list

  bool drawn() const { return every > 0; }
};

enum class FailurePolicy : std::uint8_t {
  fail,    // all ranks return an error that names the failed ones
  shrink,  // those that are left go on
  spare,   // and others take the places of the failed ones
  rejoin,  // and the failed ones are started again
};
std::span<const std::string_view> policy_names();

struct RecoverySettings {
  FailurePolicy policy = FailurePolicy::fail;
  bool replaces() const { return policy == FailurePolicy::spare || policy == FailurePolicy::rejoin; }
  Nanos detection = 5'000'000'000;
  std::uint32_t helpers = 3;
  bool system_reports = false;       // of processes that have ended, to those of the same node
  bool one_system = false;           // or to all: never stated, but true of real ranks
  Nanos report_after = 1'000'000;    // so long after it has ended
  Rank spares = 0;                   // processes that wait for a rank to fail
  Nanos replace_after = 10'000'000;  // so long after a failure the replacement begins
  Nanos reroute_after = 10'000'000;  // flow engine: so long after a link or switch is lost its messages go other ways
  bool connections = false;          // links over connections, as TCP's; else over datagrams
  std::uint32_t frame_bytes = 4096;  // of payload
  std::uint32_t credits = 64;        // frames in flight of each link
  // A link with less than so many parts of its due is slow (GCCL_LINK_SLOW), 0: nobody looks; and calls are planned
  // around such links (GCCL_LINK_AVOID).
  std::uint32_t link_slow = 0;
  bool link_avoid = true;
  Nanos heal = 0;   // all that may end ends then; 0: never
  Nanos limit = 0;  // a rank that has not finished by then hangs; 0: found from the others
};

struct FaultPlan {
  std::vector<Fault> faults;  // by their place in the scenario
  RecoverySettings recovery;
  Nanos compute = 0;  // so long each rank computes before each operation
};

// What faults can be drawn from.
struct FaultTargets {
  Rank ranks = 0;
  std::vector<std::uint32_t> cards, nodes;  // on which ranks are
  std::vector<std::string> nics, switches;
};

// The faults with those that are drawn by seed instead of their rule: times between them exponential, targets uniform.
std::vector<Fault> drawn(const std::vector<Fault>& faults, const FaultTargets& targets, std::uint64_t seed);

// Something that happened in a run with faults.
struct FaultEvent {
  enum class What : std::uint8_t {
    begins,          // fault number `fault` of the plan
    ends,            // likewise
    first_notified,  // the first of those that are left at the end knows that `rank` has failed
    all_notified,    // the last one does
    work,            // all `ranks` members of `epoch` do
    link_slow,       // all know that the link from `rank` to `peer` is slow, with `rate` where `expected` is due
    link_recovered,  // all know that it no longer is
    planned_around,  // from operation `operation` on calls are planned around `pairs`; none: as if no link were slow
  };
  Nanos at = 0;
  What what = What::begins;
  std::size_t fault = 0;
  Rank rank = 0, ranks = 0;
  std::uint32_t epoch = 0;
  Rank peer = 0;
  double rate = 0, expected = 0;  // bytes a second
  std::size_t operation = 0;
  std::vector<std::pair<Rank, Rank>> pairs = {};
};

// What came of a run with faults.
struct FaultOutcome {
  bool completed = false;                      // every operation ended on all ranks that are members at the end
  std::vector<Rank> dead;                      // as all that finished have heard
  std::vector<Rank> false_alarms;              // called failed, though nothing was done to them
  Nanos detection_first = -1, detection = -1;  // from a failure until the first, and the last, survivor knew; the worst
  Nanos recovery = -1;                         // from the first failure until all that are left work again
  std::uint64_t lost = 0, doubled = 0;         // operations
  double throughput_after = -1;  // operations a second after the last fault, in parts of those before the first
  // Of links between ranks that were found slow: from which to which; the longest time from the fault before it until
  // all knew of one; and how often calls were planned anew for them.
  std::vector<std::pair<Rank, Rank>> slow_links;
  Nanos link_detection = -1;
  std::uint64_t plans_changed = 0;
  std::optional<Rank> slowest;          // who holds up the others
  std::vector<FaultEvent> events;       // by their times
  std::vector<std::string> violations;  // what the protocol promises never to happen
  std::string waits;                    // where ranks hang: for what
  Rank survivors = 0;                   // ranks that finished
  Rank out = 0;                         // live ones that are no members any more: expelled, or without a quorum
  std::uint32_t epochs = 0;
  std::uint64_t frames = 0, repeated = 0, duplicates = 0, damaged = 0, reconnects = 0, rerouted = 0;
  std::uint64_t trace = 0;  // hash of all that was sent and decided, and when
  // Real ranks alone: stated times took so many times as long (times here are divided by it); how late the machine was
  // with what was due, at worst; what carried their messages; and in what they differ from the simulation of the same
  // scenario.
  double stretch = 0;
  Nanos late = 0;
  std::string carried_by;
  std::vector<std::string> differs;
};

}  // namespace gccl::sim
