// The order in which every rank meets every other one where their messages do not depend on each other.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

#include "libgccl/schedule/group.hpp"

namespace gccl {

// Positions that follow each other node by node.
struct NodeSpans {
  Rank nodes = 1, size = 0;
  Rank per_node = 0;            // positions of a node; the last one may have fewer
  const Rank* begin = nullptr;  // where it is not null, node k has those from begin[k] to before begin[k + 1] instead
  Rank fullest = 0;             // the fullest node's positions

  static NodeSpans one(Rank size) { return {.size = size, .per_node = std::max<Rank>(size, 1), .fullest = size}; }
  // One node where ranks do not follow each other node by node.
  static NodeSpans of(const View& v) {
    if (!v.by_node || v.nodes <= 1) return one(v.all.size);
    return {v.nodes, v.all.size, v.per_node, v.members ? v.begin : nullptr, v.fullest};
  }
  // Of nodes + 1 places; one node of that size where there are none.
  static NodeSpans of(std::span<const Rank> begin, Rank size) {
    if (begin.empty()) return one(size);
    NodeSpans s{.nodes = Rank(begin.size() - 1), .size = begin.back(), .begin = begin.data()};
    for (Rank k = 0; k < s.nodes; ++k) s.fullest = std::max(s.fullest, s.places(k));
    return s;
  }

  Rank first(Rank node) const { return begin ? begin[node] : node * per_node; }
  Rank places(Rank node) const {
    return begin ? begin[node + 1] - begin[node] : std::min(per_node, size - node * per_node);
  }
  Rank node_of(Rank position) const {
    return begin ? Rank(std::upper_bound(begin, begin + nodes, position) - begin) - 1 : position / per_node;
  }
  bool even() const { return Count(nodes) * fullest == size; }
};

// Steps 0 <= s < steps(): a rank has at most one peer to send to and one to receive from, so no two messages of a step
// are for one rank. Step 0 is the rank itself.
//
// Step s = place * nodes + node: the peer's node is `node` further on, cyclically, and nodes of g ranks each meet by
// their places: the peer's is `place` further on. So all ranks stay on their node in the same steps, one of each
// `nodes`, while their messages to other nodes are on the way. Were the peer s ranks further on, the last ranks of each
// node would cross to the next one in steps in which the first ones stay on theirs and are done at once, and all ranks
// of a node would soon send to the same rank of the next one (64 ranks, 1 MiB blocks, model engine: leonardo 7.7 ms
// instead of 5.8, marenostrum5 3.8 instead of 2.6). NCCL's point-to-point schedule turns likewise.
//
// Of two nodes of different sizes the smaller one counts as many places as the larger one, and at those that it lacks a
// rank meets nobody. A rank that meets nobody goes on at once, and would from then on meet the same ranks as another:
// so the places come in an order in which that happens at even intervals, not several times in a row (12 ranks on two
// nodes of aws-p4de, 64 MiB, flow engine: 8.7 ms, where each peer is one rank further on 13.5).
class Turns {
 public:
  struct Turn {
    Rank to, from;  // positions; the rank's own where it sends nothing, or gets nothing
  };

  explicit Turns(const View& v) : Turns(NodeSpans::of(v), v.all.rank) {}
  // Over a group whose members are all one kind of hop apart.
  explicit Turns(const Group& g) : Turns(NodeSpans::one(g.size), g.rank) {}
  // What `spans` refers to outlives this.
  Turns(const NodeSpans& spans, Rank rank)
      : spans_(turning(spans)),
        even_(spans_.even()),
        rank_(rank),
        node_(spans_.node_of(rank)),
        places_(spans_.places(node_)),
        place_(rank - spans_.first(node_)) {}

  Rank steps() const { return even_ ? spans_.size : spans_.nodes * spans_.fullest; }
  Turn operator[](Rank s) const {
    const Rank nodes = spans_.nodes, node = s % nodes, place = s / nodes;
    const Rank to = node_ < nodes - node ? node_ + node : node_ + node - nodes;
    const Rank from = node_ >= node ? node_ - node : node_ + nodes - node;
    if (even_) return {at(to, (place_ + place) % places_), at(from, (place_ + places_ - place) % places_)};
    return {at(to, met(spans_.places(to), place, true)), at(from, met(spans_.places(from), place, false))};
  }

 private:
  static constexpr Rank kNobody = ~Rank(0);

  // One node where most nodes are so much smaller than the fullest that many steps would have no messages.
  static NodeSpans turning(const NodeSpans& s) {
    return s.even() || Count(s.nodes) * s.fullest <= 4 * Count(s.size) ? s : NodeSpans::one(s.size);
  }
  Rank at(Rank node, Rank place) const { return place == kNobody ? rank_ : spans_.first(node) + place; }
  // The place on a node of so many that this one meets in that round, as the one that sends or the one that receives.
  Rank met(Rank theirs, Rank round, bool sends) const {
    const Rank least = std::min(places_, theirs), most = std::max(places_, theirs);
    if (round >= most) return kNobody;
    const Rank cycle = most / std::gcd(least, most);  // after which multiples of `least` come round again
    const Rank further = Rank((Count(round) * least + round / cycle) % most);
    const Rank other = (place_ + (sends ? further : most - further)) % most;
    return other < theirs ? other : kNobody;
  }

  NodeSpans spans_;
  bool even_;
  Rank rank_, node_, places_, place_;
};

}  // namespace gccl
