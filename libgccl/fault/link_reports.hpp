// One rank's part in finding slow links, without I/O: when all ranks report, what this one reports of its links, and
// what follows from all reports.
#pragma once

#include <span>
#include <vector>

#include "libgccl/fault/arrivals.hpp"
#include "libgccl/fault/link_health.hpp"
#include "libgccl/select/detours.hpp"

namespace gccl::fault {

// Of one communicator. Ranks report between two collectives: before the one with which so many bytes have been asked
// for since the last report. How many follows from what the ranks ask for and have reported, as collectives are carried
// out, so that all ranks report before the same one.
class LinkReports {
 public:
  // As LinkHealth; `avoids`: calls are planned around slow links.
  LinkReports(Rank rank, Rank ranks, double factor, double modelled, bool avoids, Nanos now);

  // A collective is the next to be carried out. True: a report comes first.
  bool due(Collective kind, Count count, std::uint32_t element_bytes);
  // `arrivals`: by rank.
  LinkReport report(std::span<const Arrivals> arrivals, Nanos now);
  // What all ranks have reported, by rank. Returns what has changed.
  std::vector<LinkHealth::Link> take(std::span<const LinkReport> reports);

  const LinkHealth& health() const { return health_; }
  // The pairs to avoid have changed with the latest reports.
  bool plans_change() const { return avoids_ && health_.avoided_changed(); }
  std::vector<SlowPair> to_avoid() const;

 private:
  const Rank rank_;
  const bool avoids_;
  LinkHealth health_;
  std::vector<std::uint64_t> usual_;  // by rank: what the link from it reached when that was seen last; 0: never
  Nanos reported_;
  std::uint64_t bytes_ = 0, bytes_due_;
};

}  // namespace gccl::fault
