// Clusters against oracles of their own: routes must be chains of cables by the names of their ends, and as short as a
// breadth-first search over those names finds; loads, costs and cuts are compared with numbers worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "libgccl/cluster/composed.hpp"
#include "libgccl/cluster/cost_model.hpp"
#include "libgccl/cluster/read/load.hpp"
#include "libgccl/cluster/read/summary.hpp"

using namespace gccl;

namespace {

constexpr std::string_view kParameters = R"({"card": {"overhead_ns": 100, "combine_GBps": 50, "copy_GBps": 200},
  "eager_bytes": 4096, "links": {"fast": {"bandwidth_GBps": 300, "latency_ns": 10}, "bus": {"bandwidth_GBps": 64, "latency_ns": 20},
  "port": {"bandwidth_GBps": 40, "latency_ns": 500}, "trunk": {"bandwidth_GBps": 20, "latency_ns": 300},
  "long": {"bandwidth_GBps": 5, "latency_ns": 1000}}})";

std::string text(std::string_view nodes, std::string_view fabric) {
  return fmt::format(R"({{"schema": "gccl/cluster/1", "name": "t", "parameters": {}, "nodes": {}{}}})", kParameters,
                     nodes, fabric.empty() ? "" : fmt::format(R"(, "fabric": {})", fabric));
}
std::shared_ptr<const Cluster> make(std::string_view nodes, std::string_view fabric) {
  return parse_cluster(text(nodes, fabric), "t.json");
}
std::string switched(int count, int cards, int nics) {
  return fmt::format(R"([{{"count": {}, "cards": {}, "inside": {{"kind": "switch", "link": "fast"}},
    "nics": {{"count": {}, "bus": "bus", "port": "port"}}}}])",
                     count, cards, nics);
}

std::vector<std::string> names(const Cluster& c, Card from, Card to) {
  std::vector<LinkId> route;
  c.route(from, to, route);
  std::vector<std::string> all;
  for (const LinkId l : route) all.push_back(c.link_name(l));
  return all;
}
std::pair<std::string, std::string> ends(const std::string& name) {
  const auto arrow = name.find("->");
  return {name.substr(0, arrow), name.substr(arrow + 2)};
}

// The name of every card, read off the routes; checks on the way that routes are chains.
void check_chains(const Cluster& c) {
  std::map<Card, std::string> card;
  std::vector<LinkId> route;
  for (Card a = 0; a < c.cards(); ++a)
    for (Card b = 0; b < c.cards(); ++b) {
      c.route(a, b, route);
      REQUIRE(route.empty() == (a == b));
      if (route.empty()) continue;
      REQUIRE(std::set(route.begin(), route.end()).size() == route.size());
      for (const LinkId l : route) REQUIRE(l < c.links().size());
      const auto first = ends(c.link_name(route.front())).first, last = ends(c.link_name(route.back())).second;
      CHECK(card.try_emplace(a, first).first->second == first);
      CHECK(card.try_emplace(b, last).first->second == last);
      for (std::size_t i = 0; i + 1 < route.size(); ++i)
        CHECK(ends(c.link_name(route[i])).second == ends(c.link_name(route[i + 1])).first);
    }
  std::set<std::string> distinct;
  for (const auto& [id, name] : card) distinct.insert(name);
  CHECK(distinct.size() == card.size());
}

// Links between two cards when every cable may be used.
void check_shortest(const Cluster& c) {
  std::map<std::string, std::vector<std::string>> next;
  for (LinkId l = 0; l < c.links().size(); ++l) {
    const auto [a, b] = ends(c.link_name(l));
    next[a].push_back(b);
  }
  std::vector<LinkId> route;
  for (Card a = 0; a < c.cards(); ++a) {
    c.route(a, (a + 1) % c.cards(), route);
    if (route.empty()) continue;
    std::map<std::string, unsigned> far{{ends(c.link_name(route[0])).first, 0}};
    std::deque<std::string> queue{far.begin()->first};
    for (; !queue.empty(); queue.pop_front())
      for (const auto& n : next[queue.front()])
        if (far.try_emplace(n, far[queue.front()] + 1).second) queue.push_back(n);
    for (Card b = 0; b < c.cards(); ++b) {
      if (a == b) continue;
      c.route(a, b, route);
      CHECK(route.size() == far.at(ends(c.link_name(route.back())).second));
    }
  }
}

unsigned heaviest(const Cluster& c, Card shift) {
  std::vector<unsigned> load(c.links().size(), 0);
  std::vector<LinkId> route;
  for (Card a = 0; a < c.cards(); ++a) {
    c.route(a, (a + shift) % c.cards(), route);
    for (const LinkId l : route) ++load[l];
  }
  return *std::max_element(load.begin(), load.end());
}

