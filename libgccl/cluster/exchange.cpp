#include "libgccl/cluster/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cost/pipelined.hpp"

namespace gccl {
namespace {

// A dragonfly's 64 take 3,000 instants, 20 ms; regular clusters' as many as they have turns.
constexpr std::size_t kMembersMax = 64;
// What is left of a message that ends with others.
constexpr double kLeast = 2e-2;
// A member's message waits for the one before on the same narrowest link, unless another link holds that one up to less
// than so much of its rate there: as on the engines whose messages share links fairly (sim/engine/shared_network.hpp).
constexpr double kHeldUp = 0.4;

// Messages of one byte, whose bytes share each link max-min fairly; latencies take no time.
class Exchange {
 public:
  Exchange(const Part& cluster, const Groups& groups, Rank nodes) : cluster_(cluster) {
    for (const auto& g : groups)
      for (Rank r = 0; r < g.size(); ++r) {
        members_.push_back({.group = &g, .first = members_.size() - r, .turns = Turns(nodes, Rank(g.size()), r)});
        members_.back().arrived.resize(g.size());
        members_.back().awaited.resize(g.size());
      }
  }

  double stretch() {
    double time = 0, busiest = 0;
    for (Member& m : members_) issue(m);
    for (Member& m : members_) go_on(m);
    while (!flowing_.empty()) {
      share_links();
      double next = INFINITY;
      for (const std::size_t f : flowing_) next = std::min(next, messages_[f].left / messages_[f].rate);
      time += next;
      std::vector<std::size_t> ended;
      std::erase_if(flowing_, [&](std::size_t f) {
        Message& m = messages_[f];
        m.left -= m.rate * next;
        if (m.left > kLeast) return false;
        ended.push_back(f);
        return true;
      });
      for (const std::size_t f : ended) end(f);
      for (const std::size_t f : ended) issue(members_[messages_[f].from]), issue(members_[messages_[f].to]);
      for (const std::size_t f : ended) go_on(members_[messages_[f].from]), go_on(members_[messages_[f].to]);
    }
    for (const Shared& l : links_) busiest = std::max(busiest, l.carried / l.bandwidth);
    return busiest > 0 ? std::max(1.0, time / busiest) : 1;
  }

 private:
  struct Shared {  // a link
    double bandwidth;
    double carried = 0;                // by all messages
    std::vector<std::size_t> flowing;  // over it
    // While rates are found: of its bandwidth, and what those without a rate are and weigh.
    double left = 0, weight = 0;
    std::size_t without = 0;
  };
  struct Message {
    std::size_t from, to;  // members
    Rank turn;
    double weight = 1, left = 1, rate = 0;
    std::size_t narrowest = 0;
    std::vector<std::size_t> links{};
  };
  struct Member {
    const std::vector<Card>* group;
    std::size_t first;  // member of it
    Turns turns;
    Rank step = 0;                                  // the next one: of each turn a send, and then a receive
    unsigned busy = 0;                              // steps begun and not ended
    std::vector<bool> arrived{}, awaited{};         // by turn: the message to it, and whether a step waits for that
    std::vector<std::size_t> waiting{}, flowing{};  // its messages
  };

  // Begins steps while the window has places.
  void issue(Member& m) {
    const std::vector<Card>& g = *m.group;
    const std::size_t self = std::size_t(&m - members_.data());
    for (; m.busy < unsigned(kStepsInFlight) && m.step < 2 * (g.size() - 1); ++m.step) {
      const Rank turn = m.step / 2 + 1;
      if (m.step % 2 == 1) {
        m.awaited[turn] = !m.arrived[turn];
        m.busy += m.awaited[turn];
      } else if (const std::size_t to = m.first + m.turns[turn].to; g[to - m.first] == g[self - m.first]) {
        arrive(members_[to], turn);
      } else {
        m.waiting.push_back(messages_.size());
        ++m.busy;
        add({.from = self, .to = to, .turn = turn}, g[self - m.first], g[to - m.first]);
      }
    }
  }
  void add(Message m, Card from, Card to) {
    cluster_.route(from, to, route_);
    m.weight = 1 / cluster_.way(from, to).efficiency;
    for (const LinkId l : route_) {
      const auto [at, fresh] = number_.try_emplace(l, links_.size());
      if (fresh) links_.push_back({.bandwidth = cluster_.bandwidth_GBps(l)});
      links_[at->second].carried += m.weight;
      m.links.push_back(at->second);
    }
    m.narrowest = *std::ranges::min_element(m.links, {}, [&](std::size_t l) { return links_[l].bandwidth; });
    messages_.push_back(std::move(m));
  }
  static void arrive(Member& m, Rank turn) {
    m.arrived[turn] = true;
    if (m.awaited[turn]) --m.busy;
  }

