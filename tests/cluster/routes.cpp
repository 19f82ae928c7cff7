// Routes against oracles of their own: they must be chains of cables by the names of their ends, and as short as a
// breadth-first search over those names finds; how they load cables is compared with numbers worked out by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "libgccl/cluster/composed.hpp"
#include "tests/cluster/described.hpp"

using namespace gccl;
using namespace gccl::test;

namespace {

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