std::vector<Card> all_cards(const Cluster& c) {
  std::vector<Card> all(c.cards());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

TEST_CASE("every kind of fabric gives chains of cables between any two cards, the same every time") {
  const std::pair<std::string, std::string> kClusters[] = {
      {switched(1, 1, 1), R"({"kind": "switch"})"},
      {switched(5, 3, 2), R"({"kind": "switch"})"},
      {switched(7, 2, 2), R"({"kind": "fat_tree", "radix": 4, "link": "trunk"})"},
      {switched(9, 2, 1), R"({"kind": "fat_tree", "levels": 3, "leaf_size": 2, "pod_leaves": 2, "link": "trunk"})"},
      {switched(9, 4, 4), R"({"kind": "rail", "leaf_size": 2, "link": "trunk"})"},
      {switched(9, 4, 4), R"({"kind": "rail", "rails": 2, "cross_rail": "fabric", "leaf_size": 2, "link": "trunk"})"},
      {switched(9, 4, 4), R"({"kind": "multi_plane", "planes": 4, "leaf_size": 2, "link": "trunk"})"},
      {switched(9, 4, 4),
       R"({"kind": "multi_plane", "planes": 2, "levels": 3, "leaf_size": 2, "pod_leaves": 2, "link": "trunk"})"},
      {switched(20, 2, 2),
       R"({"kind": "dragonfly", "routers": 3, "ports": 2, "global_links": 2, "local_link": "trunk", "global_link": "long"})"},
      {switched(20, 2, 2),
       R"({"kind": "dragonfly_plus", "leaves": 2, "spines": 3, "ports": 3, "global_links": 2, "local_link": "trunk", "global_link": "long"})"},
      {switched(40, 2, 2),
       R"({"kind": "dragonfly", "routers": 3, "ports": 2, "global_links": 2, "routing": "valiant", "local_link": "trunk", "global_link": "long"})"},
      {switched(40, 2, 2),
       R"({"kind": "dragonfly_plus", "leaves": 2, "spines": 3, "ports": 3, "global_links": 2, "routing": "valiant", "local_link": "trunk", "global_link": "long"})"},
      {switched(12, 2, 1), R"({"kind": "torus", "of": "nodes", "dims": [3, 2, 2], "link": "trunk"})"},
      {R"([{"count": 30, "cards": 2}])", R"({"kind": "torus", "of": "cards", "dims": [4, 5, 3], "link": "trunk"})"},
      {R"([{"count": 30, "cards": 1}])",
       R"({"kind": "torus", "of": "cards", "dims": [6, 5], "wrap": false, "link": "trunk"})"},
      {switched(4, 2, 2), R"({"kind": "custom", "routing": "hash", "switches": ["a", "b", "c"], "links": [
         {"between": ["a", "b"], "link": "trunk", "cables": 3}, {"between": ["b", "c"], "link": "trunk"}],
         "ports": [{"switch": "a", "nodes": [0, 1]}, {"switch": "c", "nodes": [2, 3]}]})"},
  };
  for (const auto& row : kClusters) {
    const auto &nodes = row.first, &fabric = row.second;
    CAPTURE(fabric);
    const auto c = make(nodes, fabric), again = make(nodes, fabric);
    check_chains(*c);
    std::set<std::string> distinct;
    std::size_t parallel = fabric.find("custom") == std::string::npos ? 0 : 4;  // two more cables a-b, two directions
    for (LinkId l = 0; l < c->links().size(); ++l) distinct.insert(c->link_name(l));
    if (fabric.find("global") == std::string::npos) CHECK(distinct.size() + parallel == c->links().size());
    for (Card b = 0; b < c->cards(); ++b) CHECK(names(*c, 0, b) == names(*again, 0, b));
  }
}

TEST_CASE("fat trees, dragonfly+, tori, meshes and custom fabrics route along shortest ways") {
  check_shortest(*make(switched(9, 2, 1), R"({"kind": "fat_tree", "radix": 4, "link": "trunk"})"));
  check_shortest(*make(switched(18, 1, 1),
                       R"({"kind": "fat_tree", "levels": 3, "leaf_size": 2, "pod_leaves": 2, "link": "trunk"})"));
  check_shortest(*make(R"([{"count": 60, "cards": 1}])",
                       R"({"kind": "torus", "of": "cards", "dims": [4, 5, 3], "link": "trunk"})"));
  check_shortest(*make(R"([{"count": 16, "cards": 2}])",
                       R"({"kind": "torus", "of": "cards", "dims": [2, 2, 8], "link": "trunk"})"));
  check_shortest(*make(R"([{"count": 30, "cards": 1}])",
                       R"({"kind": "torus", "of": "cards", "dims": [6, 5], "wrap": false, "link": "trunk"})"));
  check_shortest(*make(switched(8, 1, 1), R"({"kind": "custom", "switches": ["a", "b", "c", "d"], "links": [
      {"between": ["a", "b"], "link": "trunk"}, {"between": ["b", "c"], "link": "trunk"}, {"between": ["c", "d"], "link": "trunk"},
      {"between": ["d", "a"], "link": "trunk"}], "ports": [{"switch": "a", "nodes": [0, 1]}, {"switch": "b", "nodes": [2, 3]},
      {"switch": "c", "nodes": [4, 5]}, {"switch": "d", "nodes": [6, 7]}]})"));
}

