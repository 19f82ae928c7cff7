// One rank's part in finding slow links: what it reports, when all ranks report, and what they found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libgccl/communicator/links/health.hpp"
#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/communicator/work.hpp"
#include "libgccl/select/detours.hpp"
#include "libgccl/transports/open_transports.hpp"

namespace gccl {

// Of one communicator, with its lock held. Ranks report between two collectives: before the one with which so many
// bytes have been asked for since the last report. How many follows from what the ranks ask for and have reported, as
// collectives are carried out, so that all ranks report before the same one.
class LinkWatch {
 public:
  // As LinkHealth; `avoids`: calls are planned around slow links.
  LinkWatch(Members members, double factor, double modelled, bool avoids);

  // A collective is the next to be carried out. True: a report comes first.
  bool due(const Work& work);
  LinkReport report(Ports& ports, std::int64_t now_ns);
  // What all ranks have reported; what has changed is logged.
  std::vector<LinkHealth::Link> take(std::span<const LinkReport> reports);

  const LinkHealth& health() const { return health_; }
  // These have changed with the latest reports.
  bool plans_change() const { return avoids_ && health_.avoided_changed(); }
  std::vector<SlowPair> to_avoid() const;
  // "from rank 2 to rank 3, 9.8 MB/s where 1210 MB/s are expected", of all that are slow; empty: none is.
  std::string text() const;

 private:
  std::string text(const LinkHealth::Link& link) const;

  const Members members_;
  const bool avoids_;
  LinkHealth health_;
  std::vector<std::uint64_t> usual_;  // by rank: what the link from it reached when that was seen last; 0: never
  std::int64_t reported_ns_;
  std::uint64_t bytes_ = 0, bytes_due_;
};

// The gathering of all ranks' reports, a collective of its own.
struct LinkExchange {
  explicit LinkExchange(Rank ranks) : all(ranks) {}
  // Its buffers are this object's.
  Work work();

  LinkReport mine;
  std::vector<LinkReport> all;
};

}  // namespace gccl
