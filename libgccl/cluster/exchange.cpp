#include "libgccl/cluster/exchange.hpp"

#include <algorithm>

#include "libgccl/algorithms/parts/turns.hpp"
#include "libgccl/cluster/fair_messages.hpp"

namespace gccl {
namespace {

// 64 ranks of a dragonfly take 25 ms, those of a regular cluster 1 ms: there are as many instants as turns.
constexpr std::size_t kMessagesMax = 2048;
constexpr Rank kTurnsMin = 20;
constexpr std::size_t kMembersInChannels = 8;

class Exchange {
 public:
  // The first `turns` turns, in each of so many channels.
  Exchange(const Part& cluster, const Groups& groups, std::span<const Rank> begin, Rank turns, Rank channels = 1)
      : fair_(cluster), turns_(turns) {
    for (Rank c = 0; c < channels; ++c)
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
  struct Member {  // of one channel
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

LinkLoads::Stretch exchange_stretch(const Part& cluster, const Groups& groups, std::span<const Rank> begin) {
  std::size_t members = 0;
  for (const auto& g : groups) members += g.size();
  const Rank turns = Rank(kMessagesMax / std::max<std::size_t>(members, 1));
  if (turns < kTurnsMin) return {};
  LinkLoads::Stretch s{.one = Exchange(cluster, groups, begin, turns).stretch()};
  if (members <= kMembersInChannels)
    for (std::size_t k = 0; k < s.at_once.size(); ++k)
      s.at_once[k] = Exchange(cluster, groups, begin, turns, Rank(2) << k).stretch();
  return s;
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