TEST_CASE("a full fat tree with d-mod-k carries every shift of its ports without two messages on a cable") {
  const auto two = make(switched(64, 1, 1), R"({"kind": "fat_tree", "leaf_size": 8, "link": "trunk"})");
  const auto three = make(switched(64, 1, 1),
                          R"({"kind": "fat_tree", "levels": 3, "leaf_size": 4, "pod_leaves": 4, "link": "trunk"})");
  for (Card shift = 1; shift < 64; ++shift) {
    CAPTURE(shift);
    CHECK(heaviest(*two, shift) == 1);
    CHECK(heaviest(*three, shift) == 1);
  }
  const auto tapered =
      make(switched(64, 1, 1), R"({"kind": "fat_tree", "leaf_size": 8, "oversubscription": 4, "link": "trunk"})");
  CHECK(heaviest(*tapered, 8) == 4);
}

TEST_CASE("dragonfly routes are minimal, and every global cable of a pair of groups is used") {
  for (const std::string_view kind :
       {"\"dragonfly\", \"routers\": 4", "\"dragonfly_plus\", \"leaves\": 4, \"spines\": 5"}) {
    const auto c = make(
        switched(5 * 4 * 3, 1, 1),
        fmt::format(R"({{"kind": {}, "ports": 3, "global_links": 3, "local_link": "trunk", "global_link": "long"}})",
                    kind));
    std::vector<unsigned> used(c->links().size(), 0);
    std::vector<LinkId> route;
    for (Card a = 0; a < c->cards(); ++a)
      for (Card b = 0; b < c->cards(); ++b) {
        c->route(a, b, route);
        unsigned global = 0, local = 0;
        for (const LinkId l : route) {
          ++used[l];
          global += c->links()[l].tier == Tier::core;
          local += c->links()[l].tier == Tier::spine;
        }
        CHECK(global == (a / 12 != b / 12 ? 1 : 0));
        CHECK(local <= 2);
      }
    std::size_t cables = 0;
    for (LinkId l = 0; l < used.size(); ++l)
      if (c->links()[l].tier == Tier::core) {
        ++cables;
        CHECK(used[l] == 12 * 12 / 3);
      }
    CHECK(cables == 2 * 10 * 3);
  }
}

// All of one group send to all of another: minimal routes have its 2 cables for 40 messages, Valiant's those of 9
// groups.
TEST_CASE("over third groups a dragonfly carries a shift by whole groups on the cables of all groups") {
  for (const std::string_view kind :
       {"\"dragonfly\", \"routers\": 10", "\"dragonfly_plus\", \"leaves\": 10, \"spines\": 9"})
    for (const bool valiant : {false, true}) {
      const auto c = make(
          switched(10 * 10 * 4, 1, 1),
          fmt::format(
              R"({{"kind": {}, "ports": 4, "global_links": 2, "local_link": "trunk", "global_link": "long", "routing": "{}"}})",
              kind, valiant ? "valiant" : "minimal"));
      std::vector<unsigned> used(c->links().size(), 0);
      std::vector<LinkId> route;
      for (Card a = 0; a < 40; ++a) {
        c->route(a, a + 40, route);
        unsigned global = 0;
        for (const LinkId l : route)
          if (c->links()[l].tier == Tier::core) ++used[l], ++global;
        CHECK(global <= (valiant ? 2 : 1));
      }
      const unsigned most = *std::max_element(used.begin(), used.end());
      CHECK(most >= (valiant ? 3 : 20));
      CHECK(most <= (valiant ? 8 : 20));
    }
}

TEST_CASE("a torus of cards knows its nodes, its rows and the shorter way round") {
  const auto c =
      make(R"([{"count": 16, "cards": 4}])",
           R"({"kind": "torus", "of": "cards", "dims": [8, 4, 2], "node_shape": [2, 2, 1], "link": "trunk"})");
  CHECK(c->grid_columns() == 8);
  for (Card card = 0; card < 64; ++card) {
    const unsigned x = card % 8, y = card / 8 % 4, z = card / 32;
    CHECK(c->node_of(card) == (z * 2 + y / 2) * 4 + x / 2);
  }
  CHECK(names(*c, 0, 7) == std::vector<std::string>{"(0,0,0)->(7,0,0)"});
  CHECK(names(*c, 8, 32 + 8 + 1) == std::vector<std::string>{"(0,1,0)->(1,1,0)", "(1,1,0)->(1,1,1)"});
  CHECK(names(*c, 0, 4).size() == 4);
  CHECK(c->links().size() == 2 * (64 + 64 + 32));  // two cards in the last dimension have one cable
}

