// Closed-form parameters of a cluster, read off its routes.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "libgccl/cluster/cluster.hpp"

namespace gccl {

// The alpha-beta-gamma parameters of ranks on these cards: rank r is on cards[r].
// - alpha is both ends' overheads plus the latencies of the route's links, beta the inverse of its narrowest link;
// - node: the slowest pair of cards of one node; equal to net when no node holds two of the cards;
// - net: a card of the first node and its counterpart on the node that is the most links away (of more than 4096 nodes
//   that of those looked at); on more than kTrafficCardsMax cards alpha is the mean over the nodes 2^k further on;
// - net_all: the same two nodes while every card of the first one sends to its counterpart: each link is shared by the
//   messages that cross it, the worst share counts. The fabric's load by other nodes is not part of it;
// - all, inside, rail, doubling, rings: the same count for every rank's messages at once, as routed, so that the taper
//   of a fat tree and what a placement spoils are known. Not on more than kTrafficCardsMax cards, where it would take
//   seconds: closed forms then use the three above;
// - all of them with what the protocol adds to a message, channel_GBps excepted (predicted() in select/plan.hpp);
// - overhead, combine and copy: of the slowest of the cards.
// The loads are worked out when a form asks for them, by the cluster's routes: it outlives the model and its copies, or
// they hold it.
constexpr std::size_t kTrafficCardsMax = 1 << 15;
// `order`: the ranks as a call with a root takes them (order_from_root), for `all`, and chains begin at its first one;
// empty: by their numbers.
CostModel cost_model(std::shared_ptr<const Cluster> cluster, const std::vector<Card>& cards, unsigned element_bytes,
                     const Protocol& protocol = {}, std::span<const Rank> order = {});
CostModel cost_model(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                     const Protocol& protocol = {}, std::span<const Rank> order = {});
// For a cluster that outlives the model.
inline std::shared_ptr<const Cluster> not_held(const Cluster& cluster) { return {std::shared_ptr<void>(), &cluster}; }
// The same without those loads.
CostModel cost_without_loads(const Cluster& cluster, const std::vector<Card>& cards, unsigned element_bytes,
                             const Protocol& protocol = {});
// Every card at once sends to its counterpart about half of the nodes away: cost_model().rail.shifts->plain.back().
// Nothing on one node, nor on more than kTrafficCardsMax cards.
std::optional<Hop> net_loaded(const Cluster& cluster, const std::vector<Card>& cards);

}  // namespace gccl
