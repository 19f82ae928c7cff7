// Messages that are all on their way at once, and what they take of a cluster's links.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "libgccl/cluster/part.hpp"

namespace gccl {

// One message alone.
Hop hop_over(const Part& cluster, Card from, Card to, const std::vector<LinkId>& route);

// Messages that are all on their way at once.
class Messages {
 public:
  explicit Messages(const Part& cluster) : cluster_(cluster), load_(zeros(cluster.links())) {}
  Messages(Messages&&) = default;
  ~Messages();

  // The message's alpha. It has so many bytes, where others have one.
  double add(Card from, Card to, double bytes = 1) {
    if (from == to) return 0;
    cluster_.route(from, to, route_);
    hops_.push_back(hop_over(cluster_, from, to, route_));
    take(route_, bytes / cluster_.way(from, to).efficiency);
    return hops_.back().alpha_ns;
  }
  // The links of what was added last.
  std::span<const LinkId> last_route() const {
    const std::size_t messages = ends_.size();
    return std::span(links_).subspan(messages > 1 ? ends_[messages - 2] : 0);
  }
  // What was added last to `others`, between these two, here with so many bytes.
  void add_last_of(const Messages& others, Card from, Card to, double bytes) {
    if (from == to) return;
    hops_.push_back(others.hops_.back());
    take(others.last_route(), bytes / cluster_.way(from, to).efficiency);
  }
  bool empty() const { return hops_.empty(); }

  // The most a link has to carry when each message has one byte.
  double busiest_ns() const {
    double most = 0;
    for (const LinkId l : used_) most = std::max(most, time(l));
    return most;
  }
  // The least alpha of those that pass the busiest link.
  double first_on_busiest_ns() const {
    if (used_.empty()) return alone().alpha_ns;
    const LinkId busiest =
        *std::max_element(used_.begin(), used_.end(), [&](LinkId a, LinkId b) { return time(a) < time(b); });
    double least = INFINITY;
    for (std::size_t i = 0, l = 0; i < hops_.size(); ++i)
      for (; l < ends_[i]; ++l)
        if (links_[l] == busiest) least = std::min(least, hops_[i].alpha_ns);
    return least;
  }
  Hop slowest() const { return {alone().alpha_ns, busiest_ns()}; }
  // The i-th message, alone or `shared` with what the others take of its links.
  Hop at(std::size_t i, bool shared) const {
    Hop hop = hops_[i];
    for (std::size_t l = i ? ends_[i - 1] : 0; shared && l < ends_[i]; ++l)
      hop.beta_ns_per_byte = std::max(hop.beta_ns_per_byte, time(links_[l]));
    return hop;
  }
  // As if each were alone.
  Hop alone() const {
    Hop worst{};
    for (const Hop& h : hops_) {
      worst.alpha_ns = std::max(worst.alpha_ns, h.alpha_ns);
      worst.beta_ns_per_byte = std::max(worst.beta_ns_per_byte, h.beta_ns_per_byte);
    }
    return worst;
  }
  // Shared: with what the other messages take of its links.
  Hop mean(bool shared) const {
    Hop sum{};
    for (std::size_t i = 0; i < hops_.size(); ++i) {
      const Hop hop = at(i, shared);
      sum.alpha_ns += hop.alpha_ns;
      sum.beta_ns_per_byte += hop.beta_ns_per_byte;
    }
    const double n = double(std::max<std::size_t>(hops_.size(), 1));
    return {sum.alpha_ns / n, sum.beta_ns_per_byte / n};
  }

 private:
  void take(std::span<const LinkId> route, double weight) {
    for (const LinkId l : route) {
      if (load_[l] == 0) used_.push_back(l);
      load_[l] += weight;
      links_.push_back(l);
    }
    ends_.push_back(links_.size());
  }
  // Arrays are used again, as a cost model makes hundreds of them: on the few cards of a big cluster clearing them took
  // longer than all else. Kept are those that are short enough.
  static std::vector<double> zeros(std::size_t links);

  double time(LinkId l) const { return load_[l] / cluster_.bandwidth_GBps(l); }

  const Part& cluster_;
  std::vector<double> load_;  // by link: bytes on it when each message has one
  std::vector<LinkId> used_, route_, links_;
  std::vector<std::size_t> ends_;
  std::vector<Hop> hops_;
};

}  // namespace gccl