TEST_CASE("messages between planes go through the sender's node") {
  const auto c = make(switched(4, 2, 2), R"({"kind": "multi_plane", "planes": 2, "leaf_size": 2, "link": "trunk"})");
  CHECK(names(*c, 0, 7) == std::vector<std::string>{"node0/card0->node0/switch", "node0/switch->node0/card1",
                                                    "node0/card1->node0/nic1", "node0/nic1->leaf2",
                                                    "leaf2->plane1/spine1", "plane1/spine1->leaf3", "leaf3->node3/nic1",
                                                    "node3/nic1->node3/card1"});
  const auto rail =
      make(switched(4, 2, 2), R"({"kind": "rail", "cross_rail": "fabric", "leaf_size": 4, "link": "trunk"})");
  CHECK(names(*rail, 0, 7) == std::vector<std::string>{"node0/card0->node0/nic0", "node0/nic0->leaf0", "leaf0->spine3",
                                                       "spine3->leaf1", "leaf1->node3/nic1",
                                                       "node3/nic1->node3/card1"});
}

TEST_CASE("inside a node the shortest way wins, then the wider one; NICs pass nothing on") {
  const auto hybrid = make(R"([{"count": 1, "cards": 4, "inside": [
      {"kind": "pcie_tree", "cards_per_switch": 2, "switches_per_root": 1, "card_link": "bus", "switch_link": "bus", "root_link": "bus"},
      {"kind": "ring", "link": "fast"}]}])",
                           "");
  CHECK(names(*hybrid, 0, 1) == std::vector<std::string>{"node0/card0->node0/card1"});
  CHECK(names(*hybrid, 0, 2).size() == 2);
  const auto box =
      make(R"([{"count": 1, "cards": 5, "inside": {"kind": "pcie_tree", "cards_per_switch": 2, "switches_per_root": 1,
      "card_link": "bus", "switch_link": "bus", "root_link": "bus"}}])",
           "");
  CHECK(names(*box, 0, 1).size() == 2);
  CHECK(names(*box, 0, 4).size() == 5);
  // Each switch with a way of its own to those of other root complexes: no two switches share it.
  const auto own = make(
      R"([{"count": 1, "cards": 8, "inside": {"kind": "pcie_tree", "cards_per_switch": 2, "switches_per_root": 2,
      "card_link": "fast", "switch_link": "fast", "across_link": "bus"}}])",
      "");
  CHECK(names(*own, 0, 2)[1] == "node0/pcie0->node0/root0");
  CHECK(names(*own, 1, 4) == std::vector<std::string>{"node0/card1->node0/pcie0", "node0/pcie0->node0/across",
                                                      "node0/across->node0/pcie2", "node0/pcie2->node0/card4"});
  CHECK(names(*own, 2, 7)[1] == "node0/pcie1->node0/across");
  // Two cards that share a NIC and have no other link meet at the NIC's switch.
  const auto shared = make(R"([{"count": 2, "cards": 2, "nics": {"count": 1, "bus": "bus", "port": "port"}}])",
                           R"({"kind": "switch"})");
  CHECK(names(*shared, 0, 1) == std::vector<std::string>{"node0/card0->node0/nic0", "node0/nic0->switch",
                                                         "switch->node0/nic0", "node0/nic0->node0/card1"});
  // A card without a NIC takes the nearest one over its node's links.
  const auto borrowed = make(
      R"([{"count": 2, "cards": 3, "inside": {"kind": "links", "links": [{"from": "card0", "to": "card1", "link": "fast"},
      {"from": "card1", "to": "card2", "link": "fast"}]}, "nics": {"count": 2, "cards": [[0], [2]], "bus": "bus", "port": "port"}}])",
      R"({"kind": "switch"})");
  CHECK(names(*borrowed, 1, 3)[1] == "node0/card2->node0/nic1");
}

TEST_CASE("cards with several NICs use them all, NIC i towards NIC i") {
  const auto c = make(switched(6, 1, 4), R"({"kind": "switch"})");
  std::set<std::string> used;
  for (Card to = 1; to < 6; ++to) {
    const auto r = names(*c, 0, to);
    used.insert(r[0]);
    CHECK(r[0].back() == ends(r[2]).second.back());
  }
  CHECK(used.size() == 4);
}

