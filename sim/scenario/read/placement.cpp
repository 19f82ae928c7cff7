#include "sim/scenario/read/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "libgccl/base/counted.hpp"
#include "sim/scenario/description/hash.hpp"

namespace gccl::sim {
namespace {

std::vector<Card> round_robin(const Cluster& cluster) {
  std::vector<Rank> filled(cluster.nodes(), 0), turn(cluster.cards());
  std::vector<Card> order(cluster.cards());
  std::iota(order.begin(), order.end(), 0);
  for (Card c = 0; c < cluster.cards(); ++c) turn[c] = filled[cluster.node_of(c)]++;
  std::stable_sort(order.begin(), order.end(), [&](Card a, Card b) {
    return turn[a] != turn[b] ? turn[a] < turn[b] : cluster.node_of(a) < cluster.node_of(b);
  });
  return order;
}

std::vector<Card> shuffled(Card cards, std::uint64_t seed) {
  std::vector<Card> order(cards);
  std::iota(order.begin(), order.end(), 0);
  // Fisher and Yates by our own hash: the standard library's distributions differ between implementations.
  for (Card i = cards; i > 1; --i) std::swap(order[i - 1], order[hash(seed, i) % i]);
  return order;
}

}  // namespace

Placement read_placement(const json::Node& node) {
  static constexpr std::string_view kNames[] = {"packed", "round_robin", "random"};
  Placement p;
  p.where = node;
  if (node.is_string()) {
    p.kind = Placement::Kind(node.one_of(kNames));
    return p;
  }
  if (!node.is_object())
    node.fail(fmt::format("found {}, expected \"packed\", \"round_robin\", \"random\" or an object", node.text()));
  node.allow({"cards", "random"});
  if (node.has("cards") == node.has("random")) node.fail("expected exactly one of \"cards\" and \"random\"");
  if (const auto seed = node.find("random")) {
    p.kind = Placement::Kind::random;
    p.seed = std::uint64_t(seed->integer(0, INT64_MAX));
    return p;
  }
  p.kind = Placement::Kind::cards;
  std::unordered_set<Card> seen;
  for (const json::Node& item : node.at("cards").items(1)) {
    p.cards.push_back(Card(item.integer(0, UINT32_MAX)));
    if (!seen.insert(p.cards.back()).second) item.fail(fmt::format("card {} appears twice", p.cards.back()));
  }
  return p;
}

std::vector<Card> place(const Placement& p, const Cluster& cluster, Rank ranks, std::uint64_t seed) {
  std::vector<Card> order;
  switch (p.kind) {
    case Placement::Kind::packed:
      order.resize(ranks);
      std::iota(order.begin(), order.end(), 0);
      break;
    case Placement::Kind::round_robin: order = round_robin(cluster); break;
    case Placement::Kind::random: order = shuffled(cluster.cards(), p.seed.value_or(seed)); break;
    case Placement::Kind::cards: {
      const json::Node list = p.where->at("cards");
      for (std::size_t i = 0; i < p.cards.size(); ++i)
        if (p.cards[i] >= cluster.cards())
          list.items()[i].fail(
              fmt::format("found card {}, but {} has only {} cards", p.cards[i], cluster.name(), cluster.cards()));
      if (p.cards.size() < ranks)
        list.fail(fmt::format("lists {} cards for {}", p.cards.size(), counted(ranks, "rank")));
      order = p.cards;
    }
  }
  order.resize(ranks);
  return order;
}

}  // namespace gccl::sim
