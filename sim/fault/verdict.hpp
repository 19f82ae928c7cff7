// What came of a run with faults, from what its ranks saw: the same for simulated ranks and for real ones.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "sim/fault/effects.hpp"
#include "sim/fault/faults.hpp"

namespace gccl::sim {

// A process that carried out the program of a run, and what it saw. Times count from any moment, the same for all.
struct RankWitness {
  enum class End : std::uint8_t {
    none,      // it crashed, hangs, or was never a member
    finished,  // all operations are complete
    failed,    // they are not, and it knows why
    out,       // it is no member any more: expelled, or without a quorum
    broken,    // by what never may happen
  };
  Rank rank = 0;
  End end = End::none;
  bool first = true;      // of its rank: not one that joined, whose results begin where it did
  bool must_know = true;  // of each failure that others know of
  std::uint32_t epoch = 0;
  Nanos resumed = -1;                  // it began to work in this epoch; -1: it never did
  std::map<Rank, Nanos> knew;          // of failures, first
  std::vector<std::uint32_t> done_in;  // by operation: the epoch in which its result arose; 0: it has none

  bool left() const { return end == End::finished || end == End::failed; }
};

// What was done to ranks that others may take for a failure, and when.
class Hurts {
 public:
  static constexpr Nanos kForGood = INT64_MAX;
  // In the order of times. `by`: those who may take it for a failure; none: all. What is done to a rank that has
  // crashed is done to the process that is started anew, if it lasts until then.
  void hurt(Rank rank, Nanos from, Nanos until, std::vector<Rank> by = {});
  void crashed(Rank rank, Nanos when);
  void started(Rank rank, Nanos when);  // anew
  // To those of these ranks, which live and run, that others do not reach, or not by any of so many helpers.
  void cut(std::span<const Rank> ranks, const IsCut& cut, std::size_t helpers, Nanos from, Nanos until);
  // To each side of a partition by the other one.
  void parted(const std::vector<Rank>& side, Rank ranks, Nanos from, Nanos until);

  bool any(Rank rank) const;
  bool empty() const { return all_.empty(); }
  // Since when that lasted for which `by` called the rank failed at `when`; -1: nothing was done to it.
  Nanos cause(Rank rank, Rank by, Nanos when) const;

 private:
  struct Hurt {
    Rank rank;
    Nanos from, until;
    std::vector<Rank> by;
    bool crash = false;
    bool missed = false;  // no process was there
    bool likely = true;   // that it is taken for a failure; else it may as well go by
  };
  std::vector<Hurt> all_;
  std::set<Rank> gone_;
};

// Fills completed, survivors, out, dead, false_alarms, detection_first, detection, recovery, lost and doubled, and adds
// to events (of first_notified and all_notified) and to violations. All witnesses have as many operations. `hangs`:
// somebody neither ended nor crashed, for whose sake nothing is missed.
// Returns when the last of those that are left was at work in a later epoch than the first; -1: nobody was.
Nanos judge(std::span<const RankWitness> witnesses, bool hangs, const Hurts& hurts, FaultOutcome* out);

// Fills slow_links, link_detection and plans_changed, from its events, which are in the order of their times.
void judge_links(FaultOutcome* out);

}  // namespace gccl::sim