TEST_CASE("the NICs of one rail or plane share what a card sends and takes") {
  const auto rail = [](int rails) {
    return fmt::format(R"({{"kind": "rail", "rails": {}, "leaf_size": 64, "link": "trunk"}})", rails);
  };
  for (const auto& shape :
       {std::pair(switched(33, 1, 2), rail(1)), std::pair(switched(33, 1, 4), rail(2)),
        std::pair(switched(33, 2, 8), rail(1)), std::pair(switched(33, 2, 8), rail(4)),
        std::pair(switched(33, 2, 8),
                  std::string(R"({"kind": "multi_plane", "planes": 2, "leaf_size": 64, "link": "trunk"})"))}) {
    const auto c = make(shape.first, shape.second);
    std::map<std::string, int> messages;  // by cable
    for (Card from = 0; from < c->cards(); ++from)
      for (Card to = 0; to < c->cards(); ++to)
        if (c->node_of(from) != c->node_of(to))
          for (const std::string& link : names(*c, from, to))
            if (link.find("nic") != std::string::npos && link.find("card") == std::string::npos) ++messages[link];
    const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int least = std::min_element(messages.begin(), messages.end(), by_count)->second,
              most = std::max_element(messages.begin(), messages.end(), by_count)->second;
    INFO(shape.first, " and ", shape.second);
    CHECK(messages.size() == 2 * dynamic_cast<const ComposedCluster&>(*c).nics());
    CHECK(most <= 1.35 * least);
  }
  // A card without NICs on a plane takes its share of the others': of four for three cards the last one two.
  const auto others =
      make(R"([{"count": 9, "cards": 3, "inside": {"kind": "switch", "link": "fast"}, "nics": {"count": 12,
      "cards": [[0], [1], [2], [0], [1], [2], [0], [1], [2], [0], [1], [2]], "bus": "bus", "port": "port"}}])",
           rail(3));
  std::set<std::string> used;
  for (Card to = 3; to < others->cards(); to += 3)
    for (const std::string& link : names(*others, 2, to))
      if (link.find("->leaf") != std::string::npos) used.insert(ends(link).first);
  CHECK(used == std::set<std::string>{"node0/nic6", "node0/nic9"});
}

TEST_CASE("links can differ in their two directions") {
  const auto c = make(R"([{"count": 2, "cards": 1, "nics": {"count": 1, "bus": "bus",
      "port": {"bandwidth_GBps": 10, "latency_ns": 7, "reverse_bandwidth_GBps": 2, "reverse_latency_ns": "1us"}}}])",
                      R"({"kind": "switch"})");
  std::vector<LinkId> route;
  c->route(0, 1, route);
  REQUIRE(route.size() == 4);
  CHECK(c->links()[route[1]].bandwidth_GBps == 10);
  CHECK(c->links()[route[1]].latency_ns == 7);
  CHECK(c->links()[route[2]].bandwidth_GBps == 2);
  CHECK(c->links()[route[2]].latency_ns == 1000);
}

TEST_CASE("the closed form's parameters are what the routes say") {
  const auto c = make(switched(8, 4, 2), R"({"kind": "fat_tree", "leaf_size": 4, "link": "trunk"})");
  const CostModel m = cost_model(*c, all_cards(*c), 4);
  CHECK(m.node.alpha_ns == 100 + 2 * 10);
  CHECK(m.node.beta_ns_per_byte == doctest::Approx(1 / 300.0));
  CHECK(m.net.alpha_ns == 100 + 2 * 20 + 2 * 500 + 2 * 300);
  CHECK(m.net.beta_ns_per_byte == doctest::Approx(1 / 20.0));
  CHECK(m.net_all.beta_ns_per_byte == doctest::Approx(2 / 20.0));  // two cards share a NIC, and so its way up the tree
  CHECK(m.overhead_ns == 100);
  CHECK(m.combine_ns_per_byte == doctest::Approx(1 / 50.0));
  CHECK(m.copy_ns_per_byte == doctest::Approx(1 / 200.0));
  CHECK(m.element_bytes == 4);
  // One card of each node: nothing is shared, and there is no hop inside a node to speak of.
  const CostModel one = cost_model(*c, {0, 4, 8, 28}, 1);
  CHECK(one.net_all.beta_ns_per_byte == one.net.beta_ns_per_byte);
  CHECK(one.node.alpha_ns == one.net.alpha_ns);
  const CostModel inside = cost_model(*c, {0, 1, 2}, 1);
  CHECK(inside.net.alpha_ns == inside.node.alpha_ns);
  CHECK(cost_model(*c, {5}, 1).net.alpha_ns == 100);
  CHECK(cost_model(*c, {}, 1).net.alpha_ns == 0);
}

