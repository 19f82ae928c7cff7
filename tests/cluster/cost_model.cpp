// Cost models of clusters against numbers worked out by hand from their routes.
#include "libgccl/cluster/cost_model.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/flow/cost_check.hpp"
#include "tests/cluster/described.hpp"

using namespace gccl;
using namespace gccl::test;

TEST_CASE("the closed form's parameters are what the routes say") {
  const auto c = make(switched(8, 4, 2), R"({"kind": "fat_tree", "leaf_size": 4, "link": "trunk"})");
  const CostModel m = cost_model(*c, sim::first_cards(c->cards()), 4);
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
  std::string all = description(kNodes, R"({"kind": "switch"})");
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

TEST_CASE("the farthest node of a torus is found, and many cards' closed forms take the mean of doubling ways") {
  const auto torus = [](int count, std::string_view dims) {
    return make(fmt::format(R"([{{"count": {}, "cards": 1}}])", count),
                fmt::format(R"({{"kind": "torus", "of": "cards", "dims": {}, "link": "trunk"}})", dims));
  };
  const auto cube = torus(4096, "[16, 16, 16]"), square = torus(65536, "[256, 256]");
  CHECK(cost_without_loads(*cube, sim::first_cards(cube->cards()), 4).net.alpha_ns == 100 + 3 * 8 * 300);
  CHECK(cost_without_loads(*square, sim::first_cards(square->cards()), 4).net.alpha_ns > 100 + 0.97 * 2 * 128 * 300);
  // 1 + 2 + ... + 128 links along a row, and as many along a column.
  const CostModel m = cost_model(*square, sim::first_cards(square->cards()), 4);
  CHECK(16 * m.net.alpha_ns == doctest::Approx(16 * 100 + 2 * 255 * 300));
}
