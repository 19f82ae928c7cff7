// Messages that share links fairly, played without latencies.
#pragma once

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "libgccl/cluster/part.hpp"

namespace gccl {

// A sender's message waits for the one before on the same narrowest link, unless another link holds that one up to less
// than so much of its rate there. So do those of the engines whose messages share links fairly.
constexpr double kHeldUpElsewhere = 0.4;

// Messages whose bytes share each link max-min fairly; latencies take no time.
class FairMessages {
 public:
  explicit FairMessages(const Part& cluster) : cluster_(cluster) {}

  // A message that has not entered its links yet; between two cards. Returns its number, from 0 on.
  std::size_t add(Card from, Card to, double bytes = 1) {
    cluster_.route(from, to, route_);
    Message m{.weight = 1 / cluster_.way(from, to).efficiency, .bytes = bytes, .left = bytes};
    for (const LinkId l : route_) {
      const auto [at, fresh] = number_.try_emplace(l, links_.size());
      if (fresh) links_.push_back({.bandwidth = cluster_.bandwidth_GBps(l)});
      links_[at->second].carried += bytes * m.weight;
      m.links.push_back(at->second);
    }
    if (m.links.empty())
      m.left = 0;
    else
      m.narrowest = *std::ranges::min_element(m.links, {}, [&](std::size_t l) { return links_[l].bandwidth; });
    messages_.push_back(std::move(m));
    return messages_.size() - 1;
  }
  void enter(std::size_t message) {
    flowing_.push_back(message);
    for (const std::size_t l : messages_[message].links) links_[l].flowing.push_back(message);
  }
  std::size_t narrowest(std::size_t message) const { return messages_[message].narrowest; }
  bool held_up(std::size_t message) const {
    const Message& m = messages_[message];
    const auto rate = [&](std::size_t l) { return links_[l].bandwidth / double(links_[l].flowing.size()); };
    return std::ranges::any_of(m.links, [&](std::size_t l) { return rate(l) < kHeldUpElsewhere * rate(m.narrowest); });
  }

  // Those that end next; none where none is on its way.
  std::vector<std::size_t> advance() {
    share_links();
    double next = INFINITY;
    for (const std::size_t f : flowing_) next = std::min(next, messages_[f].left / messages_[f].rate);
    std::vector<std::size_t> ended;
    std::erase_if(flowing_, [&](std::size_t f) {
      Message& m = messages_[f];
      m.left -= m.rate * next;
      if (m.left > kLeast * m.bytes) return false;
      for (const std::size_t l : m.links) std::erase(links_[l].flowing, f);
      ended.push_back(f);
      return true;
    });
    if (!ended.empty()) time_ += next;
    return ended;
  }
  double time_ns() const { return time_; }
  // So far, by what the busiest link has to carry.
  double stretch() const {
    double busiest = 0;
    for (const Shared& l : links_) busiest = std::max(busiest, l.carried / l.bandwidth);
    return busiest > 0 ? std::max(1.0, time_ / busiest) : 1;
  }

 private:
  struct Shared {  // a link
    double bandwidth;
    double carried = 0;                  // by all messages
    std::vector<std::size_t> flowing{};  // over it
    // While rates are found: of its bandwidth, and what those without a rate are and weigh.
    double left = 0, weight = 0;
    std::size_t without = 0;
  };
  struct Message {
    double weight = 1, bytes = 1, left = 1, rate = 1;
    std::size_t narrowest = ~std::size_t(0);
    std::vector<std::size_t> links{};
    bool rated = true;
  };

  // Max-min: of the links with messages without a rate, the one that has least for each gives them that.
  void share_links() {
    constexpr double kSame = 1e-9;  // what rounding makes of shares that are equal, or of bandwidths that are used up
    used_.clear();
    for (const std::size_t f : flowing_) {
      Message& m = messages_[f];
      for (const std::size_t l : m.links) {
        m.rated = false;
        Shared& s = links_[l];
        if (s.without++ == 0) used_.push_back(l), s.left = s.bandwidth, s.weight = 0;
        s.weight += m.weight;
      }
    }
    const auto share = [&](std::size_t l) {
      const Shared& s = links_[l];
      return std::max(s.left, kSame * s.bandwidth) / s.weight;
    };
    for (;;) {
      std::erase_if(used_, [&](std::size_t l) { return links_[l].without == 0; });
      if (used_.empty()) return;
      const double least = share(*std::ranges::min_element(used_, {}, share));
      for (const std::size_t l : used_) {
        if (links_[l].without == 0 || share(l) > least * (1 + kSame)) continue;
        for (const std::size_t f : links_[l].flowing) {
          Message& m = messages_[f];
          if (m.rated) continue;
          m.rated = true;
          m.rate = least;
          for (const std::size_t other : m.links) {
            links_[other].left -= least * m.weight;
            links_[other].weight -= m.weight;
            --links_[other].without;
          }
        }
      }
    }
  }

  const Part& cluster_;
  static constexpr double kLeast = 2e-2;  // part of a message that ends with others

  std::vector<Message> messages_;
  std::vector<std::size_t> flowing_;
  std::vector<Shared> links_;
  std::unordered_map<LinkId, std::size_t> number_;
  std::vector<LinkId> route_;
  std::vector<std::size_t> used_;
  double time_ = 0;
};

}  // namespace gccl