TEST_CASE("a switch that multicasts and reduces serves cards of its node alone") {
  constexpr std::string_view kNodes = R"([
    {"count": 2, "cards": 4, "inside": {"kind": "switch", "link": "fast", "in_switch": true}, "nics": {"count": 1, "bus": "bus", "port": "port"}},
    {"count": 1, "cards": 4, "inside": {"kind": "switch", "link": "fast", "in_switch": false}, "nics": {"count": 1, "bus": "bus", "port": "port"}}])";
  std::string all = text(kNodes, R"({"kind": "switch"})");
  all.replace(all.find("\"eager_bytes\""), 0, R"("in_switch_efficiency": 0.75, )");
  const auto c = parse_cluster(all, "t.json");
  const auto of = [&](std::vector<Card> cards) { return c->in_switch(cards); };
  CHECK(of({0, 1, 2, 3}) == 0.75);
  CHECK(of({6, 4}) == 0.75);
  CHECK(of({3, 4}) == 0);
  CHECK(of({8, 9}) == 0);
  // What closed forms know: a byte's share of a link, where each node has such a switch.
  CHECK(cost_model(*c, {0, 1, 2, 4, 5}, 1).node_switch->beta_ns_per_byte == doctest::Approx(1 / 300.0 / 0.75));
  CHECK(cost_model(*c, {0, 1, 4, 8}, 1).node_switch);  // the other nodes hold one card each
  CHECK(!cost_model(*c, {0, 1, 8, 9}, 1).node_switch);
  CHECK(!cost_model(*c, {0, 4}, 1).node_switch);
}

TEST_CASE("different nodes keep their own cards, links and NICs") {
  const auto c = make(
      R"([{"count": 2, "cards": 2, "inside": {"kind": "switch", "link": "fast"}, "nics": {"count": 2, "bus": "bus", "port": "port"}},
      {"count": 1, "cards": 3, "card": {"overhead_ns": 900}, "inside": {"kind": "full_mesh", "link": "long"},
        "nics": {"count": 1, "bus": "bus", "port": "trunk"}}])",
      R"({"kind": "switch"})");
  CHECK(c->cards() == 7);
  CHECK(c->nodes() == 3);
  CHECK(c->node_of(3) == 1);
  CHECK(c->node_of(6) == 2);
  CHECK(c->costs(0).overhead_ns == 100);
  CHECK(c->costs(6).overhead_ns == 900);
  CHECK(c->costs(6).combine_GBps == 50);
  CHECK(names(*c, 4, 6) == std::vector<std::string>{"node2/card0->node2/card2"});
  check_chains(*c);
}

TEST_CASE("the summary's cuts are those of the structure") {
  const auto tree = summarize(
      *make(switched(64, 1, 1), R"({"kind": "fat_tree", "leaf_size": 8, "oversubscription": 4, "link": "trunk"})"));
  CHECK(*tree.bisection_GBps == doctest::Approx(8 * 2 * 20 / 2.0));
  CHECK(tree.tiers.back().oversubscription.value() == doctest::Approx(64 * 40 / (16 * 20.0)));
  CHECK(tree.diameter == 6);
  const auto flat = summarize(*make(switched(64, 1, 1), R"({"kind": "switch"})"));
  CHECK(*flat.bisection_GBps == doctest::Approx(32 * 40));
  CHECK(flat.paired_GBps == doctest::Approx(32 * 40));
  const auto torus = summarize(*make(R"([{"count": 128, "cards": 1}])",
                                     R"({"kind": "torus", "of": "cards", "dims": [8, 4, 4], "link": "trunk"})"));
  CHECK(*torus.bisection_GBps == doctest::Approx(2 * 16 * 20));
  CHECK(torus.diameter == 4 + 2 + 2);
  CHECK(torus.diameter_sources == 128);
}

TEST_CASE("a cut is as wide as its narrower direction") {
  constexpr std::string_view kSlowBack = R"({"bandwidth_GBps": 20, "latency_ns": 300, "reverse_bandwidth_GBps": 2})";
  constexpr std::string_view kSlowOut = R"({"bandwidth_GBps": 2, "latency_ns": 300, "reverse_bandwidth_GBps": 20})";
  const auto cut = [](const std::string& nodes, const std::string& fabric) {
    return summarize(*make(nodes, fabric)).bisection_GBps.value();
  };
  const std::string nodes = switched(16, 1, 1);
  for (const auto slow : {kSlowBack, kSlowOut}) {
    // 4 leaves with 4 cables up; 8 cards of 16; 5 groups of which 2 have 6 cables to the other 3.
    CHECK(cut(nodes, fmt::format(R"({{"kind": "fat_tree", "leaf_size": 4, "link": {}}})", slow)) == 16 / 2 * 2.0);
    CHECK(cut(fmt::format(R"([{{"count": 16, "cards": 1, "nics": {{"count": 1, "bus": "bus", "port": {}}}}}])", slow),
              R"({"kind": "switch"})") == 8 * 2.0);
    CHECK(cut(switched(10, 1, 1), fmt::format(R"({{"kind": "dragonfly", "routers": 2, "ports": 1, "groups": 5,
                  "global_links": 1, "local_link": "port", "global_link": {}}})",
                                              slow)) == 2 * 3 * 2.0);
    // Of 16 in a row one cable crosses; round a ring one half sends forwards at one end and backwards at the other.
    const auto row = [&](bool wrap) {
      return fmt::format(R"({{"kind": "torus", "of": "nodes", "dims": [16], "wrap": {}, "link": {}}})", wrap, slow);
    };
    CHECK(cut(nodes, row(false)) == 2);
    CHECK(cut(nodes, row(true)) == 20 + 2);
  }
}

