#include "libgccl/cluster/composed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace gccl {
namespace {

bool mesh(const NodeType& t) {
  for (unsigned a = 0; a < t.graph.cards; ++a)
    for (unsigned b = 0; b < t.graph.cards; ++b)
      if (a != b && (!t.routes.reaches(a, b) || t.routes.distance(a, b) != 1)) return false;
  return t.graph.cards > 1;
}

}  // namespace

ComposedCluster::ComposedCluster(Composition parts) : c_(std::move(parts)) {
  const Rank nodes = Rank(c_.type_of_node.size());
  places_.reserve(nodes + 1);
  Place at{0, 0, 0};
  for (Rank n = 0; n < nodes; ++n) {
    const NodeType& t = type_of(n);
    places_.push_back(at);
    at.card += t.graph.cards;
    at.nic += t.graph.nics;
    at.link += LinkId(t.graph.edges.size() + 2 * t.graph.nics);
  }
  places_.push_back(at);

  fabric_base_ = at.link;
  links_.reserve(at.link + (c_.fabric ? c_.fabric->links().size() : 0));
  for (Rank n = 0; n < nodes; ++n) {
    const NodeType& t = type_of(n);
    for (const auto& e : t.graph.edges) links_.push_back(e.link);
    for (const LinkKind& p : t.ports) {
      links_.push_back(p.forward);
      links_.push_back(p.reverse);
    }
  }
  if (c_.fabric) links_.append(c_.fabric->links());

  if (c_.cards_are_ports) {
    node_of_ = std::move(c_.node_of_card);
    return;
  }
  node_of_.resize(at.card);
  for (Rank n = 0; n < nodes; ++n)
    std::fill(node_of_.begin() + places_[n].card, node_of_.begin() + places_[n + 1].card, n);
  if (c_.planes.cross_in_node)
    for (const NodeType& t : c_.types) crossing_.push_back(crossing_of(t));
  wiring_ = std::all_of(c_.types.begin(), c_.types.end(), mesh) ? View::Wiring::mesh : View::Wiring::crossbar;
  check_connected();
}

ComposedCluster::Crossing ComposedCluster::crossing_of(const NodeType& t) const {
  Crossing crossing{.nics = {}, .begin = {0}, .own = {}};
  const unsigned planes = c_.planes.count;
  for (unsigned card = 0; card < t.graph.cards; ++card) {
    for (unsigned p = 0; p < planes; ++p) {
      for (const unsigned nic : t.nics_of_plane(card, p, planes)) crossing.nics.push_back(std::uint16_t(nic));
      crossing.begin.push_back(std::uint32_t(crossing.nics.size()));
    }
    std::set<unsigned> own;
    for (const unsigned nic : t.own[card]) own.insert(nic % planes);
    crossing.own.push_back(std::uint16_t(own.size()));
  }
  return crossing;
}

std::optional<unsigned> ComposedCluster::cross(const NodeType& ta, unsigned a, unsigned plane, unsigned others,
                                               unsigned turn) const {
  const Crossing& c = crossing_[std::size_t(&ta - c_.types.data())];
  const std::size_t at = std::size_t(a) * c_.planes.count + plane;
  const unsigned many = c.begin[at + 1] - c.begin[at];
  if (many == 0) return std::nullopt;
  // Every so many turns lead to one plane.
  return c.nics[c.begin[at] + (many == 1 ? 0 : turn / others % many)];
}

std::pair<unsigned, unsigned> ComposedCluster::choose(const NodeType& ta, unsigned a, const NodeType& tb, unsigned b,
                                                      unsigned turn) const {
  const auto &from = ta.own[a], &to = tb.own[b];
  const unsigned x = from.size() == 1 ? from[0] : from[turn % from.size()];
  const unsigned y = to.size() == 1 ? to[0] : to[turn % to.size()];
  if (!c_.planes.cross_in_node) return {x, y};
  const unsigned planes = c_.planes.count;
  const auto own = [&](const NodeType& t, unsigned card) {
    return unsigned(crossing_[std::size_t(&t - c_.types.data())].own[card]);
  };
  if (const auto nic = cross(ta, a, y % planes, own(tb, b), turn)) return {*nic, y};
  if (const auto nic = cross(tb, b, x % planes, own(ta, a), turn)) return {x, *nic};
  return {x, y};
}

