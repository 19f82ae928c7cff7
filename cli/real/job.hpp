// The coordinator of real ranks: starts them, inflicts the faults, collects what they report.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "cli/real/moments.hpp"
#include "cli/real/network.hpp"
#include "cli/real/rank_log.hpp"
#include "sim/fault/spares.hpp"
#include "sim/fault/verdict.hpp"
#include "sim/protocol/cluster_wires.hpp"
#include "sim/scenario/plan/campaign.hpp"

namespace gccl::real {

// What is known of one rank's process.
struct RankState {
  pid_t pid = -1;
  bool started = false;  // spares are when they are needed
  bool joins = false;    // a job that runs; and has done so
  bool joined = false;
  bool alive = false;                // its process
  bool ready = false;                // connected with all
  std::set<std::size_t> stopped_by;  // pauses that have not ended
  Nanos stopped_at = 0;              // where some have stopped it
  std::optional<Report::How> ended;
  std::size_t operation = 0;  // begun last
  std::uint32_t epoch = 0;
  std::vector<std::uint32_t> done_in;  // by operation: epoch of its result; 0: it has none
  std::map<Rank, Nanos> knew;          // of failures
  Nanos resumed = -1;                  // began to work in its epoch
  std::string text;                    // why it is broken
  Fd log;                              // what it writes to standard error
  LogLimit log_limit;
  bool amiss = false;  // it ended, or went on, as no rank should
};

class Job {
 public:
  Job(const sim::Workload& workload, const sim::RealMeans& means);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // To the end of all ranks, or the limit.
  void run();
  // In the words of the simulation: times are divided by the stretch, and begin with the first operation.
  sim::Outcome verdict() const;
  // What ranks wrote to standard error, to that of this process: those that did not end as they should; where there is
  // none, all if asked.
  void show_logs(bool if_none_all) const;

 private:
  struct Times {
    Nanos begin = -1, end = -1;
  };
  Rank ranks() const { return Rank(workload_.cards.size()); }
  Rank machines() const { return Rank(cards_.size()); }
  Nanos real(Nanos stated) const { return Nanos(double(stated) * stretch_); }
  void start(Rank r);
  void live(Rank r) const;
  void await(Nanos until);
  void came_late(Nanos due);
  void heed(const Report& report);
  void heed_links(const Report& report);
  void heed_all();
  void look_at_ranks();
  void look_for_ends();
  void later(Nanos due, std::function<void()> what) { agenda_.emplace(due, std::move(what)); }
  bool settled() const;
  const Strike* strike_of(std::size_t fault) const;  // null: it has none

  // inflict.cpp
  void begin_fault(std::size_t i, Nanos when);
  void end_fault(std::size_t i);
  void heal();
  Nanos lasting(std::size_t fault) const;
  void crash(Rank r, Nanos when);
  bool waits_as_spare(Rank r) const { return r >= ranks() && !state_[r].started && !spares_.lost(r); }
  void replace(Rank r, Nanos when);
  void start_anew(Rank r);
  void resume(Rank r, std::size_t fault);
  void wires_changed();
  void hurt_unreachable(Nanos when, Nanos until);
  Passage passage(Rank from, Rank to) const;
  std::vector<bool> ways_over(const sim::Fault& f) const;
  std::string waits() const;
  std::vector<sim::RankWitness> witnesses() const;
  std::vector<std::string> different_news() const;

  const sim::Workload& workload_;
  const sim::FaultPlan& plan_;
  const sim::RealMeans& means_;
  const std::vector<Card> cards_;  // by rank, spares included
  const double stretch_;
  const sim::Outcome simulated_;
  const std::vector<Strike> strikes_;
  std::unique_ptr<Network> network_;
  sim::ClusterWires wires_;
  std::vector<Passage> passages_;  // from * machines + to
  std::string store_, secret_;
  Fd reservation_, reports_, reports_end_, folder_;
  Shared* shared_ = nullptr;
  const pid_t self_;

  std::vector<RankState> state_;                    // by rank, spares included
  std::vector<std::pair<Rank, RankState>> buried_;  // in whose place others were started
  sim::Spares spares_;
  std::multimap<Nanos, std::function<void()>> agenda_;
  std::vector<bool> active_, over_;                  // by fault
  std::vector<sim::FaultEvent> events_;              // of faults, at real times
  std::map<std::size_t, std::vector<bool>> slowed_;  // by fault that degrades a link: ways_over()
  std::set<Rank> lost_with_node_;                    // cut off before their processes end
  sim::Hurts hurts_;
  Nanos cuts_until_ = 0;                                               // links are down
  std::map<std::pair<std::uint32_t, std::size_t>, Times> executions_;  // by epoch and operation
  std::uint64_t wrong_ = 0;
  std::string first_wrong_;
  // What was said of links before an operation, and by whom.
  struct Said {
    std::uint32_t epoch = 0;
    sim::FaultEvent event;
    std::set<Rank> by;
  };
  std::vector<Said> said_;
  std::vector<std::string> violations_;
  std::string crash_;  // of a rank, by itself: the first
  Nanos began_ = 0, ended_ = 0;
  Nanos late_ = 0;  // by which something came after it was due, at worst
  bool hangs_ = false;
  std::string waits_;  // who, and in what
};

}  // namespace gccl::real