  // Lets those of its messages enter whose turn it is.
  void go_on(Member& m) {
    for (std::size_t i = 0; i < m.waiting.size();) {
      const std::size_t next = m.waiting[i];
      const auto behind = [&](std::size_t w) { return messages_[w].narrowest == messages_[next].narrowest; };
      const auto in_its_way = [&](std::size_t f) {
        return behind(f) && (messages_[f].to == messages_[next].to || !held_up(messages_[f]));
      };
      if (std::any_of(m.waiting.begin(), m.waiting.begin() + std::ptrdiff_t(i), behind) ||
          std::ranges::any_of(m.flowing, in_its_way)) {
        ++i;
        continue;
      }
      m.waiting.erase(m.waiting.begin() + std::ptrdiff_t(i));
      m.flowing.push_back(next);
      flowing_.push_back(next);
      for (const std::size_t l : messages_[next].links) links_[l].flowing.push_back(next);
    }
  }
  bool held_up(const Message& m) const {
    const auto rate = [&](std::size_t l) { return links_[l].bandwidth / double(links_[l].flowing.size()); };
    return std::ranges::any_of(m.links, [&](std::size_t l) { return rate(l) < kHeldUp * rate(m.narrowest); });
  }
  void end(std::size_t message) {
    Message& m = messages_[message];
    for (const std::size_t l : m.links) std::erase(links_[l].flowing, message);
    std::erase(members_[m.from].flowing, message);
    --members_[m.from].busy;
    arrive(members_[m.to], m.turn);
  }

  // Max-min: of the links with messages without a rate, the one that has least for each gives them that.
  void share_links() {
    used_.clear();
    for (std::size_t l = 0; l < links_.size(); ++l) {
      Shared& s = links_[l];
      if (s.flowing.empty()) continue;
      used_.push_back(l);
      s.left = s.bandwidth, s.weight = 0, s.without = s.flowing.size();
      for (const std::size_t f : s.flowing) s.weight += messages_[f].weight, messages_[f].rate = 0;
    }
    for (std::size_t without = flowing_.size(); without > 0;) {
      const auto share = [&](std::size_t l) { return links_[l].left / links_[l].weight; };
      std::erase_if(used_, [&](std::size_t l) { return links_[l].without == 0; });
      const double least = share(*std::ranges::min_element(used_, {}, share));
      for (const std::size_t l : used_) {
        if (links_[l].without == 0 || share(l) > least * (1 + 1e-9)) continue;
        for (const std::size_t f : links_[l].flowing) {
          Message& m = messages_[f];
          if (m.rate > 0) continue;
          m.rate = least;
          --without;
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
  std::vector<Member> members_;
  std::vector<Message> messages_;
  std::vector<std::size_t> flowing_;
  std::vector<Shared> links_;
  std::unordered_map<LinkId, std::size_t> number_;
  std::vector<LinkId> route_;
  std::vector<std::size_t> used_;
};

}  // namespace

double exchange_stretch(const Part& cluster, const Groups& groups, Rank nodes) {
  std::size_t members = 0;
  for (const auto& g : groups) members += g.size();
  return members <= kMembersMax ? Exchange(cluster, groups, nodes).stretch() : 1;
}

}  // namespace gccl