TEST_CASE("the farthest node of a torus is found, and many cards' closed forms take the mean of doubling ways") {
  const auto torus = [](int count, std::string_view dims) {
    return make(fmt::format(R"([{{"count": {}, "cards": 1}}])", count),
                fmt::format(R"({{"kind": "torus", "of": "cards", "dims": {}, "link": "trunk"}})", dims));
  };
  const auto cube = torus(4096, "[16, 16, 16]"), square = torus(65536, "[256, 256]");
  CHECK(cost_without_loads(*cube, all_cards(*cube), 4).net.alpha_ns == 100 + 3 * 8 * 300);
  CHECK(cost_without_loads(*square, all_cards(*square), 4).net.alpha_ns > 100 + 0.97 * 2 * 128 * 300);
  // 1 + 2 + ... + 128 links along a row, and as many along a column.
  const CostModel m = cost_model(*square, all_cards(*square), 4);
  CHECK(16 * m.net.alpha_ns == doctest::Approx(16 * 100 + 2 * 255 * 300));
}

TEST_CASE("131072 cards stay small, and a route needs no search") {
  const auto c = make(switched(16384, 8, 8),
                      R"({"kind": "rail", "levels": 3, "leaf_size": 32, "pod_leaves": 64, "link": "trunk"})");
  CHECK(c->cards() == 131072);
  CHECK(c->links().size() > 1000000);
  CHECK(c->links().kinds().size() < 10);
  std::vector<LinkId> route;
  std::mt19937 random(1);
  std::size_t links = 0;
  constexpr int kRoutes = 200000;  // a search would take hours
  for (int i = 0; i < kRoutes; ++i) {
    c->route(Card(random() % c->cards()), Card(random() % c->cards()), route);
    links += route.size();
  }
  CHECK(links > kRoutes * 8);
}