void ComposedCluster::route(Card from, Card to, std::vector<LinkId>& out) const {
  out.clear();
  if (from == to) return;
  if (c_.cards_are_ports) return c_.fabric->route(from, to, fabric_base_, out);
  const Rank n = node_of_[from], m = node_of_[to];
  const Place &here = places_[n], &there = places_[m];
  const NodeType &ta = type_of(n), &tb = type_of(m);
  const unsigned a = from - here.card, b = to - there.card;
  if (n == m && ta.routes.reaches(a, b)) return ta.routes.append(a, b, here.link, out);
  const auto [x, y] = choose(ta, a, tb, b, from + to);
  ta.routes.append(a, ta.graph.nic(x), here.link, out);
  out.push_back(LinkId(here.link + ta.graph.edges.size() + 2 * x));
  c_.fabric->route(c_.port_of_nic[here.nic + x], c_.port_of_nic[there.nic + y], fabric_base_, out);
  out.push_back(LinkId(there.link + tb.graph.edges.size() + 2 * y + 1));
  tb.routes.append(tb.graph.nic(y), b, there.link, out);
}

double ComposedCluster::in_switch(std::span<const Card> cards) const {
  if (cards.empty() || c_.cards_are_ports) return 0;
  const Rank node = node_of_[cards[0]];
  for (const Card c : cards)
    if (node_of_[c] != node) return 0;
  return type_of(node).in_switch;
}

// Cards that are alike in the planes they use and reach need not be distinguished.
void ComposedCluster::check_connected() const {
  struct Kind {
    Rank node;
    unsigned card;
  };
  std::map<std::vector<bool>, Kind> kinds;
  const unsigned planes = c_.planes.count;
  std::vector<bool> seen(c_.types.size(), false);
  for (Rank n = 0; n < nodes(); ++n) {
    if (seen[c_.type_of_node[n]]) continue;
    seen[c_.type_of_node[n]] = true;
    const NodeType& t = type_of(n);
    for (unsigned card = 0; card < t.graph.cards; ++card) {
      if (!c_.fabric || t.own[card].empty()) {
        for (unsigned other = 0; other < t.graph.cards; ++other)
          if (!t.routes.reaches(card, other) && (!c_.fabric || nodes() == 1))
            throw std::invalid_argument(fmt::format("no way from card {} to card {} inside node {}", card, other, n));
        if (nodes() > 1) throw std::invalid_argument(fmt::format("card {} of node {} has no NIC", card, n));
        continue;
      }
      std::vector<bool> traits(2 * planes, false);
      for (const unsigned nic : t.own[card]) traits[nic % planes] = true;
      for (unsigned p = 0; p < planes; ++p) traits[planes + p] = !t.nics_of_plane(card, p, planes).empty();
      kinds.try_emplace(traits, Kind{n, card});
    }
  }
  if (!c_.planes.separate) return;
  for (const auto& [a, from] : kinds)
    for (const auto& [b, to] : kinds) {
      bool meets = true, meets_back = true;
      for (unsigned p = 0; p < planes; ++p) {
        if (b[p] && !a[planes + p]) meets = false;
        if (a[p] && !b[planes + p]) meets_back = false;
      }
      if (!meets && !meets_back)
        throw std::invalid_argument(fmt::format("no plane joins card {} of node {} and card {} of node {}", from.card,
                                                from.node, to.card, to.node));
    }
}

std::string ComposedCluster::link_name(LinkId link) const {
  if (link >= fabric_base_) return c_.fabric->link_name(link - fabric_base_);
  const auto next =
      std::upper_bound(places_.begin(), places_.end(), link, [](LinkId l, const Place& p) { return l < p.link; });
  const Rank n = Rank(next - places_.begin() - 1);
  const NodeGraph& g = type_of(n).graph;
  const std::size_t local = link - places_[n].link;
  if (local < g.edges.size())
    return fmt::format("node{0}/{1}->node{0}/{2}", n, g.vertex_name(g.edges[local].from),
                       g.vertex_name(g.edges[local].to));
  const std::size_t nic = (local - g.edges.size()) / 2;
  const std::string inner = fmt::format("node{}/nic{}", n, nic);
  const std::string outer = c_.fabric ? c_.fabric->switch_of(c_.port_of_nic[places_[n].nic + nic]) : "unplugged";
  return (local - g.edges.size()) % 2 ? outer + "->" + inner : inner + "->" + outer;
}

}  // namespace gccl
