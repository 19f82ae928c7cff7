// One rank's part in finding slow links: what it reports, when all ranks report, and what they found.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libgccl/communicator/recovery/members.hpp"
#include "libgccl/communicator/work.hpp"
#include "libgccl/fault/link_reports.hpp"
#include "libgccl/transports/open_transports.hpp"

namespace gccl {

// Of one communicator, with its lock held: fault::LinkReports over its ports and calls.
class LinkWatch {
 public:
  LinkWatch(Members members, double factor, double modelled, bool avoids);

  // A collective is the next to be carried out. True: a report comes first.
  bool due(const Work& work) { return reports_.due(work.call.kind, work.call.count, work.elements.bytes); }
  fault::LinkReport report(Ports& ports, std::int64_t now_ns);
  // What all ranks have reported; what has changed is logged.
  std::vector<fault::LinkHealth::Link> take(std::span<const fault::LinkReport> reports);

  const fault::LinkHealth& health() const { return reports_.health(); }
  bool plans_change() const { return reports_.plans_change(); }
  std::vector<SlowPair> to_avoid() const { return reports_.to_avoid(); }
  // "from rank 2 to rank 3, 9.8 MB/s where 1210 MB/s are expected", of all that are slow; empty: none is.
  std::string text() const;

 private:
  std::string text(const fault::LinkHealth::Link& link) const;

  const Members members_;
  fault::LinkReports reports_;
  // The thread that reported last, and how long it had starved by then.
  std::thread::id reporter_;
  std::uint64_t starved_ns_ = 0;
};

// The gathering of all ranks' reports, a collective of its own.
struct LinkExchange {
  explicit LinkExchange(Rank ranks) : all(ranks) {}
  // Before that call, which errors name where the ranks' calls differ. Its buffers are this object's.
  Work work(const Descriptor& before);

  fault::LinkReport mine;
  std::vector<fault::LinkReport> all;
};

}  // namespace gccl