TEST_CASE("every mistake is reported with its place") {
  const auto message = [](std::string_view nodes, std::string_view fabric) -> std::string {
    try {
      make(nodes, fabric);
    } catch (const json::InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  std::vector<int> all_of_512(512);
  std::iota(all_of_512.begin(), all_of_512.end(), 0);
  const struct {
    std::string nodes, fabric, expected;
  } kMistakes[] = {
      {switched(2, 2, 1), "", "\"fabric\" is missing, and there are 2 nodes"},
      {R"([{"count": 1, "cards": 0}])", "", "/nodes/0/cards: found 0"},
      {R"([{"count": 0, "cards": 1}])", "", "/nodes/0/count: found 0"},
      {R"([{"count": 1048576, "cards": 2}])", R"({"kind": "torus", "of": "cards", "dims": [2], "link": "trunk"})",
       "makes 2097152 cards"},
      {R"([{"count": 1, "cards": 2, "insde": {}}])", "", "unknown key \"insde\"; did you mean \"inside\"?"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "swich", "link": "fast"}}])", "", "did you mean \"switch\"?"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "switch", "link": "fastt"}}])", "", "did you mean \"fast\"?"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "switch", "link": 25}}])", "",
       "/nodes/0/inside/link: found 25, expected the name of a link, or an object"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "switch", "link": "fast", "in_switch": 1}}])", "",
       "/nodes/0/inside/in_switch: "},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "ring", "link": "fast", "in_switch": true}}])", "",
       "unknown key \"in_switch\""},
      {R"([{"count": 1, "cards": 2, "inside": [{"kind": "switch", "link": "fast", "in_switch": true}, {"kind": "full_mesh", "link": "fast"}]}])",
       "",
       "/nodes/0/inside/0/in_switch: card 0 sends to card 1 directly, expected all cards to send to each other over "
       "switch"},
      {R"([{"count": 1, "cards": 2, "inside": [{"kind": "switch", "link": "long", "in_switch": true}, {"kind": "switch", "link": "fast"}]}])",
       "", "/nodes/0/inside/0/in_switch: card 0 sends to card 1 over switch1, expected"},
      {fmt::format(R"([{{"count": 1, "cards": 512, "inside": {{"kind": "switch", "link": "fast"}},
        "nics": {{"count": 512, "cards": [{}], "bus": "bus", "port": "port"}}}}])",
                   fmt::join(std::vector(512, fmt::format("[{}]", fmt::join(all_of_512, ","))), ",")),
       "", "/nodes/0/nics: has 525312 links for 1024 cards and NICs, more than routes can be computed for"},
      {R"([{"count": 1, "cards": 2}])", "", "no way from card 0 to card 1"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "pcie_tree", "cards_per_switch": 1, "switches_per_root": 1, "card_link": "fast", "switch_link": "bus", "across_link": "fast"}}])",
       "", "/across_link: is as wide as \"switch_link\" or wider, expected a narrower link"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "pcie_tree", "cards_per_switch": 1, "switches_per_root": 1, "card_link": "fast", "switch_link": "bus", "across_link": "bus"}}])",
       "", "expected a narrower link"},
      {R"([{"count": 1, "cards": 2, "inside": {"kind": "pcie_tree", "cards_per_switch": 1, "switches_per_root": 1, "card_link": "fast", "switch_link": "fast"}}])",
       "", "expected \"root_link\" or \"across_link\""},
      {R"([{"count": 2, "cards": 2, "inside": {"kind": "switch", "link": "fast"}}])", R"({"kind": "switch"})",
       "no node has a NIC"},
      {R"([{"count": 1, "cards": 2, "nics": {"count": 1, "bus": "bus", "port": "port"}}, {"count": 1, "cards": 1}])",
       R"({"kind": "switch"})", "has no NIC"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "cards": [[0], [2]], "bus": "bus", "port": "port"}}])",
       R"({"kind": "switch"})", "/nodes/0/nics/cards/1/0: found 2"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "cards": [[0], [0]], "bus": "bus", "port": "port"}}])",
       R"({"kind": "switch"})", "card 1 has no way to any NIC"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "cards": [[0], [1]], "port": "port"}}])",
       R"({"kind": "switch"})", "\"bus\" is missing"},
      {R"([{"count": 2, "cards": 2, "nics": {"count": 2, "bus": "bus", "port": "port"}}])",
       R"({"kind": "multi_plane", "planes": 2, "leaf_size": 2, "link": "trunk"})", "no plane joins"},
      {switched(5, 1, 1), R"({"kind": "torus", "of": "nodes", "dims": [2, 2], "link": "trunk"})",
       "/fabric/dims: makes 4 routers, but there are 5 nodes"},
      {R"([{"count": 4, "cards": 4}])", R"({"kind": "torus", "of": "cards", "dims": [2, 8], "link": "trunk"})",
       "do not tile"},
      {switched(4, 1, 1), R"({"kind": "torus", "of": "cards", "dims": [2, 2], "link": "trunk"})", "have no NICs"},
      {switched(40, 1, 1),
       R"({"kind": "dragonfly", "routers": 2, "ports": 2, "groups": 3, "global_links": 1, "local_link": "trunk", "global_link": "long"})",
       "need 10 groups"},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "link": "trunk"})", "either \"radix\" or \"leaf_size\""},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "radix": 4, "leaf_size": 4, "link": "trunk"})",
       "either \"radix\" or \"leaf_size\""},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "radix": 4, "pod_leaves": 4, "link": "trunk"})",
       "is for three levels"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["a", "a"], "ports": [{"switch": "a", "nodes": [0, 3]}]})",
       "is taken"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["leaf"], "ports": [{"switch": "leav", "nodes": [0, 3]}]})",
       "did you mean \"leaf\"?"},
      {switched(4, 1, 1), R"({"kind": "custom", "switches": ["a"], "ports": [{"switch": "a", "nodes": [0, 2]}]})",
       "NIC 0 of node 3 is plugged in nowhere"},
      {switched(4, 1, 1),
       R"({"kind": "custom", "switches": ["a"], "ports": [{"switch": "a", "nodes": [0, 3]}, {"switch": "a", "nodes": [1, 1]}]})",
       "already plugged"},
      {switched(4, 1, 1),
       R"({"kind": "custom", "switches": ["a", "b"], "ports": [{"switch": "a", "nodes": [0, 1]}, {"switch": "b", "nodes": [2, 3]}]})",
       "no way from node 0 to node 2"},
      {switched(4, 1, 1), R"({"kind": "fat_tree", "radix": 4, "link": {"bandwidth_GBps": 0, "latency_ns": 1}})",
       "/fabric/link/bandwidth_GBps: found 0"},
  };
  for (const auto& m : kMistakes) {
    const std::string found = message(m.nodes, m.fabric);
    CAPTURE(found);
    CHECK_MESSAGE(found.find(m.expected) != std::string::npos, m.expected);
    CHECK(found.find('\n') == std::string::npos);
  }
}
