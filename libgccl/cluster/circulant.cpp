#include "libgccl/cluster/circulant.hpp"

#include <bit>

#include "libgccl/algorithms/parts/halving.hpp"
#include "libgccl/cluster/fair_messages.hpp"

namespace gccl {
namespace {

// Of 100 ranks the rounds of three protocols take 0.09 s to play, as long as all else that a plan needs.
constexpr std::size_t kMembersMost = 48;

using Members = std::vector<const std::vector<Card>*>;  // of groups of one size

// The rounds in the order in which they are carried out.
struct Shape {
  struct Round {
    Span span;
    bool gathers;
  };
  Rank n;
  std::vector<Round> rounds;

  Shape(Rank members, bool gathers) : n(members) {
    const auto halving = unsigned(std::bit_width(n - 1));
    for (unsigned k = 0; k < halving; ++k) rounds.push_back({halving_span(n, k), false});
    for (unsigned k = halving; gathers && k-- > 0;) rounds.push_back({halving_span(n, k), true});
  }
  // Whether what came in round j is part of what is sent in round k, a later one.
  bool passes_on(std::size_t k, std::size_t j) const {
    const Round &now = rounds[k], &before = rounds[j];
    if (now.gathers) return !before.gathers || before.span.distance < now.span.length;
    return now.span.distance < before.span.length;
  }
  std::size_t peer(std::size_t i, std::size_t k) const {
    const Rank d = rounds[k].span.distance;
    return (i + (rounds[k].gathers ? n - d : d)) % n;
  }
  // Parts from the last one on to the first are a message of their own.
  bool two_messages(std::size_t i, std::size_t k) const {
    return (rounds[k].gathers ? i : peer(i, k)) + rounds[k].span.length > n;
  }
};

std::vector<Messages> shifts_of(const Part& cluster, const Members& groups, const Shape& shape) {
  std::vector<Messages> shifts;
  for (std::size_t k = 0; k < shape.rounds.size(); ++k) {
    shifts.emplace_back(cluster);
    for (const auto* g : groups)
      for (std::size_t i = 0; i < shape.n; ++i) shifts.back().add((*g)[i], (*g)[shape.peer(i, k)]);
  }
  return shifts;
}

// What each round adds to the longest way of those whose parts it passes on, of messages without bytes.
std::vector<double> latencies(const Part& cluster, const Members& groups, const Shape& shape,
                              const std::vector<Messages>& shifts) {
  const std::size_t rounds = shape.rounds.size();
  std::vector<double> way(rounds), added(rounds);
  std::vector<std::size_t> message(rounds);
  for (const auto* g : groups) {
    std::vector<std::vector<double>> arrived(rounds, std::vector<double>(shape.n));  // by round and member
    for (std::size_t k = 0; k < rounds; ++k)
      for (std::size_t i = 0; i < shape.n; ++i) {
        const std::size_t to = shape.peer(i, k);
        if ((*g)[to] == (*g)[i]) continue;
        double begins = 0;
        for (std::size_t j = 0; j < k; ++j)
          if (shape.passes_on(k, j)) begins = std::max(begins, arrived[j][i]);
        const CardCosts from = cluster.costs((*g)[i]), at = cluster.costs((*g)[to]);
        const double gap = shape.two_messages(i, k) ? double(std::max(from.overhead_ns, at.receive_overhead_ns)) : 0;
        arrived[k][to] = begins + shifts[k].at(message[k]++, false).alpha_ns + gap;
        way[k] = std::max(way[k], arrived[k][to]);
      }
  }
  for (std::size_t k = 0; k < rounds; ++k) {
    double before = 0;
    for (std::size_t j = 0; j < k; ++j)
      if (shape.passes_on(k, j)) before = std::max(before, way[j]);
    added[k] = std::max(0.0, way[k] - before);
  }
  return added;
}

// All rounds where bytes alone take time, of a byte for each part.
class Play {
 public:
  Play(const Part& cluster, const Members& groups, const Shape& shape) : fair_(cluster), shape_(shape) {
    for (const auto* g : groups)
      for (std::size_t i = 0; i < shape.n; ++i)
        members_.push_back(
            {.group = g, .first = members_.size() - i, .arrived = std::vector<bool>(shape.rounds.size())});
  }
  double time_ns() {
    for (std::size_t m = 0; m < members_.size(); ++m) send(m);
    for (auto ended = fair_.advance(); !ended.empty(); ended = fair_.advance()) {
      for (const std::size_t f : ended) {
        members_[sent_[f].from].sends = false;
        members_[sent_[f].to].arrived[sent_[f].round] = true;
      }
      for (const std::size_t f : ended) send(sent_[f].from), send(sent_[f].to);
    }
    return fair_.time_ns();
  }

 private:
  struct Sent {
    std::size_t from, to, round;
  };
  struct Member {
    const std::vector<Card>* group;
    std::size_t first;            // member of it
    std::vector<bool> arrived{};  // by round
    std::size_t round = 0;        // the next one to send
    bool sends = false;           // the one before
  };

  // The next round's message, once the one before has left and what it passes on is there.
  void send(std::size_t self) {
    Member& m = members_[self];
    if (m.sends || m.round == shape_.rounds.size()) return;
    for (std::size_t j = 0; j < m.round; ++j)
      if (shape_.passes_on(m.round, j) && !m.arrived[j]) return;
    const std::size_t place = self - m.first, to = shape_.peer(place, m.round);
    fair_.enter(fair_.add((*m.group)[place], (*m.group)[to], shape_.rounds[m.round].span.length));
    sent_.push_back({self, m.first + to, m.round});
    m.sends = true;
    ++m.round;
  }

  FairMessages fair_;
  const Shape& shape_;
  std::vector<Member> members_;
  std::vector<Sent> sent_;  // by message
};

Members largest_of(const Groups& groups) {
  Members members;
  for (const auto& g : groups)
    if (g.size() == largest(groups)) members.push_back(&g);
  return members;
}

// Of halving's rounds, or of what the others add to them, in their order.
std::vector<Hop> hops_of(const Part& cluster, const Groups& groups, bool gathers) {
  const Rank n = Rank(largest(groups));
  if (std::has_single_bit(n)) return {};
  const Members members = largest_of(groups);
  const Shape shape(n, gathers);
  const std::vector<Messages> shifts = shifts_of(cluster, members, shape);
  const std::vector<double> added = latencies(cluster, members, shape, shifts);
  std::vector<Hop> hops;
  Rounds bytes(n, 1, CostModel::bare(0, 0, 1), !gathers, false);
  for (std::size_t k = 0; k < shifts.size(); ++k) {
    const Shape::Round& r = shape.rounds[k];
    if (r.gathers != gathers) continue;
    hops.push_back({added[k], shifts[k].busiest_ns()});
    bytes.add(r.span, r.span.length, {0, hops.back().beta_ns_per_byte});
  }
  if (!cluster.everything() || members.size() * n > kMembersMost || bytes.end() <= 0) return hops;
  double played = Play(cluster, members, shape).time_ns();
  if (gathers) played = std::max(0.0, played - Play(cluster, members, Shape(n, false)).time_ns());
  for (Hop& h : hops) h.beta_ns_per_byte *= played / bytes.end();
  return hops;
}

}  // namespace

std::vector<Hop> circulant_halving(const Part& cluster, const Groups& groups) {
  return hops_of(cluster, groups, false);
}

std::vector<Hop> circulant_doubling(const Part& cluster, const Groups& groups) {
  std::vector<Hop> hops = hops_of(cluster, groups, true);
  std::ranges::reverse(hops);
  return hops;
}

}  // namespace gccl
