// What faults do to a cluster's links in the course of time, for engines whose links have a capacity.
#pragma once

#include <map>
#include <memory>

#include "sim/engine/link_names.hpp"
#include "sim/engine/time.hpp"
#include "sim/engine/workload.hpp"

namespace gccl::sim {

class LinkChanges {
 public:
  // The changes that the workload's faults make; a paused rank's card neither sends, receives nor passes on.
  explicit LinkChanges(const Workload& workload);

  struct Change {
    LinkId link;
    double bandwidth_GBps;  // 0: it is down
    Nanos extra_ns;         // of latency, above the link's own
  };
  struct Instant {
    Nanos at = 0;
    std::vector<Change> changes;
    bool reroutes = false;  // from then on messages avoid `dead`
    std::vector<LinkId> dead;
    std::map<LinkId, double> degraded;  // what is left of the bandwidth of links that carry less, and are not down
  };
  const std::vector<Instant>& instants() const { return instants_; }  // by time
  Nanos first() const { return first_; }                              // begin of the first fault; -1: there is none
  // Of each degraded link's bandwidth, in the mean until then.
  std::map<LinkId, double> mean_shares(Nanos until) const;
  Nanos last() const { return last_; }  // when all that ends has ended and all messages go their ways

 private:
  std::vector<Instant> instants_;
  Nanos first_ = -1, last_ = 0;
};

// Ways between cards that avoid links: the fewest links, and among those of one length one by the pair of cards, so
// that pairs spread over the switches that are left.
class Detours {
 public:
  explicit Detours(const Cluster& cluster) : cluster_(cluster) {}

  void avoid(const std::vector<LinkId>& dead);
  // Changes the route where it takes a link to be avoided. Ways through other nodes than the two cards' are none: no
  // host forwards what belongs to others; nor are ways over a NIC that do not take its cable. Where there is no other
  // way it stays as it is.
  void around(Card from, Card to, std::vector<LinkId>* route);
  std::uint64_t made() const { return made_; }  // pairs of cards that took another way

 private:
  const Cluster& cluster_;
  std::unique_ptr<LinkNames> names_;
  std::vector<std::vector<LinkId>> out_;  // by place
  std::vector<bool> dead_;
  bool any_ = false;
  std::uint64_t made_ = 0;
  std::map<std::pair<Card, Card>, std::vector<LinkId>> known_;
};

}  // namespace gccl::sim
