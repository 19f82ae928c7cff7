// The hops between the members of a group, by distance in the group's order, for closed forms.
#pragma once

#include <bit>

#include "libgccl/cost/cost_model.hpp"
#include "libgccl/schedule/call.hpp"

namespace gccl {

// The way of a tree's messages: from its root, or to it.
enum class Tree : std::uint8_t { down, up };

// All ranks of a communicator as its View describes them, or a group whose members are all one kind of hop apart.
class Paths {
 public:
  Paths(const View& v, const CostModel& m) : model_(&m), view_(&v), traffic_(&m.all) {}
  Paths(const Hop& every, const LinkLoads& traffic, const CostModel& m)
      : model_(&m), every_(&every), traffic_(&traffic) {}

  const CostModel& model() const { return *model_; }
  // That send at once.
  Rank channels() const { return view_ ? view_->channels : 1; }
  // Whether all ranks are on one; of a group nobody knows.
  bool one_node() const { return view_ && view_->nodes == 1; }
  // While every rank exchanges with the one at rank xor distance, or sends to the one at rank + distance, at once.
  const Hop& at(Count distance) const {
    if (traffic_->known()) return LinkLoads::over(*traffic_->exchange, distance);
    return every_ ? *every_ : model_->at(*view_, distance);
  }
  const Hop& shift(Count distance) const {
    if (traffic_->known()) return LinkLoads::over(traffic_->shifts->plain, distance);
    return every_ ? *every_ : model_->shift(*view_, distance);
  }
  // As `shift`, in a sequence of shifts by powers of two of which each waits for what came in the one before.
  const Hop& round(Count distance) const {
    if (traffic_->known()) return LinkLoads::over(traffic_->shifts->rounds, distance);
    return shift(distance);
  }
  // As `round`, in round k of recursive halving among n members off powers of two, which is over that distance. Known
  // for as many as the largest group has.
  Hop halving(unsigned k, Count distance) const { return of_circulant(traffic_->halving, k, distance); }
  // The same backwards, when the parts are gathered again.
  Hop doubling(unsigned k, Count distance) const { return of_circulant(traffic_->doubling, k, distance); }
  // While every rank has messages to all others on their way.
  const Hop& pairs() const {
    if (traffic_->known()) return traffic_->pairs->mean;
    return every_ ? *every_ : model_->shift(*view_, view_->all.size - 1);
  }
  // The same where each waits for the ones before it: the window is full of what waits for one from another node.
  Hop pairs_in_order() const {
    Hop hop = pairs();
    if (every_ || !traffic_->known() || !model_->inside.known() || view_->nodes <= 1) return hop;
    const double others = view_->all.size - 1, near = view_->fullest - 1;
    // On nodes of different sizes the mean is of fewer near ones.
    const double far =
        near < others ? (others * hop.alpha_ns - near * model_->inside.pairs->mean.alpha_ns) / (others - near) : 0;
    hop.alpha_ns = std::max(hop.alpha_ns, std::min(far, traffic_->fans->in.alpha_ns));
    return hop;
  }
  const Hop& pairs_alone() const { return traffic_->known() ? traffic_->pairs->alone : pairs(); }
  // As pairs_train() asks for it.
  const OnDemand<LinkLoads::Stretch>& pairs_stretch() const { return traffic_->stretch; }
  // As `at`, among those that are left when pairs fold to a power of two: of the first positions every second one.
  Hop survivors(Count distance) const {
    if (traffic_->known()) return LinkLoads::over(*traffic_->survivors, distance);
    return every_ ? *every_ : model_->at(*view_, 2 * distance);
  }
  // While n members, or those of them that are left when they fold, exchange with the one at that distance.
  Hop folded(Rank n, Count distance) const { return std::has_single_bit(n) ? at(distance) : survivors(distance); }
  // While a binomial tree's members at multiples of 2 * distance send to those `distance` further on, or take from
  // them.
  const Hop& binomial(Count distance, Tree way) const {
    if (traffic_->known()) return LinkLoads::over(binomial(way).hops, distance);
    return sparse(distance);
  }
  // How long such a message waits for each byte that its sender sends twice as far before, or takes from half as far.
  double behind(Count distance, Tree way) const {
    if (traffic_->known()) return LinkLoads::over(binomial(way).behind_ns_per_byte, distance);
    const Hop &near = sparse(distance), &far = sparse(2 * distance);
    return near.alpha_ns == far.alpha_ns ? near.beta_ns_per_byte : 0;  // one kind of hop, one port
  }
  // What a binomial tree's messages together take of links, and the last one; null where routes are not known.
  const LinkLoads::Binomial* binomial_known(Tree way) const { return traffic_->known() ? &binomial(way) : nullptr; }
  // The busiest link's share of a byte of each of the tree's messages; 0 where routes are not known.
  double binomial_ns_per_byte(Tree way) const { return traffic_->known() ? binomial(way).ns_per_byte : 0; }
  // The same where each carries a byte for each member of its subtree.
  double binomial_blocks_ns_per_byte(Tree way) const {
    return traffic_->known() ? binomial(way).blocks_ns_per_byte : 0;
  }
  // As binomial_ns_per_byte, of messages both up and down.
  double binomial_both_ns_per_byte() const { return traffic_->known() ? binomial(Tree::up).both_ns_per_byte : 0; }
  // Both in-order trees' messages between members that far apart; `fed`: of all but member 0.
  TreeLevel trees(Count distance, bool fed) const {
    if (const auto& known = fed ? traffic_->fed_trees : traffic_->trees; known && !known->levels.empty())
      return LinkLoads::over(known->levels, distance);
    const Hop& hop = sparse(distance);
    return {hop, 2 * hop.beta_ns_per_byte};
  }
  // What the first of n members sends to the roots of the trees of all others.
  TreeLevel feed(Rank n) const {
    if (const auto& known = traffic_->fed_trees; known && known->ns_per_byte > 0) return known->feed;
    const Hop& hop = binomial(std::bit_floor(n - 1), Tree::down);
    return {hop, 2 * hop.beta_ns_per_byte};
  }
  // The busiest link's share of a byte of each of their messages, up and down (`fed`: down); 0 where routes are not
  // known.
  double trees_ns_per_byte(bool fed) const {
    const auto& known = fed ? traffic_->fed_trees : traffic_->trees;
    return known ? known->ns_per_byte : 0;
  }
  // While every survivor exchanges with its partner of that step of swing; null where routes are not known.
  const Hop* swing(unsigned step) const {
    return traffic_->swing && step < traffic_->swing->steps.size() ? &traffic_->swing->steps[step] : nullptr;
  }
  // The busiest link's share of a byte of each vector, on the way there.
  double swing_ns_per_byte() const { return traffic_->swing ? traffic_->swing->ns_per_byte : 0; }
  // The same of recursive halving, and of that by which the nearest exchange most with a gather behind it. 0 where
  // routes are not known.
  double halving_ns_per_byte(bool near_first) const {
    if (!traffic_->known()) return 0;
    return near_first ? *traffic_->near_halving_ns_per_byte : *traffic_->far_halving_ns_per_byte;
  }
  double gathered_halving_ns_per_byte() const {
    return traffic_->known() ? *traffic_->gathered_halving_ns_per_byte : 0;
  }
  // Whether what member 0 scatters leaves its node the way of a ring's messages.
  bool ring_in_way() const { return traffic_->known() && *traffic_->ring_in_way; }
  // `steps` steps of a ring of n members; see CostModel::ring.
  Cost ring(double steps, double bytes, Cost combining) const {
    if (!every_) return model_->ring(*view_, steps, bytes, combining);
    if (traffic_->known()) return traffic_->ring(steps, bytes, combining, model_->met(bytes));
    return steps * (*every_)(bytes) + combining;
  }
  // The busiest link's share of a byte of each message while all ranks of v.channels chains send to the next one, or to
  // the one before.
  double chain_ns_per_byte(Tree way) const {
    return model_->rings ? chain_of(model_->channels(*view_), way).ns_per_byte : shift(1).beta_ns_per_byte;
  }
  // The slowest of a chain's messages.
  Hop slowest_in_chain(Tree way) const {
    if (every_) return traffic_->known() ? traffic_->next->slowest : *every_;
    return model_->rings ? chain_of(model_->rings->front(), way).slowest : model_->widest(*view_);
  }
  // How many of v.channels chains' messages share a link while all of them are where their orders begin.
  double in_step(Tree way) const {
    if (!model_->rings) return 1;
    const double alone = chain_of(model_->rings->front(), way).ns_per_byte;
    return alone > 0 ? std::max(1.0, chain_ns_per_byte(way) / alone) : 1;
  }
  // Hops one after the other from the first to the last of n members, or back.
  Cost chain(Rank n, double bytes, Tree way) const {
    if (!every_ && model_->rings) {
      const RingLoads& r = model_->rings->front();
      return (n - 1) * (view_->channels > 1 ? r.next_alone : chain_of(r, way).next_alone)(bytes);
    }
    if (traffic_->known()) return (n - 1) * traffic_->next->ring.next_alone(bytes);
    if (every_) return (n - 1) * (*every_)(bytes);
    const Rank across = view_->nodes - 1;
    return across * model_->net(bytes) + (n - 1 - across) * model_->node(bytes);
  }

