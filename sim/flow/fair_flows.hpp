// Flows of bytes over shared links at max-min fair rates: the flow engine's solver, with SimGrid's results.
#pragma once

#include <span>
#include <stdexcept>
#include <vector>

#include "sim/engine/agenda.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/time.hpp"

namespace gccl::sim {

// Rates are max-min fair when each flow has a bottleneck: its own bound, or a link that is full and on which no flow is
// faster (Bertsekas and Gallager, "Data Networks", 2nd edition, section 6.5.2); there is one such set of rates. So
// after a change only some flows are given new rates, by progressive filling, while the others keep their rates; and
// if every flow whose links that has touched has a bottleneck then, these are the rates. Where one has not, it is given
// a new rate too, and so on. A flow that shares no link, as in rings, costs no more than a look at its links.
class FairFlows {
 public:
  static constexpr Nanos kTimeMax = sim::kTimeMax;
  using Overflow = TimeOverflow;

  explicit FairFlows(const Links& links);

  bool idle() const { return active_ == 0; }
  // Ids are small numbers: there is a place for each up to the largest.
  void start(EventId id, std::span<const LinkId> route, Count bytes, Nanos least_ns, Nanos now);
  Nanos advance(Nanos limit, std::vector<EventId>& ended);
  // The link has this bandwidth from now on; with 0 the flows over it stand still.
  void set_capacity(LinkId link, double GBps, Nanos now);
  double left(EventId id, Nanos now) const;  // bytes that the flow has not carried
  // The rest of a flow in flight takes these links from now on, which are not none.
  void move(EventId id, std::span<const LinkId> route, Nanos now);

 private:
  static constexpr Nanos kNever = kTimeMax;   // nearest_ns returns less
  static constexpr std::uint32_t kOwn = ~0u;  // a bottleneck that is no link: the flow's own bound
  struct Place {
    EventId flow;
    std::uint32_t hop;  // the link's place in its route
  };
  struct alignas(64) SharedLink {
    double capacity;  // bytes/ns
    std::vector<Place> flows;
    bool freed = false;
    std::uint32_t changing = 0;  // of its flows
    // While rates are found. Of flows that keep theirs, when so many changed: what they leave, the fastest, and the
    // slowest that this link holds back.
    std::uint32_t counted = 0;
    double kept_free = 0, kept_fastest = 0, kept_slowest = 0;
    // What all that have a rate leave, how many still wait for one, the fastest, and what this link gives those that it
    // holds back.
    double free = 0;
    std::uint32_t waiting = 0;
    double fastest = 0, held = 0;
  };
  struct Hop {
    LinkId link;
    std::uint32_t place;  // in the link's flows
  };
  // What is read again and again while rates are found.
  struct Rate {
    double value = 0;  // bytes/ns
    std::uint32_t bottleneck = kOwn;
    bool changing = false;  // it is being given a rate
    bool fixed = false;     // and has it
  };
  struct alignas(64) Flow {
    std::uint32_t first = 0, hops = 0, room = 0;  // its route in hops_, and how long that may be there
    double left = 0, bound = 0;                   // bytes, bytes/ns
    double since = 0;                             // `left` is of then
    double ends = 0;                              // at its rate
    Nanos instant = -1;                           // in which it ends, or kNever; -1: it is not in flight
    Nanos noted = -1;  // its first entry in the agenda, which may be earlier than that; -1: none
  };
  struct Share {
    double rate;
    std::uint32_t link, flow;  // flow: whose bound it is, where link is kOwn
    static bool later(const Share& a, const Share& b) { return a.rate > b.rate; }
  };

  std::span<const Hop> route(EventId id) const { return {&hops_[flows_[id].first], flows_[id].hops}; }
  void fetch_ahead(std::span<const EventId> ids, std::size_t i) const;
  void enter(EventId id, std::span<const LinkId> route);
  void take_earliest(std::vector<EventId>& ended);
  void set_rates();
  void meet(EventId id);
  void count_kept(LinkId link);
  void fill();
  Share next_share(std::size_t& next);
  bool add_unfair();
  void change(EventId id);
  void change_held(LinkId link);
  void fix(EventId id, double rate, std::uint32_t bottleneck);
  void schedule(EventId id, double rate);
  void note(EventId id);
  void finish(EventId id);
  void leave(EventId id);
  void change_freed();

  std::vector<SharedLink> links_;
  std::vector<Flow> flows_;  // by id
  std::vector<Rate> rates_;  // by id
  std::vector<Hop> hops_;
  std::size_t active_ = 0;
  double clock_ = 0;               // ns; flows end between two nanoseconds, or trees would drift
  Agenda<EventId> ends_;           // by instant; entries that are not their flow's first one are stale
  std::vector<EventId> batch_;     // of it
  std::vector<EventId> changing_;  // flows that need a new rate
  std::vector<double> before_;     // their rates until now
  std::vector<Share> bounds_;      // those of these flows that may hold them back
  std::vector<LinkId> touched_;    // the links of these
  std::vector<LinkId> freed_;      // those whose flows have ended
  std::vector<Share> shares_;      // the least first
  std::vector<Share> grown_;       // a heap, the least first: links that give more than they have in shares_
};

}  // namespace gccl::sim
