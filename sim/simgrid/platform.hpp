// The SimGrid platform of a cluster: its links, in one zone whose routes are handed in rather than looked up.
#pragma once

#include <memory>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <span>
#include <vector>

#include "libgccl/cluster/cluster.hpp"

namespace gccl::sim {

// A network model asks the zone for the route between two hosts whenever a flow starts. The code that starts a flow
// knows the route already and leaves it in `route`. So two hosts stand for all cards, and nothing grows with cards^2.
class HandedRoute final : public simgrid::kernel::routing::NetZoneImpl {
 public:
  HandedRoute() : NetZoneImpl("cluster") {}
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> route;

 private:
  void get_local_route(const simgrid::kernel::routing::NetPoint*, const simgrid::kernel::routing::NetPoint*,
                       simgrid::kernel::routing::Route* into, double*) override {
    into->link_list_ = route;
  }
};

// SimGrid's engine is a singleton that cannot be started twice: at most one of these in the life of a process.
// Its settings: CM02 without correction factors, cross-traffic and TCP windows; times resolved down to 0.1 ns; no
// word on standard output or error; the process keeps its own signal handlers. Its links have no latency: see Flows.
class SimGridPlatform {
 public:
  // Throws std::logic_error the second time, and std::runtime_error when the library at run time is another version
  // than the headers.
  explicit SimGridPlatform(const Links& links);

  // Makes the next flow from `from` to `to` take this route.
  void hand_over(std::span<const LinkId> route) {
    zone->route.clear();
    for (LinkId l : route) zone->route.push_back(link(l));
  }

  // One more link than those of the cluster, left to the self-check: 2^40 bytes/s.
  LinkId spare() const { return LinkId(bandwidths_.size() - 1); }

  std::unique_ptr<simgrid::s4u::Engine> engine;
  HandedRoute* zone = nullptr;  // owned by SimGrid, as are the hosts and links
  simgrid::s4u::Host *from = nullptr, *to = nullptr;

 private:
  using LinkImpl = simgrid::kernel::resource::StandardLinkImpl;

  // SimGrid's, made when a route first needs it, where SimGrid allows that (before 3.34): 16 ranks use some hundred of
  // the 20,000 links of a cluster, and each takes SimGrid a microsecond and a kilobyte.
  LinkImpl* link(LinkId l) { return links_[l] ? links_[l] : links_[l] = make_link(l); }
  LinkImpl* make_link(LinkId l);

  std::vector<double> bandwidths_;  // bytes/s
  std::vector<LinkImpl*> links_;    // null until needed
};

}  // namespace gccl::sim
