#include "libgccl/cluster/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "libgccl/algorithms/parts/turns.hpp"

namespace gccl {
namespace {

// 64 ranks of a dragonfly take 25 ms, those of a regular cluster 1 ms: there are as many instants as turns.
constexpr std::size_t kMessagesMax = 2048;
constexpr Rank kTurnsMin = 20;
// What is left of a message that ends with others.
constexpr double kLeast = 2e-2;

// Messages of one byte, whose bytes share each link max-min fairly; latencies take no time.
class FairMessages {
 public:
  explicit FairMessages(const Part& cluster) : cluster_(cluster) {}

  // A message that has not entered its links yet; between two cards. Returns its number, from 0 on.
  std::size_t add(Card from, Card to) {
    cluster_.route(from, to, route_);
    Message m{.weight = 1 / cluster_.way(from, to).efficiency};
    for (const LinkId l : route_) {
      const auto [at, fresh] = number_.try_emplace(l, links_.size());
      if (fresh) links_.push_back({.bandwidth = cluster_.bandwidth_GBps(l)});
      links_[at->second].carried += m.weight;
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
      if (m.left > kLeast) return false;
      for (const std::size_t l : m.links) std::erase(links_[l].flowing, f);
      ended.push_back(f);
      return true;
    });
    if (!ended.empty()) time_ += next;
    return ended;
  }
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
    double weight = 1, left = 1, rate = 1;
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
  std::vector<Message> messages_;
  std::vector<std::size_t> flowing_;
  std::vector<Shared> links_;
  std::unordered_map<LinkId, std::size_t> number_;
  std::vector<LinkId> route_;
  std::vector<std::size_t> used_;
  double time_ = 0;
};

class Exchange {
 public:
  // The first `turns` turns.
  Exchange(const Part& cluster, const Groups& groups, std::span<const Rank> begin, Rank turns)
      : fair_(cluster), turns_(turns) {
    for (const auto& g : groups)
      for (Rank r = 0; r < g.size(); ++r) {
        const Turns of(NodeSpans::of(begin, Rank(g.size())), r);
        members_.push_back({.group = &g, .first = members_.size() - r, .turns = of, .steps = of.steps()});
        members_.back().arrived.resize(of.steps());
        members_.back().awaited.resize(of.steps());
      }
  }

  double stretch() {
    for (Member& m : members_) issue(m);
    for (Member& m : members_) go_on(m);
    for (;;) {
      const std::vector<std::size_t> ended = fair_.advance();
      if (ended.empty()) return fair_.stretch();
      for (const std::size_t f : ended) end(f);
      const std::size_t known = sent_.size();
      for (const std::size_t f : ended) issue(members_[sent_[f].from]), issue(members_[sent_[f].to]);
      for (const std::size_t f : ended) go_on(members_[sent_[f].from]);
      for (std::size_t f = known; f < sent_.size(); ++f) go_on(members_[sent_[f].from]);
    }
  }

 private:
  struct Sent {
    std::size_t from, to;  // members
    Rank turn;
  };
  struct Member {
    const std::vector<Card>* group;
    std::size_t first;  // member of it
    Turns turns;
    Rank steps;                                     // of them
    Rank step = 0;                                  // the next one: of each turn a send, and then a receive
    unsigned busy = 0;                              // steps begun and not ended
    std::vector<bool> arrived{}, awaited{};         // by turn: the message to it, and whether a step waits for that
    std::vector<std::size_t> waiting{}, flowing{};  // its messages
  };

  // Begins steps while the window has places.
  void issue(Member& m) {
    const std::vector<Card>& g = *m.group;
    const std::size_t self = std::size_t(&m - members_.data());
    const Rank turns = std::min(turns_, m.steps - 1), place = Rank(self - m.first);
    for (; m.busy < kInFlight && m.step < 2 * turns; ++m.step) {
      const Rank turn = m.step / 2 + 1;
      const Turns::Turn peers = m.turns[turn];
      if (m.step % 2 == 1) {
        if (peers.from == place) continue;
        m.awaited[turn] = !m.arrived[turn];
        m.busy += m.awaited[turn];
        continue;
      }
      if (peers.to == place) continue;
      const std::size_t to = m.first + peers.to;
      const Card here = g[self - m.first], there = g[to - m.first];
      if (here == there) {
        arrive(members_[to], turn);
        continue;
      }
      m.waiting.push_back(fair_.add(here, there));
      sent_.push_back({.from = self, .to = to, .turn = turn});
      ++m.busy;
    }
  }
  static void arrive(Member& m, Rank turn) {
    m.arrived[turn] = true;
    if (m.awaited[turn]) --m.busy;
  }

  // Lets those of its messages enter whose turn it is.
  void go_on(Member& m) {
    for (std::size_t i = 0; i < m.waiting.size();) {
      const std::size_t next = m.waiting[i];
      const auto behind = [&](std::size_t w) { return fair_.narrowest(w) == fair_.narrowest(next); };
      const auto in_its_way = [&](std::size_t f) {
        return behind(f) && (sent_[f].to == sent_[next].to || !fair_.held_up(f));
      };
      if (std::any_of(m.waiting.begin(), m.waiting.begin() + std::ptrdiff_t(i), behind) ||
          std::ranges::any_of(m.flowing, in_its_way)) {
        ++i;
        continue;
      }
      m.waiting.erase(m.waiting.begin() + std::ptrdiff_t(i));
      m.flowing.push_back(next);
      fair_.enter(next);
    }
  }
  void end(std::size_t message) {
    const Sent& s = sent_[message];
    std::erase(members_[s.from].flowing, message);
    --members_[s.from].busy;
    arrive(members_[s.to], s.turn);
  }

  FairMessages fair_;
  Rank turns_;
  std::vector<Member> members_;
  std::vector<Sent> sent_;  // by message
};

}  // namespace

double exchange_stretch(const Part& cluster, const Groups& groups, std::span<const Rank> begin) {
  std::size_t members = 0;
  for (const auto& g : groups) members += g.size();
  const Rank turns = Rank(kMessagesMax / std::max<std::size_t>(members, 1));
  return turns >= kTurnsMin ? Exchange(cluster, groups, begin, turns).stretch() : 1;
}

double gather_stretch(const Part& cluster, const Groups& groups) {
  double most = 1;
  for (const auto& g : groups) {
    FairMessages fair(cluster);
    std::size_t next = 1, on_their_way = 0;
    const auto go_on = [&] {
      for (; on_their_way < kInFlight && next < g.size(); ++next)
        if (g[next] != g[0]) fair.enter(fair.add(g[next], g[0])), ++on_their_way;
    };
    go_on();
    for (auto ended = fair.advance(); !ended.empty(); ended = fair.advance()) {
      on_their_way -= ended.size();
      go_on();
    }
    most = std::max(most, fair.stretch());
  }
  return most;
}

}  // namespace gccl