 private:
  static RingLoads::Chain chain_of(const RingLoads& r, Tree way) { return way == Tree::down ? r.chain : r.back; }
  Hop of_circulant(const OnDemand<std::vector<Hop>>& rounds, unsigned k, Count distance) const {
    return traffic_->known() && k < rounds->size() ? (*rounds)[k] : round(distance);
  }
  // Requires that routes are known.
  const LinkLoads::Binomial& binomial(Tree way) const {
    return way == Tree::down ? *traffic_->binomial_down : *traffic_->binomial_up;
  }
  // While about one rank of each node sends over that distance (trees).
  const Hop& sparse(Count distance) const {
    return every_ ? *every_ : model_->stays(*view_, distance) ? model_->node : model_->net;
  }

  const CostModel* model_;
  const View* view_ = nullptr;
  const Hop* every_ = nullptr;
  const LinkLoads* traffic_;
};

// Nanoseconds for n > 1 members and that many bytes per vector.
using GroupCost = Cost (*)(Rank n, double bytes, const Paths&);

// The closed form of an allreduce, reduce, broadcast or reduce-scatter(v) over all ranks; of a reduce-scatter `bytes`
// is the largest block.
template <GroupCost over>
Cost vector_cost(const Call& c, const View& v, const CostModel& m) {
  const Count count = largest_block(c, v.all.size);
  const double bytes = m.bytes(double(count));
  if (count == 0) return 0;
  if (v.all.size == 1) return m.own_copy(c, bytes);
  return over(v.all.size, bytes, Paths(v, m));
}

// The same for a broadcast, whose root copies its vector while the messages go: where memory is slower than the links,
// that takes longest.
template <GroupCost over>
Cost broadcast_cost(const Call& c, const View& v, const CostModel& m) {
  return std::max(vector_cost<over>(c, v, m), m.own_copy(c, m.bytes(double(c.count))));
}

}  // namespace gccl
